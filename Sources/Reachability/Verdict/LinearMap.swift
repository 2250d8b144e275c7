/// A dictionary of a few entries in one array. A Dictionary of one entry takes 260 bytes and more, which a target with a single address
/// would pay several times.
struct LinearMap<Key: Hashable & Sendable, Value: Hashable & Sendable>: Hashable, Sendable, ExpressibleByDictionaryLiteral {
    private struct Entry: Hashable, Sendable {
        let key: Key
        var value: Value
    }

    private var entries: [Entry] = []

    init() {}

    init(dictionaryLiteral elements: (Key, Value)...) {
        for (key, value) in elements { self[key] = value }
    }

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }
    /// The values, in the order in which their keys were added.
    var values: some Sequence<Value> { entries.lazy.map(\.value) }

    subscript(key: Key) -> Value? {
        get { entries.first { $0.key == key }?.value }
        set {
            let index = entries.firstIndex { $0.key == key }
            switch (index, newValue) {
            case (let index?, let value?): entries[index].value = value
            case (let index?, nil): entries.remove(at: index)
            case (nil, let value?): entries.append(Entry(key: key, value: value))
            case (nil, nil): break
            }
        }
    }

    /// Removes the entries that do not satisfy the predicate.
    mutating func keep(_ isKept: (Key, Value) -> Bool) { entries.removeAll { !isKept($0.key, $0.value) } }

    /// Ignores the order of the entries.
    static func == (left: Self, right: Self) -> Bool {
        left.count == right.count && left.entries.allSatisfy { right[$0.key] == $0.value }
    }

    func hash(into hasher: inout Hasher) { hasher.combine(Set(entries)) }
}
