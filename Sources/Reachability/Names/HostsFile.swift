/// The contents of hosts(5): the addresses of names that need no name server.
struct HostsFile: Hashable, Sendable {
    // Keys are lowercase. Filters of advertisements have files of 100,000 lines, each with one address and one name.
    private var addresses: [String: [IPAddress]] = [:]

    /// An empty file.
    init() {}

    /// Parses the text of a file. Invalid lines are skipped, as glibc does. A NUL ends a line.
    init(parsing text: some Sequence<UInt8>) {
        // Without the lists that `split` makes, and with one string for each name, a line takes a third of the time.
        ContiguousArray(text).withUnsafeBufferPointer { text in
            // The lines of a filter have the same address.
            var (lastText, lastAddress): (Slice<UnsafeBufferPointer<UInt8>>, IPAddress?) = (text[0..<0], nil)
            var next = text.startIndex
            while next < text.endIndex {
                let end = text[next...].firstIndex(of: UInt8(ascii: "\n")) ?? text.endIndex
                var words = Words(text[next..<end])
                next = end + 1
                guard let first = words.next() else { continue }
                if !first.elementsEqual(lastText) { (lastText, lastAddress) = (first, Self.address(first)) }
                guard let address = lastAddress else { continue }
                while let word = words.next() { add(address, to: Self.lowercased(word)) }
            }
        }
    }

    private mutating func add(_ address: IPAddress, to name: String) {
        if addresses[name]?.contains(address) != true { addresses[name, default: []].append(address) }
    }

    private static func address(_ word: Slice<UnsafeBufferPointer<UInt8>>) -> IPAddress? {
        // The zone of a link-local address is of no use here, because a name has no interface.
        IPAddress(String(decoding: word.prefix { $0 != UInt8(ascii: "%") }, as: UTF8.self))?.unmapped
    }

    private static func lowercased(_ word: Slice<UnsafeBufferPointer<UInt8>>) -> String {
        guard !word.contains(where: { $0 >= 0x80 }) else { return String(decoding: word, as: UTF8.self).lowercased() }
        return String(unsafeUninitializedCapacity: word.count) { buffer in
            for (index, byte) in word.enumerated() {
                buffer[index] = byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
            }
            return word.count
        }
    }

    /// The words of a line, without its comment.
    private struct Words {
        private var remaining: Slice<UnsafeBufferPointer<UInt8>>

        init(_ line: Slice<UnsafeBufferPointer<UInt8>>) { remaining = line.prefix { $0 != UInt8(ascii: "#") && $0 != 0 } }

        mutating func next() -> Slice<UnsafeBufferPointer<UInt8>>? {
            remaining = remaining.drop(while: Self.isSpace)
            guard !remaining.isEmpty else { return nil }
            let word = remaining.prefix { !Self.isSpace($0) }
            remaining = remaining[word.endIndex...]
            return word
        }

        private static func isSpace(_ byte: UInt8) -> Bool {
            byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r")
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
