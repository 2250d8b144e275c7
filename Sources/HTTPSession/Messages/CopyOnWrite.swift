/// A value behind a reference that copies share until one of them changes. It serves large values that are copied often.
struct CopyOnWrite<Value: Sendable>: Sendable {
    // @unchecked: the value changes only through a copy that holds the sole reference.
    private final class Box: @unchecked Sendable {
        // Unchecked: a change is an access to the copy that holds the sole reference, and that access is checked itself.
        @exclusivity(unchecked) var value: Value

        init(_ value: Value) { self.value = value }
    }

    private var box: Box

    init(_ value: Value) { box = Box(value) }

    /// Whether this value and the other share storage, so that they are equal without a comparison.
    func isShared(with other: CopyOnWrite) -> Bool { box === other.box }

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

/// An optional value that most owners do not have. A missing value takes 8 bytes of its owner, whatever its type; a present one takes memory of its own.
@propertyWrapper
package struct BoxedOptional<Value: Sendable>: Sendable {
    private var box: CopyOnWrite<Value>?

    package init(wrappedValue: Value?) { box = wrappedValue.map { CopyOnWrite($0) } }

    package var wrappedValue: Value? {
        get { box?.value }
        set { box = newValue.map { CopyOnWrite($0) } }
    }
}

extension BoxedOptional: Equatable where Value: Equatable {}
extension BoxedOptional: Hashable where Value: Hashable {}
