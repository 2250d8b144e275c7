import EventLoop
import NIOCore
import Pacing

/// The times at which the configuration is loaded for requests. Requests that arrive before a load begins share it, and a load begins when
/// the time of the ones before it is paid back. Times are in nanoseconds.
struct ReloadTurns: Hashable, Sendable {
    /// The step that follows an event.
    enum Step: Hashable, Sendable {
        /// The configuration is loaded, for all requests that wait.
        case begin
        /// ``wake(at:)`` is called at this time.
        case wake(at: Int64)
        case nothing
    }

    /// The number of seconds that a second of loading costs: with 10, loading has a tenth of the time.
    static let price: Int64 = 10
    /// The least time that a load counts: it also writes lines to the log.
    static let leastWork = WebLimits.second / 10
    /// The debt with which the next load may begin: six short ones are made at once, and then one each second.
    static let allowance = 5 * WebLimits.second

    /// The most that a load costs, so that the next one begins 5 s later at the latest: on a busy machine most of its time is waiting.
    static let highestCost = 2 * allowance

    private var bucket = CostBucket(allowance: Self.allowance)
    private var isWanted = false
    private var isRunning = false
    private var isWaking = false

    /// A request arrives.
    mutating func request(at now: Int64) -> Step {
        isWanted = true
        return next(at: now)
    }

    /// The load has ended. - Parameter work: the time that it took.
    mutating func end(work: Int64, at now: Int64) -> Step {
        isRunning = false
        bucket.spend(min(max(work, Self.leastWork).multipliedSaturated(by: Self.price), Self.highestCost), at: now)
        return next(at: now)
    }

    /// The time of a ``Step/wake(at:)`` has come.
    mutating func wake(at now: Int64) -> Step {
        isWaking = false
        return next(at: now)
    }

    private mutating func next(at now: Int64) -> Step {
        guard isWanted, !isRunning, !isWaking else { return .nothing }
        guard bucket.readyAt <= now else {
            isWaking = true
            return .wake(at: bucket.readyAt)
        }
        (isWanted, isRunning) = (false, true)
        return .begin
    }
}

/// Loads the configuration for requests at the times of ``ReloadTurns``.
final class ReloadQueue: Sendable {
    private struct State: Sendable {
        var turns = ReloadTurns()
        var waiting: [Request] = []

        /// Takes the first request, and those that confirm the same number. The others wait for the next load.
        mutating func takeNext() -> [Request] {
            guard let first = waiting.first else { return [] }
            defer { waiting.removeAll { $0.confirmed == first.confirmed } }
            return waiting.filter { $0.confirmed == first.confirmed }
        }
    }

    private struct Request: Sendable {
        var confirmed: Int?
        var continuation: CheckedContinuation<ReloadOutcome, Never>
    }

    private let load: @Sendable (_ confirmed: Int?) async -> ReloadOutcome
    private let state = Locked(State())

    init(_ load: @escaping @Sendable (_ confirmed: Int?) async -> ReloadOutcome) { self.load = load }

    /// Loads the configuration. Only requests with the same number share a load.
    ///
    /// - Parameter confirmed: the number of removed targets that the user expects; `nil` without one.
    /// - Returns: the outcome of a load that begins after this call.
    func reload(confirmed: Int? = nil) async -> ReloadOutcome {
        await withCheckedContinuation { continuation in
            let step = state.withLock { state in
                state.waiting.append(Request(confirmed: confirmed, continuation: continuation))
                return state.turns.request(at: Connections.now)
            }
            perform(step)
        }
    }

    private func perform(_ step: ReloadTurns.Step) {
        switch step {
        case .begin:
            let requests = state.withLock { state in
                let requests = state.takeNext()
                // The turn of this load has begun, so this one follows its end.
                if !state.waiting.isEmpty { _ = state.turns.request(at: Connections.now) }
                return requests
            }
            Task { [self] in
                let began = Connections.now
                let outcome = await load(requests.first?.confirmed)
                let now = Connections.now
                let next = state.withLock { $0.turns.end(work: now - began, at: now) }
                for request in requests { request.continuation.resume(returning: outcome) }
                perform(next)
            }
        case .wake(let time):
            Task { [self] in
                try? await Task.sleep(for: .nanoseconds(max(0, time - Connections.now)))
                perform(state.withLock { $0.turns.wake(at: Connections.now) })
            }
        case .nothing: break
        }
    }
}
