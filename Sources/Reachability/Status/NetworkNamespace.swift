public import FoundationEssentials

/// A network namespace to monitor (network_namespaces(7)), by its `ip netns` name or by path.
public struct NetworkNamespace: Hashable, Sendable, CustomStringConvertible {
    /// The name or path, as the user wrote it.
    public let text: String

    /// Creates a namespace from a name (`ip netns list`), or from a path such as `/proc/1234/ns/net` if the text contains a
    /// slash.
    public init(_ text: String) { self.text = text }

    /// The path of the namespace's file; `/run/netns/NAME` for a name.
    public var path: String { text.contains("/") ? text : "/run/netns/\(text)" }

    /// The namespace's name; `nil` for a path. The name selects `/etc/netns/NAME/resolv.conf` (ip-netns(8)).
    public var name: String? { text.contains("/") ? nil : text }

    /// The name or path, as the user wrote it.
    public var description: String { text }
}

/// The error of a monitor that cannot be created. Later versions may add cases.
@nonexhaustive public enum MonitorError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The namespace does not exist, or the file is not a network namespace.
    case noSuchNamespace(NetworkNamespace)
    /// The user may not enter the namespace. Entering needs CAP_SYS_ADMIN in the namespace's user namespace.
    case notPermitted(NetworkNamespace)
    /// The system refused a call that the monitor cannot replace. `errno` is as in errno(3).
    case system(call: String, errno: Int32)
    /// The file for the recording cannot be created.
    case recording(path: String, errno: Int32)

    /// One line, without a final period.
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
    /// One line, without a final period.
    public var errorDescription: String? { description }
}
