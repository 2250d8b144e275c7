internal import EventLoop

/// Decides which reports of connections are passed to the monitor's thread: those of monitored endpoints, and of each endpoint at
/// most one success and one failure in ``gap``.
final class ReportFilter: Sendable {
    /// The minimum time between two reports of one kind for one endpoint, in nanoseconds.
    static let gap: Int64 = 100_000_000

    private struct Passed: Sendable {
        var success = Int64.min
        var failure = Int64.min
    }

    private struct State: Sendable {
        // The number of targets by the hash values of their endpoints.
        var targets: [Int: Int32] = [:]
        var passed: [Int: Passed] = [:]
    }

    private let state = Locked(State())

    /// Adds a target.
    func add(_ endpoint: Endpoint) { state.withLock { $0.targets[endpoint.hashValue, default: 0] += 1 } }

    /// Removes targets.
    func remove(_ endpoints: [Endpoint]) {
        state.withLock { state in
            for hash in endpoints.lazy.map(\.hashValue) {
                guard let count = state.targets[hash] else { continue }
                state.targets[hash] = count > 1 ? count - 1 : nil
                if count <= 1 { state.passed[hash] = nil }
            }
        }
    }

    /// Returns whether a report is passed, and counts it.
    func admits(_ report: PassiveReport, at now: Int64) -> Bool {
        state.withLock { state in
            let hash = report.endpoint.hashValue
            guard state.targets[hash] != nil else { return false }
            var passed = state.passed[hash] ?? Passed()
            switch report.outcome {
            case .success:
                guard now >= passed.success else { return false }
                passed.success = now + Self.gap
            case .failure:
                guard now >= passed.failure else { return false }
                passed.failure = now + Self.gap
            }
            state.passed[hash] = passed
            return true
        }
    }
}
