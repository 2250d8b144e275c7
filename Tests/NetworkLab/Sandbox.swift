import CLinux
import Glibc

/// The system calls that a sandbox refuses to the programs inside.
public enum Sandbox: Sendable {
    /// Refuses netlink sockets: `socket(AF_NETLINK)` fails with EAFNOSUPPORT, as under systemd's `RestrictAddressFamilies=`.
    case netlink
    /// Refuses netlink's events: joining a multicast group fails with EPERM.
    case netlinkGroups
    /// Refuses IPv4 sockets: `socket(AF_INET)` fails with EAFNOSUPPORT, as under systemd's `RestrictAddressFamilies=`.
    case ipv4
    /// Refuses connections: connect(2) fails with EACCES, as under Landlock.
    case connections

    /// The sandboxes without netlink or its events.
    public static let withoutNetlink: [Sandbox] = [.netlink, .netlinkGroups]

    /// Runs `body` on a thread in this sandbox. Programs that it starts are in the sandbox too (seccomp(2)).
    public func perform<Value>(_ body: @escaping () throws -> Value) throws -> Value {
        try onThread {
            let code =
                switch self {
                case .netlink: netwatch_refuse_netlink(0)
                case .netlinkGroups: netwatch_refuse_netlink(1)
                case .ipv4: netwatch_refuse_call(Int32(SYS_socket), AF_INET, EAFNOSUPPORT)
                case .connections: netwatch_refuse_call(Int32(SYS_connect), -1, EACCES)
                }
            guard code == 0 else { throw LabError("seccomp", errno: code) }
            return try body()
        }
    }
}
