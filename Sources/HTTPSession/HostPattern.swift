/// A pattern for host names: exact, `*.` for one label more, `**.` for any number more, `**` for all (OkHttp's CertificatePinner has
/// the same). Names are compared in lower case, without a final dot.
package struct HostPattern: Hashable, Sendable {
    /// As written.
    package let text: String

    package init(text: String) { self.text = text }

    /// Whether the pattern covers the host.
    package func matches(_ host: String) -> Bool {
        let host = host.hasSuffix(".") ? String(host.dropLast()) : host
        if text == "**" { return true }
        if text.hasPrefix("**.") { return host.hasSuffix(text.dropFirst(2)) && host.count > text.count - 2 }
        guard text.hasPrefix("*.") else { return host == text }
        guard host.hasSuffix(text.dropFirst(1)) else { return false }
        let label = host.dropLast(text.count - 1)
        return !label.isEmpty && !label.contains(".")
    }
}
