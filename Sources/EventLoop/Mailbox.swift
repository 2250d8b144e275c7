/// What other threads tell a loop, in order. Bounded by what they may have under way, not by itself.
package final class Mailbox<Message: Sendable>: Sendable {
    private struct State: Sendable {
        var messages: [Message] = []
        var waker: Waker?
        var isClosed = false
    }

    private let state = Locked(State())

    package init() {}

    /// Names the loop to be woken.
    package func attach(_ waker: Waker) { state.withLock { $0.waker = waker } }

    /// Adds a message and wakes the loop when it has none yet.
    ///
    /// - Returns: false when the loop has ended; nobody will read the message then.
    @discardableResult
    package func post(_ message: Message) -> Bool {
        let (isOpen, waker) = state.withLock { state -> (Bool, Waker?) in
            guard !state.isClosed else { return (false, nil) }
            state.messages.append(message)
            return (true, state.messages.count == 1 ? state.waker : nil)
        }
        waker?.wake()
        return isOpen
    }

    /// Takes what is left; nothing is accepted any more.
    package func close() -> [Message] {
        state.withLock { state in
            state.isClosed = true
            defer { state.messages = [] }
            return state.messages
        }
    }

    /// Takes everything.
    package func takeAll() -> [Message] {
        state.withLock { state in
            guard !state.messages.isEmpty else { return [] }
            defer { state.messages = [] }
            return state.messages
        }
    }
}
