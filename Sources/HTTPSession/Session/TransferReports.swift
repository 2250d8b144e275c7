internal import Reachability

/// Reports the outcomes of transfers to the session's path monitor, where they replace probes or cause them.
///
/// At most one success and one failure of each origin are reported in ``gap``. A session without a monitor has no reports.
final class TransferReports {
    /// The minimum time between two reports of one kind for one origin, in nanoseconds.
    static let gap: Int64 = 100_000_000
    /// The number of origins above which all are forgotten. They may then be reported again at once.
    static let limit = 1_000

    /// The evidence of a transfer about the endpoint that it connects to.
    enum Outcome: Hashable {
        case success
        case failure
    }

    private struct Entry {
        /// The endpoint of connections to the origin; `nil` if there is none that can be probed.
        let endpoint: FirstEndpoint?
        var nextSuccess = Int64.min
        var nextFailure = Int64.min
    }

    private let endpoint: (Origin) -> FirstEndpoint?
    private let report: (FirstEndpoint, TransferFacts?) -> Void
    private var entries: [Origin: Entry] = [:]

    /// Creates reports. `endpoint` returns the endpoint of connections to an origin. `report` receives the facts of a success, and
    /// `nil` for a failure.
    init(endpoint: @escaping (Origin) -> FirstEndpoint?, report: @escaping (FirstEndpoint, TransferFacts?) -> Void) {
        self.endpoint = endpoint
        self.report = report
    }

    /// Records the end of a transfer.
    func record(_ outcome: Outcome, at origin: Origin, _ facts: TransferFacts, now: Int64) {
        if entries[origin] == nil {
            if entries.count >= Self.limit { entries = [:] }
            entries[origin] = Entry(endpoint: endpoint(origin))
        }
        guard let entry = entries[origin], let endpoint = entry.endpoint else { return }
        switch outcome {
        case .success:
            guard now >= entry.nextSuccess else { return }
            entries[origin]?.nextSuccess = now + Self.gap
            report(endpoint, facts)
        case .failure:
            guard now >= entry.nextFailure else { return }
            entries[origin]?.nextFailure = now + Self.gap
            report(endpoint, nil)
        }
    }

    /// The outcome of a transfer; `nil` if it shows nothing about its endpoint.
    static func outcome(of error: HTTPSessionError?, _ facts: TransferFacts) -> Outcome? {
        // These transfers have sent nothing, or their response may belong to no request.
        if facts.wasUpgraded || facts.wasSuspendedBeforeSending || facts.hadUnfitConnection || facts.hadSurplus { return nil }
        switch error?.code {
        case .cannotFindHost, .cannotConnectToHost, .connectionLost, .timedOut, .secureConnectionFailed: return .failure
        default: return facts.firstByte == nil ? nil : .success
        }
    }
}

extension TransferFacts {
    /// The time from the first SYN to the connection; `nil` if an earlier connection was used.
    var connectTime: Duration? {
        guard !reusedConnection, let nameLookup, let connect, connect > nameLookup else { return nil }
        return .nanoseconds(connect - nameLookup)
    }
}
