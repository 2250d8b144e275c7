internal import EventLoop
internal import Synchronization

/// What other threads tell a loop, in order. Bounded by what they may have under way, not by itself.
final class Mailbox<Message: Sendable>: Sendable {
    private struct State: Sendable {
        var messages: [Message] = []
        var waker: Waker?
    }

    private let state = Mutex(State())

    /// Names the loop to be woken.
    func attach(_ waker: Waker) { state.withLock { $0.waker = waker } }

    /// Adds a message and wakes the loop when it has none yet.
    func post(_ message: Message) {
        let waker = state.withLock { state in
            state.messages.append(message)
            return state.messages.count == 1 ? state.waker : nil
        }
        waker?.wake()
    }

    /// Takes everything.
    func takeAll() -> [Message] {
        state.withLock { state in
            guard !state.messages.isEmpty else { return [] }
            defer { state.messages = [] }
            return state.messages
        }
    }
}
