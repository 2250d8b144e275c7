/// A value that never changes, behind one reference: a path with its interfaces is copied some thirty times between a change and the
/// user's callback, and each copy would count the references of every name and list in it.
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
