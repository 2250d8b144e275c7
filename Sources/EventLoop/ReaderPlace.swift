/// One reader's place: room for one value, which another thread puts there, and for one task that waits for it. The giver is never
/// held up; a value that was not taken is merged with the next one.
package final class ReaderPlace<Value: Sendable>: Sendable {
    /// What became of a value that was put there.
    package enum Receipt: Hashable, Sendable {
        /// A waiting task has it.
        case taken
        /// It waits, as the first.
        case waits
        /// It waits, merged with one that waited before.
        case merged
        /// It was dropped with what waited before: the reader has fallen behind.
        case dropped
    }

    private struct State: Sendable {
        var pending: Value?
        var waiter: CheckedContinuation<Value?, Never>?
        var isBehind: Bool
        var hasFinished: Bool
    }

    private let state: Locked<State>

    /// A place where `first` waits. `isBehind`: the reader has to be given everything before it can follow.
    package init(_ first: Value? = nil, isBehind: Bool = false, hasFinished: Bool = false) {
        state = Locked(State(pending: first, isBehind: isBehind, hasFinished: hasFinished))
    }

    /// Takes the value that waits, if any.
    package func take() -> Value? {
        state.withLock { state in
            defer { state.pending = nil }
            return state.pending
        }
    }

    /// Whether a value waits.
    package var hasValue: Bool { state.withLock { $0.pending != nil } }

    /// Whether the reader is behind and nothing waits for it; it counts as caught up from here on.
    package func catchUp() -> Bool {
        state.withLock { state in
            guard state.isBehind, state.pending == nil, !state.hasFinished else { return false }
            state.isBehind = false
            return true
        }
    }

    /// The next value; `nil` when there will be none, or the task is cancelled. One task at a time may wait: another one takes the
    /// place of the first, which gets `nil`.
    package func next() async -> Value? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Value?, Never>) in
                let (ready, displaced) = state.withLock { state -> (Value??, CheckedContinuation<Value?, Never>?) in
                    if let pending = state.pending {
                        state.pending = nil
                        return (.some(pending), nil)
                    }
                    if state.hasFinished || Task.isCancelled { return (.some(nil), nil) }
                    let displaced = state.waiter
                    state.waiter = continuation
                    return (nil, displaced)
                }
                displaced?.resume(returning: nil)
                if let ready { continuation.resume(returning: ready) }
            }
        } onCancel: {
            release()
        }
    }

    /// Puts a value there. `merge` makes one of it and of the value that waits; `nil` drops both, and the reader is behind.
    package func offer(_ value: Value, merging merge: (_ earlier: Value) -> Value?) -> Receipt {
        let (waiter, receipt) = state.withLock { state -> (CheckedContinuation<Value?, Never>?, Receipt) in
            if let waiter = state.waiter {
                state.waiter = nil
                return (waiter, .taken)
            }
            guard let earlier = state.pending else {
                state.pending = value
                return (nil, .waits)
            }
            state.pending = merge(earlier)
            if state.pending == nil { state.isBehind = true }
            return (nil, state.pending == nil ? .dropped : .merged)
        }
        if let waiter { HomeThread.run { waiter.resume(returning: value) } }
        return receipt
    }

    /// Nothing follows: who waits gets `nil`, and so does who comes after the value that waits.
    package func finish() {
        state.withLock { $0.hasFinished = true }
        release()
    }

    private func release() {
        let waiter = state.withLock { state in
            defer { state.waiter = nil }
            return state.waiter
        }
        if let waiter { HomeThread.run { waiter.resume(returning: nil) } }
    }
}
