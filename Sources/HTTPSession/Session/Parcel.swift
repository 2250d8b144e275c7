internal import Synchronization

/// What goes to a queue, and is let go of there: whoever sends it keeps nothing of it.
final class Parcel<Value>: Sendable {
    private let value: Mutex<Value?>

    init(_ value: consuming sending Value) { self.value = Mutex(consume value) }

    func take() -> sending Value? { value.withLock { $0.take() } }
}
