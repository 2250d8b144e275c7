/// The contents of hosts(5): the addresses of names that need no name server.
struct HostsFile: Hashable, Sendable {
    // Keys are lowercase. Filters of advertisements have files of 100,000 lines, each with one address and one name.
    private var addresses: [String: [IPAddress]] = [:]

    /// An empty file.
    init() {}

    /// Parses the text of a file. Invalid lines are skipped, as glibc does. A NUL ends a line.
    init(parsing text: some Sequence<UInt8>) {
        for line in Array(text).split(separator: UInt8(ascii: "\n")) {
            let content = line.prefix { $0 != UInt8(ascii: "#") && $0 != 0 }
            let words = content.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: "\r") }
            guard let first = words.first, words.count > 1 else { continue }
            // The zone of a link-local address is of no use here, because a name has no interface.
            let text = String(decoding: first.prefix { $0 != UInt8(ascii: "%") }, as: UTF8.self)
            guard let address = IPAddress(text)?.unmapped else { continue }
            for word in words.dropFirst() {
                let name = String(decoding: word, as: UTF8.self).lowercased()
                if addresses[name]?.contains(address) != true { addresses[name, default: []].append(address) }
            }
        }
    }

    /// Returns the addresses of a name, in the order of the file. Case and a final dot do not matter.
    func addresses(of name: String, families: Set<IPAddress.Family>) -> [IPAddress] {
        let name = name.lowercased()
        let key = name.hasSuffix(".") ? String(name.dropLast()) : name
        let found = (addresses[key] ?? []).filter { families.contains($0.family) }
        guard found.isEmpty, key == "localhost" || key.hasSuffix(".localhost") else { return found }
        // RFC 6761 section 6.3: these names never go to a name server.
        return [IPAddress(v6: 0, 1), IPAddress(v4: 0x7f00_0001)].filter { families.contains($0.family) }
    }
}
