/// An optional value that most owners do not have. It takes 8 bytes of its owner, and memory of its own only while it is present.
@propertyWrapper
package struct Rare<Value: Sendable>: Sendable {
    private var box: CopyOnWrite<Value>?

    package init(wrappedValue: Value?) { box = wrappedValue.map { CopyOnWrite($0) } }

    package var wrappedValue: Value? {
        get { box?.value }
        set { box = newValue.map { CopyOnWrite($0) } }
    }
}

extension Rare: Equatable where Value: Equatable {}
extension Rare: Hashable where Value: Hashable {}
