/// An optional value that most owners do not have. It takes 8 bytes of its owner, and memory of its own only when it is present.
@propertyWrapper
package struct Rare<Value> {
    fileprivate final class Box {
        let value: Value

        init(_ value: Value) { self.value = value }
    }

    private var box: Box?

    package init(wrappedValue: Value?) { box = wrappedValue.map(Box.init) }

    package var wrappedValue: Value? {
        get { box?.value }
        set { box = newValue.map(Box.init) }
    }
}

extension Rare.Box: Sendable where Value: Sendable {}
extension Rare: Sendable where Value: Sendable {}

extension Rare: Equatable where Value: Equatable {
    package static func == (one: Rare, other: Rare) -> Bool { one.box === other.box || one.wrappedValue == other.wrappedValue }
}

extension Rare: Hashable where Value: Hashable {
    package func hash(into hasher: inout Hasher) { hasher.combine(wrappedValue) }
}
