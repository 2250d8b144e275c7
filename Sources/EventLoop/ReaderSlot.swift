/// A slot between a writer and one reader: it holds one value, and one task that waits for a value. The writer never blocks; a
/// value that was not taken is merged with the next one.
public final class ReaderSlot<Value: Sendable>: Sendable {
    /// The result of offering a value.
    public enum OfferResult: Hashable, Sendable {
        /// A waiting task received the value.
        case delivered
        /// The slot was empty and holds the value.
        case stored
        /// The slot holds the value, merged with an earlier one.
        case merged
        /// The value and the earlier one were dropped: the reader has fallen behind.
        case dropped
    }

    @usableFromInline
    struct State: Sendable {
        @usableFromInline var pending: Value?
        @usableFromInline var waiter: CheckedContinuation<Value?, Never>?
        @usableFromInline var isBehind: Bool
        var hasFinished: Bool
    }

    @usableFromInline let state: Locked<State>

    /// Creates a slot that holds `first`. `isBehind`: the reader needs the complete state before it can follow changes.
    package init(_ first: Value? = nil, isBehind: Bool = false, hasFinished: Bool = false) {
        state = Locked(State(pending: first, isBehind: isBehind, hasFinished: hasFinished))
    }

    // Inlinable: see Locked.

    /// Takes the available value, if any.
    @inlinable
    public func take() -> Value? {
        state.withLock { state in
            defer { state.pending = nil }
            return state.pending
        }
    }

    /// Whether a value is available.
    package var hasValue: Bool { state.withLock { $0.pending != nil } }

    /// Waits for the next value; `nil` if the slot has finished or the task is canceled. One task at a time may wait: a second
    /// one replaces the first, which receives `nil`.
    ///
    /// If the reader is behind and no value is available, `catchUp` is called, and requests the complete state from the writer. The
    /// task already waits then: a value that is dropped later makes the reader fall behind again only after it has received one.
    package func next(catchUp: @Sendable () -> Void = {}) async -> Value? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Value?, Never>) in
                var mustCatchUp = false
                let (ready, displaced) = state.withLock { state -> (Value??, CheckedContinuation<Value?, Never>?) in
                    if let pending = state.pending {
                        state.pending = nil
                        return (.some(pending), nil)
                    }
                    if state.hasFinished || Task.isCancelled { return (.some(nil), nil) }
                    let displaced = state.waiter
                    state.waiter = continuation
                    (mustCatchUp, state.isBehind) = (state.isBehind, false)
                    return (nil, displaced)
                }
                displaced?.resume(returning: nil)
                if mustCatchUp { catchUp() }
                if let ready { continuation.resume(returning: ready) }
            }
        } onCancel: {
            release()
        }
    }

    /// Stores a value, or delivers it to a waiting task. `merge` combines it with a value that was not taken; if it returns
    /// `nil`, both are dropped and the reader is behind.
    @inlinable
    public func offer(_ value: Value, merging merge: (_ earlier: Value) -> Value?) -> OfferResult {
        let (waiter, result) = state.withLock { state -> (CheckedContinuation<Value?, Never>?, OfferResult) in
            if let waiter = state.waiter {
                state.waiter = nil
                return (waiter, .delivered)
            }
            guard let earlier = state.pending else {
                state.pending = value
                return (nil, .stored)
            }
            state.pending = merge(earlier)
            if state.pending == nil { state.isBehind = true }
            return (nil, state.pending == nil ? .dropped : .merged)
        }
        if let waiter { resume(waiter, returning: value) }
        return result
    }

    @usableFromInline
    func resume(_ waiter: CheckedContinuation<Value?, Never>, returning value: Value?) {
        HomeThread.run { waiter.resume(returning: value) }
    }

    /// Ends the slot: no value follows. A waiting task receives `nil`; a later task receives the available value first, then
    /// `nil`.
    package func finish() {
        state.withLock { $0.hasFinished = true }
        release()
    }

    private func release() {
        let waiter = state.withLock { state in
            defer { state.waiter = nil }
            return state.waiter
        }
        if let waiter { resume(waiter, returning: nil) }
    }
}
