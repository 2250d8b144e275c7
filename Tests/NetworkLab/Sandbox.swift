import CLinux

/// What a sandbox takes away from the programs inside.
public enum Sandbox: Sendable, CaseIterable {
    /// Netlink sockets: `socket(AF_NETLINK)` fails with EAFNOSUPPORT, as under systemd's `RestrictAddressFamilies=`.
    case netlink
    /// Netlink's events: joining a multicast group fails with EPERM.
    case netlinkGroups

    /// Runs `body` on a thread that lives in this sandbox, with all programs that it starts (seccomp(2)).
    public func perform<Value>(_ body: @escaping () throws -> Value) throws -> Value {
        try onThread {
            let code = netwatch_refuse_netlink(self == .netlinkGroups ? 1 : 0)
            guard code == 0 else { throw LabError("seccomp", errno: code) }
            return try body()
        }
    }
}
