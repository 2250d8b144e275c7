internal import Synchronization

/// A value that is sent to a queue and released there: the sender keeps no reference to it.
final class SendingBox<Value>: Sendable {
    private let value: Mutex<Value?>

    init(_ value: consuming sending Value) { self.value = Mutex(consume value) }

    func take() -> sending Value? { value.withLock { $0.take() } }
}
