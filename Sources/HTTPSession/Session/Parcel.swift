/// What goes to a queue, and is let go of there: whoever sends it keeps nothing of it.
// @unchecked: it is filled before the job that takes it is queued, and that job alone takes it.
final class Parcel<Value>: @unchecked Sendable {
    private var value: Value?

    init(_ value: consuming Value) { self.value = consume value }

    func take() -> Value? { value.take() }
}
