/// A dictionary for few keys, nearly always one. An entry is stored without an allocation of its own; a dictionary of one entry takes
/// 130 bytes and more. With 100,000 targets, that is most of their memory.
struct SmallMap<Key: Hashable & Sendable, Value: Hashable & Sendable>: Hashable, Sendable {
    private struct Entry: Hashable, Sendable {
        let key: Key
        var value: Value
    }

    private enum Storage: Sendable {
        case empty
        case one(Key, Value)
        case several([Entry])
    }

    private var storage = Storage.empty

    var isEmpty: Bool { count == 0 }

    var count: Int {
        switch storage {
        case .empty: 0
        case .one: 1
        case .several(let entries): entries.count
        }
    }

    /// The values in the order in which their keys were added.
    var values: [Value] { map(\.value) }

    /// Accesses the value of a key; `nil` if there is none.
    subscript(key: Key) -> Value? {
        get {
            switch storage {
            case .empty: nil
            case .one(let own, let value): own == key ? value : nil
            case .several(let entries): entries.first { $0.key == key }?.value
            }
        }
        set {
            switch (storage, newValue) {
            case (.empty, nil): break
            case (.empty, let value?): storage = .one(key, value)
            case (.one(let own, _), let value) where own == key: storage = value.map { .one(key, $0) } ?? .empty
            case (.one, nil): break
            case (.one(let own, let former), let value?):
                storage = .several([Entry(key: own, value: former), Entry(key: key, value: value)])
            case (.several(var entries), let value):
                entries.removeAll { $0.key == key && value == nil }
                if let value {
                    if let place = entries.firstIndex(where: { $0.key == key }) {
                        entries[place].value = value
                    } else {
                        entries.append(Entry(key: key, value: value))
                    }
                }
                storage = entries.count == 1 ? .one(entries[0].key, entries[0].value) : .several(entries)
            }
        }
    }

    /// Returns the map of the entries that satisfy a condition.
    func filter(_ isIncluded: ((key: Key, value: Value)) -> Bool) -> SmallMap {
        var result = SmallMap()
        for (key, value) in self where isIncluded((key, value)) { result[key] = value }
        return result
    }

    /// Whether both have the same entries, in any order.
    static func == (left: SmallMap, right: SmallMap) -> Bool {
        if case .one(let key, let value) = left.storage, case .one(let other, let otherValue) = right.storage {
            return key == other && value == otherValue
        }
        return left.count == right.count && left.allSatisfy { right[$0.key] == $0.value }
    }

    func hash(into hasher: inout Hasher) {
        var sum = 0
        for (key, value) in self { sum ^= Entry(key: key, value: value).hashValue }
        hasher.combine(sum)
    }
}

extension SmallMap: Sequence {
    func makeIterator() -> AnyIterator<(key: Key, value: Value)> {
        var (place, storage) = (0, storage)
        return AnyIterator {
            defer { place += 1 }
            switch storage {
            case .empty: return nil
            case .one(let key, let value):
                storage = .empty
                return (key, value)
            case .several(let entries): return place < entries.count ? (entries[place].key, entries[place].value) : nil
            }
        }
    }
}

extension SmallMap: ExpressibleByDictionaryLiteral {
    init(dictionaryLiteral elements: (Key, Value)...) { for (key, value) in elements { self[key] = value } }
}

/// A set of interface indexes, nearly always of one, which is stored without an allocation.
struct InterfaceSet: Hashable, Sendable, Sequence {
    private var first: UInt32 = 0
    // Sorted, without `first`, which is the lowest; empty unless there are several.
    private var others: [UInt32] = []

    /// Creates a set. The index 0, which no interface has, is ignored.
    init(_ indexes: some Sequence<UInt32> = EmptyCollection<UInt32>()) {
        for index in indexes where index != 0 && index != first {
            if first == 0 {
                first = index
            } else if !others.contains(index) {
                others.append(index)
            }
        }
        guard !others.isEmpty else { return }
        others.append(first)
        others.sort()
        first = others.removeFirst()
    }

    var isEmpty: Bool { first == 0 }

    func makeIterator() -> IndexingIterator<[UInt32]> { (first == 0 ? [] : [first] + others).makeIterator() }
}
