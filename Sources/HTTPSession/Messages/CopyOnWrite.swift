/// A value behind one reference, which its copies share until one of them is changed: for what is large and goes through many hands.
struct CopyOnWrite<Value: Sendable>: Sendable {
    // @unchecked: it is changed only by a copy that is the only one.
    private final class Box: @unchecked Sendable {
        // Unchecked: a change is an access of the copy that is the only one, which is checked itself.
        @exclusivity(unchecked) var value: Value

        init(_ value: Value) { self.value = value }
    }

    private var box: Box

    init(_ value: Value) { box = Box(value) }

    var value: Value {
        _read { yield box.value }
        _modify {
            if !isKnownUniquelyReferenced(&box) { box = Box(box.value) }
            yield &box.value
        }
    }
}

extension CopyOnWrite: Equatable where Value: Equatable {
    static func == (one: CopyOnWrite, other: CopyOnWrite) -> Bool { one.box === other.box || one.value == other.value }
}

extension CopyOnWrite: Hashable where Value: Hashable {
    func hash(into hasher: inout Hasher) { hasher.combine(value) }
}
