public import FoundationEssentials

/// A network namespace to watch (network_namespaces(7)): by name, as `ip netns` knows it, or by path.
public struct NetworkNamespace: Hashable, Sendable, CustomStringConvertible {
    /// As the user wrote it.
    public let text: String

    /// A name (`ip netns list`), or a path such as `/proc/1234/ns/net` where the text has a slash.
    public init(_ text: String) { self.text = text }

    /// Where its file is: `/run/netns/NAME` for a name.
    public var path: String { text.contains("/") ? text : "/run/netns/\(text)" }

    /// The name, where it has one: that decides which `/etc/netns/NAME/resolv.conf` applies (ip-netns(8)).
    public var name: String? { text.contains("/") ? nil : text }

    /// As the user wrote it.
    public var description: String { text }
}

/// Why a monitor could not be made.
@nonexhaustive public enum MonitorError: Error, Hashable, Sendable, CustomStringConvertible {
    /// There is no such namespace, or the file is none.
    case noSuchNamespace(NetworkNamespace)
    /// The namespace may not be entered by this user (CAP_SYS_ADMIN is needed in its user namespace).
    case notPermitted(NetworkNamespace)
    /// The system refused a call that has no substitute; `errno` as in errno(3).
    case system(call: String, errno: Int32)
    /// The recording's file cannot be created.
    case recording(path: String, errno: Int32)

    /// One line, without a full stop.
    public var description: String {
        switch self {
        case .noSuchNamespace(let namespace): "no network namespace '\(namespace)'"
        case .notPermitted(let namespace): "not permitted to enter network namespace '\(namespace)'"
        case .system(let call, let errno): "\(call) failed: \(errorText(errno))"
        case .recording(let path, let errno): "cannot create '\(path)': \(errorText(errno))"
        }
    }
}

extension MonitorError: LocalizedError {
    /// One line, without a full stop.
    public var errorDescription: String? { description }
}
