/// An immutable value behind one reference. A path with its interfaces is copied about thirty times between a change and the
/// user's callback; without the box, each copy would retain every name and array in it.
struct Boxed<Value: Hashable & Sendable>: Hashable, Sendable {
    private final class Box: Sendable {
        let value: Value
        init(_ value: Value) { self.value = value }
    }

    private let box: Box

    init(_ value: Value) { box = Box(value) }

    var value: Value { box.value }

    static func == (left: Boxed, right: Boxed) -> Bool { left.box === right.box || left.box.value == right.box.value }
    func hash(into hasher: inout Hasher) { hasher.combine(box.value) }
}
