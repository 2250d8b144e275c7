import CLinux
import EventLoop
import Glibc

/// The service manager that started this program: the receiver of its notifications (sd_notify(3)).
///
/// The protocol is a datagram of assignments, so libsystemd is not needed. A notification that cannot be sent is lost: the service must
/// not wait for its manager.
struct ServiceManager: Sendable {
    /// A change of the service that its manager wants to know.
    enum Notification: Hashable, Sendable {
        /// The service is ready. `status` is one line for people.
        case ready(status: String)
        /// The status for people has changed.
        case status(String)
        /// The service loads its configuration. The time of CLOCK_MONOTONIC in microseconds, without which systemd 253 and later wait
        /// for their time limit.
        case reloading(monotonicMicroseconds: Int64)
        /// The service ends.
        case stopping
        /// The service works.
        case watchdog

        /// The assignments, a line each.
        var text: String {
            switch self {
            case .ready(let status): "READY=1\nSTATUS=\(Self.line(status))"
            case .status(let status): "STATUS=\(Self.line(status))"
            case .reloading(let time): "RELOADING=1\nMONOTONIC_USEC=\(time)"
            case .stopping: "STOPPING=1"
            case .watchdog: "WATCHDOG=1"
            }
        }

        /// Returns the text without newlines, which would begin another assignment.
        private static func line(_ text: String) -> String {
            String(text.unicodeScalars.map { $0.properties.generalCategory == .control ? " " : Character($0) })
        }
    }

    /// The socket of the manager: a path, or the name of an abstract socket after `@`; `nil` without a manager.
    private let address: String?
    /// The time within which the manager expects ``Notification/watchdog``; `nil` without a watchdog.
    let watchdogInterval: Duration?

    /// Reads `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`.
    init(_ environment: [String: String], processID: Int32 = getpid()) {
        let address = environment["NOTIFY_SOCKET"].flatMap { $0.hasPrefix("/") || $0.hasPrefix("@") ? $0 : nil }
        self.address = address
        let isOther = environment["WATCHDOG_PID"].map { Int32($0) != processID } ?? false
        let interval = environment["WATCHDOG_USEC"].flatMap { Int64($0) }
        watchdogInterval = interval.flatMap { address != nil && !isOther && $0 > 0 ? .microseconds($0) : nil }
    }

    /// Sends a notification.
    func notify(_ notification: Notification) {
        guard let address, let name = SocketAddress(unixPath: address, allowsAbstract: true) else { return }
        let socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard socket >= 0 else { return }
        defer { close(socket) }
        let text = Array(notification.text.utf8)
        _ = name.withPointer { sendto(socket, text, text.count, Int32(MSG_NOSIGNAL), $0, $1) }
    }
}
