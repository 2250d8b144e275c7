extension NetworkPath: CustomStringConvertible {
    /// The status, and the interface or the cause, such as `satisfied (eth0, wired)` or `unsatisfied (link: interface eth0 has no carrier)`.
    public var description: String {
        if let cause { return "\(status.rawValue) (\(cause))" }
        return interface.map { "\(status.rawValue) (\($0))" } ?? status.rawValue
    }
}

extension NetworkInterface: CustomStringConvertible {
    /// The name and the medium, such as `eth0, wired`.
    public var description: String { "\(name), \(type.rawValue)" }
}

extension PathUpdate: CustomStringConvertible {
    /// The path, and the reasons for the update.
    public var description: String {
        reasons.isEmpty ? "\(path)" : "\(path) [\(reasons.map(\.rawValue).joined(separator: ", "))]"
    }
}

extension ServerUpdate: CustomStringConvertible {
    /// The server and its status, such as `api.example.com:443 up` or `api.example.com:443 down (tcp: …)`.
    public var description: String { "\(endpoint) \(state.rawValue)" + (cause.map { " (\($0))" } ?? "") }
}
