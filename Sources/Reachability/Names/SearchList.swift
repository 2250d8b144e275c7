/// The complete names that DNS is asked for, in their order (resolv.conf(5), `search` and `ndots`).
enum SearchList {
    /// The maximum length of a name without its final dot (RFC 1035 section 3.1).
    static let nameLimit = 253

    /// Returns the candidates for a name, each without a final dot. A name with a final dot is complete.
    static func candidates(for name: String, _ configuration: ResolverConfiguration, hostName: String) -> [String] {
        if name.hasSuffix(".") { return [String(name.dropLast())] }
        // Without a list, glibc takes the domain of the machine's own name.
        let own = hostName.split(separator: ".", maxSplits: 1).dropFirst().map(String.init)
        let domains = (configuration.search.isEmpty ? own : configuration.search)
            .map { $0.hasSuffix(".") ? String($0.dropLast()) : $0 }
        let joined = domains.filter { !$0.isEmpty }.map { "\(name).\($0)" }.filter { $0.utf8.count <= nameLimit }
        let hasDots = name.utf8.count { $0 == UInt8(ascii: ".") } >= configuration.ndots
        return hasDots ? [name] + joined : joined + [name]
    }
}
