/// The contents of hosts(5): the addresses of names that need no name server.
///
/// Lists of advertisers have 100,000 lines, and the file is parsed on the loop's thread. The names are therefore bytes of one
/// array with a hash table of their positions: a string and a list of addresses for each name take five times as long, and their
/// release takes as long again.
struct HostsFile: Sendable {
    /// The maximum number of addresses and names that are read. The largest public lists have 800,000.
    static let entryLimit = 1_000_000
    /// The maximum number of addresses of a name.
    static let addressLimit = 1_024
    /// The index of no entry.
    private static let none = UInt32.max

    /// An address of a name.
    private struct Entry: Hashable, Sendable {
        /// The position of the name in `names`.
        let start, count: UInt32
        /// The position in `addresses`.
        let address: UInt32
        /// The next address of the name.
        var next = HostsFile.none
    }

    /// A place of the hash table: the first and the last address of a name.
    private struct Slot: Sendable {
        var first = HostsFile.none
        var last = HostsFile.none
    }

    // Names are lowercase.
    private var names: [UInt8] = []
    private var addresses: [IPAddress] = []
    private var entries: [Entry] = []
    // The count is a power of two, at least twice that of the entries. A name is in the first free slot from that of its hash.
    private var slots: [Slot] = []

    /// An empty file.
    init() {}

    /// Parses the text of a file. Invalid lines are skipped, as glibc does. A NUL ends a line.
    init(parsing text: some Sequence<UInt8>) {
        ContiguousArray(text).withUnsafeBufferPointer { text in
            reserve(lines: text.count { $0 == UInt8(ascii: "\n") } + 1, bytes: text.count)
            // The lines of a list of advertisers have the same address.
            var (lastText, lastAddress): (Slice<UnsafeBufferPointer<UInt8>>, IPAddress?) = (text[0..<0], nil)
            var next = text.startIndex
            while next < text.endIndex, entries.count < Self.entryLimit {
                let end = text[next...].firstIndex(of: UInt8(ascii: "\n")) ?? text.endIndex
                var words = Words(text[next..<end])
                next = end + 1
                guard let first = words.next() else { continue }
                if !first.elementsEqual(lastText) { (lastText, lastAddress) = (first, Self.address(first)) }
                guard let address = lastAddress else { continue }
                while let word = words.next(), entries.count < Self.entryLimit { add(address, to: word) }
            }
        }
    }

    private mutating func reserve(lines: Int, bytes: Int) {
        let count = min(lines, Self.entryLimit)
        names.reserveCapacity(bytes)
        entries.reserveCapacity(count)
        slots = Array(repeating: Slot(), count: Self.slotCount(for: count))
    }

    private static func slotCount(for entries: Int) -> Int {
        var count = 4
        while count < entries * 2 { count *= 2 }
        return count
    }

    private mutating func add(_ address: IPAddress, to word: Slice<UnsafeBufferPointer<UInt8>>) {
        let start = names.count
        names.append(contentsOf: UnsafeBufferPointer(rebasing: word))
        let isASCII = names.withUnsafeMutableBufferPointer { names in
            var bits: UInt8 = 0
            for index in start..<names.count {
                let byte = names[index]
                bits |= byte
                names[index] = byte | (byte &- UInt8(ascii: "A") < 26 ? 0x20 : 0)
            }
            return bits < 0x80
        }
        if !isASCII {
            names.removeLast(names.count - start)
            names += String(decoding: word, as: UTF8.self).lowercased().utf8
        }
        // Line after line has the same address.
        if addresses.last != address { addresses.append(address) }
        var entry = Entry(
            start: UInt32(start), count: UInt32(names.count - start), address: UInt32(addresses.count - 1))
        let slot = names.withUnsafeBufferPointer { self.slot(of: UnsafeBufferPointer(rebasing: $0[start..<$0.count])) }
        let index = UInt32(entries.count)
        if slots[slot].first == Self.none {
            slots[slot] = Slot(first: index, last: index)
        } else {
            let last = Int(slots[slot].last)
            names.removeLast(names.count - start)
            guard addresses[Int(entries[last].address)] != address else { return }
            entry = Entry(start: entries[last].start, count: entries[last].count, address: entry.address)
            entries[last].next = index
            slots[slot].last = index
        }
        entries.append(entry)
        if entries.count * 2 > slots.count { enlarge() }
    }

    /// Moves the names to a table of twice the size: a file may have many names in a line.
    private mutating func enlarge() {
        let old = slots
        slots = Array(repeating: Slot(), count: old.count * 2)
        names.withUnsafeBufferPointer { names in
            for slot in old where slot.first != Self.none {
                slots[self.slot(of: Self.name(of: entries[Int(slot.first)], in: names))] = slot
            }
        }
    }

    /// Returns the slot of a name, or the free slot in which it belongs.
    private func slot(of name: UnsafeBufferPointer<UInt8>) -> Int {
        // The hash has a seed of the process, so that no file makes all names meet in one slot.
        var hasher = Hasher()
        hasher.combine(bytes: UnsafeRawBufferPointer(name))
        var index = hasher.finalize() & (slots.count - 1)
        names.withUnsafeBufferPointer { names in
            while slots[index].first != Self.none {
                let entry = entries[Int(slots[index].first)]
                if Int(entry.count) == name.count, Self.name(of: entry, in: names).elementsEqual(name) { break }
                index = (index + 1) & (slots.count - 1)
            }
        }
        return index
    }

    private static func name(of entry: Entry, in names: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(rebasing: names[Int(entry.start)..<Int(entry.start + entry.count)])
    }

    private static func address(_ word: Slice<UnsafeBufferPointer<UInt8>>) -> IPAddress? {
        // The zone of a link-local address is of no use here, because a name has no interface.
        IPAddress(String(decoding: word.prefix { $0 != UInt8(ascii: "%") }, as: UTF8.self))?.unmapped
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
        let found = addresses(of: key).filter { families.contains($0.family) }
        guard found.isEmpty, key == "localhost" || key.hasSuffix(".localhost") else { return found }
        // RFC 6761 section 6.3: these names never go to a name server.
        return [IPAddress(v6: 0, 1), IPAddress(v4: 0x7f00_0001)].filter { families.contains($0.family) }
    }

    private func addresses(of key: String) -> [IPAddress] {
        guard !entries.isEmpty else { return [] }
        var next = slots[Array(key.utf8).withUnsafeBufferPointer { slot(of: $0) }].first
        var (found, seen): ([IPAddress], Set<IPAddress>) = ([], [])
        while next != Self.none, found.count < Self.addressLimit {
            let entry = entries[Int(next)]
            let address = addresses[Int(entry.address)]
            if seen.insert(address).inserted { found.append(address) }
            next = entry.next
        }
        return found
    }
}

extension HostsFile: Hashable {
    // The slots follow from the entries.
    static func == (left: HostsFile, right: HostsFile) -> Bool {
        left.names == right.names && left.entries == right.entries && left.addresses == right.addresses
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(names.count)
        hasher.combine(entries.count)
        hasher.combine(addresses)
    }
}
