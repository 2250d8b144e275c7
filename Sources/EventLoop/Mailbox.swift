/// A queue of messages from other threads to a loop, in order. It has no limit of its own: the senders limit what they post.
public final class Mailbox<Message: Sendable>: Sendable {
    @usableFromInline
    struct State: Sendable {
        @usableFromInline var messages: [Message] = []
        @usableFromInline var waker: Waker?
        /// The loop checks the mailbox again before it waits.
        @usableFromInline var isAwake = false
        @usableFromInline var isClosed = false
    }

    @usableFromInline let state = Locked(State())

    package init() {}

    /// Sets the waker of the loop that reads the mailbox.
    package func attach(_ waker: Waker) { state.withLock { $0.waker = waker } }

    // Inlinable: see Locked.

    /// Adds a message. Wakes the loop if the mailbox was empty and the loop does not check it before its next wait.
    ///
    /// - Returns: `false` if the mailbox is closed; the message is discarded then.
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

    /// Whether no message waits in the mailbox.
    @inlinable
    public var isEmpty: Bool { state.withLock { $0.messages.isEmpty } }

    /// Closes the mailbox and returns the remaining messages. Later messages are refused.
    package func close() -> [Message] {
        state.withLock { state in
            state.isClosed = true
            defer { state.messages = [] }
            return state.messages
        }
    }

    // Inlinable too: a loop calls it in each turn.

    /// Takes all messages. With `staysAwake`, the loop calls ``mayWait()`` before it waits, and no sender wakes it until then. To
    /// wake a busy loop costs the sender one system call and the loop two.
    @inlinable
    public func takeAll(staysAwake: Bool = false) -> [Message] {
        state.withLock { state in
            state.isAwake = staysAwake
            guard !state.messages.isEmpty else { return [] }
            defer { state.messages = [] }
            return state.messages
        }
    }

    /// Returns whether no message has arrived since ``takeAll(staysAwake:)``. If so, the next message wakes the loop.
    package func mayWait() -> Bool {
        state.withLock { state in
            state.isAwake = !state.messages.isEmpty
            return state.messages.isEmpty
        }
    }
}
