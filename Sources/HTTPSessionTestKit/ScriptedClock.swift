import EventLoop
import FoundationEssentials
import HTTPSession

/// The time of a scripted transport, and the Swift tasks that wait for it.
///
/// The session's thread moves the time (``step(_:hasCommands:until:due:)``) when it has no other work. It moves the time from deadline to deadline, because
/// the work at one deadline may set another deadline.
final class ScriptedClock: Sendable {
    /// The next action of the session's thread.
    enum Step {
        /// The thread looks for work again: time has passed, a command has arrived, or a Swift task has begun to wait.
        case look
        /// The thread waits until it is woken.
        case wait
    }

    private enum Awaited {
        case moment(Int64)
        case idleness
    }

    private struct Waiter: Sendable {
        let awaited: Awaited
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct Sleeper: Sendable {
        let deadline: Int64
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State: Sendable {
        var now = ScriptedClock.start
        /// The latest time that the test allows.
        var limit = ScriptedClock.start
        var waiters: [Waiter] = []
        var sleepers: [Int: Sleeper] = [:]
        var nextSleeper = 0
        /// The session's thread; `nil` if no session is attached.
        var waker: Waker?
        /// Whether a Swift task has begun to wait since the session last looked for work. The session first handles what this task has done
        /// before without a command, such as opening a ``Gate``.
        var hasNewWaiter = false

        /// Removes the sleepers whose deadline has passed.
        mutating func takeDueSleepers() -> [CheckedContinuation<Void, any Error>] {
            let due = sleepers.filter { $0.value.deadline <= now }
            for key in due.keys { sleepers[key] = nil }
            return due.sorted { ($0.value.deadline, $0.key) < ($1.value.deadline, $1.key) }.map(\.value.continuation)
        }
    }

    /// A start time far from 0, so that a test notices if a difference of times is used as a time.
    private static let start: Int64 = 1_000_000_000_000

    private let passesTime: Bool
    private let startDate: Date
    private let state = Locked(State())

    init(passesTime: Bool, startingAt date: Date) {
        self.passesTime = passesTime
        startDate = date
    }

    var now: Int64 { state.withLock { $0.now } }
    var elapsed: Int64 { now - ScriptedClock.start }
    var date: Date { startDate.addingTimeInterval(Double(elapsed) / 1e9) }

    // MARK: The session's thread

    /// Attaches a session. - Returns: `false` if another session is attached.
    func attach(_ waker: Waker) -> Bool {
        state.withLock { state in
            guard state.waker == nil else { return false }
            state.waker = waker
            return true
        }
    }

    /// Detaches the session, which has ended, and ends every wait.
    func detach() {
        let (waiters, sleepers) = state.withLock { state in
            state.waker = nil
            state.now = state.limit
            defer { (state.waiters, state.sleepers) = ([], [:]) }
            return (state.waiters, state.sleepers.values.map(\.continuation))
        }
        HomeThread.run {
            for waiter in waiters { waiter.continuation.resume() }
            for sleeper in sleepers { sleeper.resume() }
        }
    }

    /// Moves the time if it may pass, and resumes the Swift tasks that waited for that.
    ///
    /// - Parameters:
    ///   - idleness: the waits of the session.
    ///   - hasCommands: whether commands to the session have arrived since `idleness` was determined. It is called under the clock's lock: a test
    ///     that sends a command, or publishes a path, and then reads or moves the time, sees no time pass before the session has handled it.
    ///   - deadline: the time at which the session looks for work in any case.
    ///   - due: the earliest delay of a response.
    /// - Returns: the next action of the session's thread.
    func step(_ idleness: SessionIdleness, hasCommands: () -> Bool, until deadline: Int64, due: Int64) -> Step {
        let (step, sleepers, waiters) = state.withLock { state in
            if state.hasNewWaiter || hasCommands() {
                state.hasNewWaiter = false
                return (Step.look, [CheckedContinuation<Void, any Error>](), [Waiter]())
            }
            guard !idleness.usesFiles else { return (.wait, [], []) }
            let sleeps = state.sleepers.values.map(\.deadline).min() ?? .max
            if state.limit > state.now {
                state.now = max(state.now, min(state.limit, deadline, due, sleeps))
                return (.look, state.takeDueSleepers(), [])
            }
            let next = min(idleness.deadline, due, sleeps)
            if passesTime, next < .max {
                (state.now, state.limit) = (max(state.now, next), max(state.now, next))
                return (.look, state.takeDueSleepers(), [])
            }
            var met: [Waiter] = []
            state.waiters.removeAll { waiter in
                let isMet =
                    switch waiter.awaited {
                    case .moment(let moment): moment <= state.now
                    case .idleness: !idleness.asksHandlers
                    }
                if isMet { met.append(waiter) }
                return isMet
            }
            return (.wait, [], met)
        }
        if !sleepers.isEmpty || !waiters.isEmpty {
            HomeThread.run {
                for sleeper in sleepers { sleeper.resume() }
                for waiter in waiters { waiter.continuation.resume() }
            }
        }
        return step
    }

    // MARK: Waits

    func advance(by duration: Duration) async {
        let nanoseconds = duration.nanoseconds
        await wait { state in
            let limit = state.limit + min(max(0, nanoseconds), Int64.max / 2 - state.limit)
            state.limit = limit
            if state.waker == nil { state.now = limit }
            return .moment(limit)
        }
    }

    func waitUntilIdle() async { await wait { _ in .idleness } }

    private func wait(for change: @Sendable (inout State) -> Awaited) async {
        await withCheckedContinuation { continuation in
            let waker = state.withLock { state in
                let awaited = change(&state)
                guard state.waker != nil else { return state.waker }
                state.waiters.append(Waiter(awaited: awaited, continuation: continuation))
                state.hasNewWaiter = true
                return state.waker
            }
            if let waker { waker.wake() } else { continuation.resume() }
        }
    }

    func sleep(for duration: Duration) async throws {
        let nanoseconds = duration.nanoseconds
        let key = state.withLock { state in
            state.nextSleeper += 1
            return state.nextSleeper
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let isCancelled = Task.isCancelled
                let waker = state.withLock { state in
                    if !isCancelled, let waker = state.waker {
                        state.sleepers[key] = Sleeper(
                            deadline: state.now + min(max(0, nanoseconds), Int64.max / 2 - state.now), continuation: continuation)
                        return waker as Waker?
                    }
                    return nil
                }
                if let waker {
                    waker.wake()
                    // A cancellation before this line has found no sleeper.
                    if Task.isCancelled { cancelSleep(key) }
                } else if isCancelled {
                    continuation.resume(throwing: CancellationError())
                } else {
                    continuation.resume()
                }
            }
        } onCancel: {
            cancelSleep(key)
        }
    }

    private func cancelSleep(_ key: Int) {
        let sleeper = state.withLock { $0.sleepers.removeValue(forKey: key) }
        sleeper?.continuation.resume(throwing: CancellationError())
    }
}
