/// An immutable value behind one reference. A path with its interfaces is copied about thirty times between a change and the
/// user's callback; without the box, each copy would retain every name and array in it. Copies also share the memory: with 100,000
/// targets, every byte of a stored value counts 100,000 times.
struct Boxed<Value: Hashable & Sendable>: Hashable, Sendable {
    private final class Box: Sendable {
        let value: Value
        init(_ value: Value) { self.value = value }
    }

    private var box: Box

    init(_ value: Value) { box = Box(value) }

    var value: Value { box.value }

    /// Replaces the value by a changed copy. Other copies of the box keep the former value.
    mutating func update(_ change: (inout Value) -> Void) {
        var value = box.value
        change(&value)
        box = Box(value)
    }

    static func == (left: Boxed, right: Boxed) -> Bool { left.box === right.box || left.box.value == right.box.value }
    func hash(into hasher: inout Hasher) { hasher.combine(box.value) }
}

extension Boxed: Codable where Value: Codable {
    init(from decoder: any Decoder) throws { self.init(try decoder.singleValueContainer().decode(Value.self)) }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(value)
    }
}
