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
