/// What other threads tell a loop, in order. Bounded by what they may have under way, not by itself.
public final class Mailbox<Message: Sendable>: Sendable {
    @usableFromInline
    struct State: Sendable {
        @usableFromInline var messages: [Message] = []
        @usableFromInline var waker: Waker?
        /// The loop looks again before it waits.
        @usableFromInline var isAwake = false
        @usableFromInline var isClosed = false
    }

    @usableFromInline let state = Locked(State())

    package init() {}

    /// Names the loop to be woken.
    package func attach(_ waker: Waker) { state.withLock { $0.waker = waker } }

    // Inlinable: see Locked.

    /// Adds a message, and wakes the loop when it has none yet and does not look for itself.
    ///
    /// - Returns: false when the loop has ended; nobody will read the message then.
    @discardableResult
    @inlinable
    public func post(_ message: Message) -> Bool {
        let (isOpen, waker) = state.withLock { state -> (Bool, Waker?) in
            guard !state.isClosed else { return (false, nil) }
            state.messages.append(message)
            return (true, state.messages.count == 1 && !state.isAwake ? state.waker : nil)
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

    /// Takes everything. `staysAwake`: the loop will ask ``mayWait()`` before it waits. Until then nobody wakes it: a wake-up of a loop
    /// that is busy costs whoever posts a system call, and the loop two more.
    package func takeAll(staysAwake: Bool = false) -> [Message] {
        state.withLock { state in
            state.isAwake = staysAwake
            guard !state.messages.isEmpty else { return [] }
            defer { state.messages = [] }
            return state.messages
        }
    }

    /// Whether nothing has come since ``takeAll(staysAwake:)``: then the next message wakes the loop.
    package func mayWait() -> Bool {
        state.withLock { state in
            state.isAwake = !state.messages.isEmpty
            return state.messages.isEmpty
        }
    }
}
