import CLinux

/// The system calls that a sandbox refuses to the programs inside.
public enum Sandbox: Sendable, CaseIterable {
    /// Refuses netlink sockets: `socket(AF_NETLINK)` fails with EAFNOSUPPORT, as under systemd's `RestrictAddressFamilies=`.
    case netlink
    /// Refuses netlink's events: joining a multicast group fails with EPERM.
    case netlinkGroups

    /// Runs `body` on a thread in this sandbox. Programs that it starts are in the sandbox too (seccomp(2)).
    public func perform<Value>(_ body: @escaping () throws -> Value) throws -> Value {
        try onThread {
            let code = netwatch_refuse_netlink(self == .netlinkGroups ? 1 : 0)
            guard code == 0 else { throw LabError("seccomp", errno: code) }
            return try body()
        }
    }
}
