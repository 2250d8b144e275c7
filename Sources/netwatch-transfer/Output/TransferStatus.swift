import Console
import FoundationEssentials
import HTTPSession
import Reachability

/// An event of one transfer that may be reported.
enum TransferEvent: Hashable {
    /// The transfer has started.
    case started
    /// A request is about to be sent.
    case requested
    /// A response has arrived.
    case answered(status: Int, phrase: String)
    case redirected(to: String)
    /// A transaction has ended at this stage.
    case measured(AttemptStage)
    /// A probe of the endpoint that the transfer connects to has a result.
    case diagnosed(Diagnosis)
    /// The attempt has had no response for ``TransferStatus/silenceLimit``, or the cause of the silence has become known.
    case silent
    /// The transfer continues after `offset` bytes.
    case continued(offset: Int64, total: Int64?)
    /// The attempt failed; another one follows.
    case failedForNow(TransferProblem)
    /// The network is missing; the transfer continues when it returns.
    case networkGone(TransferProblem)
    /// The file is already complete, with `size` bytes: nothing was received, and `finished` follows.
    case unchanged(size: Int64)
    /// The finished file is at this path; `finished` follows.
    case saved(file: String)
    case finished
    case failed(TransferProblem)
    /// A signal stopped the transfer. Bytes that can be continued are kept.
    case stopped
}

/// The state machine of one transfer: events and samples change its state. The name of the state in records
/// is ``recordState``.
struct TransferStatus: Hashable {
    enum Phase: Hashable {
        /// Other transfers run first.
        case queued
        /// The current attempt has no response yet.
        case connecting
        /// Bytes are transferred.
        case moving
        case waitingForNetwork(TransferProblem)
        case backingOff(TransferProblem)
        case finished
        case failed(TransferProblem)
        case stopped

        var isFinal: Bool {
            switch self {
            case .finished, .failed, .stopped: true
            case .queued, .connecting, .moving, .waitingForNetwork, .backingOff: false
            }
        }
    }

    enum Direction: Hashable {
        case download, upload
    }

    let direction: Direction
    /// The URL as the user wrote it, without user and password.
    let url: String
    /// The name of the file for people; after the end, the last component of its path.
    private(set) var name: String
    /// The name of the file before the server named it.
    let requestedName: String
    /// The path of the finished file; `nil` before, and for uploads.
    private(set) var file: String?
    private(set) var phase = Phase.queued
    /// The time since which the phase holds.
    private(set) var since: Moment
    /// The time at which the transfer started.
    private(set) var startedAt: Moment?
    /// The number of bytes received or sent.
    private(set) var bytes: Int64 = 0
    private(set) var total: Int64?
    /// The offset of the last continuation; `nil` if the transfer was never continued.
    private(set) var resumedFrom: Int64?
    /// The number of those bytes that earlier runs transferred.
    private(set) var bytesOfEarlierRuns: Int64 = 0
    private(set) var attempt = 0
    /// Whether the file was already complete, and is unchanged.
    private(set) var isUnchanged = false
    /// The time of the next attempt on the monotonic clock, in nanoseconds; `nil` if none is scheduled.
    private(set) var nextAttemptAt: Int64?
    private var meter: RateMeter?
    /// Whether a request of the current attempt was sent.
    private var isTrying = false
    /// Whether any bytes were transferred in this run.
    private var hasBegun = false
    /// The stage that the last attempt reached.
    private(set) var stage = AttemptStage.unresolved
    /// The latest result of a probe, while there is no response.
    private(set) var diagnosis: Diagnosis?
    /// The proxy (HOST:PORT) that the transfer connects to; `nil` if it connects to the server.
    var proxy: String?
    /// The URLs to which the requests were redirected, in order, without query and user.
    private(set) var redirects: [String] = []
    /// Whether a TLS handshake follows the connection.
    var usesTLS = false
    /// The time since which the network is missing, including attempts that failed because of it.
    private var offlineSince: Moment?

    init(_ direction: Direction = .download, url: String, name: String, at now: Moment) {
        self.direction = direction
        self.url = url
        (self.name, requestedName) = (name, name)
        since = now
    }

    /// Applies an event. - Returns: Whether the state changed, which is reported at once.
    mutating func apply(_ event: TransferEvent, at now: Moment) -> Bool {
        guard !phase.isFinal else { return false }
        switch event {
        case .started:
            startedAt = now
            return enter(.connecting, now)
        case .requested:
            // The requests after a redirect or a challenge belong to the same attempt.
            stage = .unresolved
            guard !isTrying else { return false }
            isTrying = true
            attempt += 1
            return enter(.connecting, now)
        case .measured(let stage):
            self.stage = stage
            return false
        case .silent: return false
        case .diagnosed(let diagnosis): return learn(diagnosis)
        case .answered(let status, _):
            diagnosis = nil
            // A complete response begins the file again: nothing was continued.
            if direction == .download, (200...299).contains(status), status != 206 {
                (resumedFrom, bytesOfEarlierRuns) = (nil, 0)
            }
            guard phase == .connecting, (200...299).contains(status) else { return false }
            offlineSince = nil
            // The response to an upload comes last, or is one of several.
            guard direction == .download else { return false }
            // For 206, the `continued` event that follows decides.
            if status != 206 { hasBegun = true }
            return enter(.moving, now)
        case .redirected: return false
        case .continued(let offset, let total):
            if !hasBegun { bytesOfEarlierRuns = offset }
            hasBegun = true
            resumedFrom = offset
            // Bytes that were sent and did not arrive are sent again.
            bytes = direction == .upload ? offset : max(bytes, offset)
            if let total { self.total = total }
            meter = RateMeter(bytes: bytes, at: now.monotonicNanoseconds)
            (phase, since, offlineSince) = (.moving, now, nil)
            return true
        case .failedForNow(let problem):
            isTrying = false
            return enter(.backingOff(explained(problem)), now)
        case .networkGone(let problem):
            isTrying = false
            let isOther = enter(.waitingForNetwork(explained(problem)), now)
            offlineSince = offlineSince ?? now
            since = offlineSince ?? now
            return isOther
        case .unchanged(let size):
            (bytes, total, bytesOfEarlierRuns, isUnchanged) = (size, size, size, true)
            return false
        case .saved(let path):
            (file, name) = (path, path.split(separator: "/").last.map(String.init) ?? name)
            return name != requestedName
        case .finished:
            total = bytes
            return enter(.finished, now)
        case .failed(let problem): return enter(.failed(problem), now)
        case .stopped: return enter(.stopped, now)
        }
    }

    /// Returns the problem with the known cause of the missing connection.
    func explained(_ problem: TransferProblem) -> TransferProblem {
        // libcurl 7.88 records the time of the connection only after the handshake. A probe shows earlier that there is a
        // connection.
        let isHandshake = usesTLS && stage == .unconnected && diagnosis == .answers
        return problem.explained(at: isHandshake ? .connected : stage, by: diagnosis, through: proxy)
            .behind(redirects, of: host)
    }

    /// The host of the user's URL.
    private var host: String { URL(string: url)?.host(percentEncoded: false) ?? url }

    /// Notes that the next request is sent to this URL, because of a redirect.
    mutating func redirect(to url: URL) {
        let shown = url.withoutSecrets
        // Another attempt may begin with the first URL again.
        if let place = redirects.firstIndex(of: shown) { redirects.removeSubrange(place...) }
        redirects.append(shown)
    }

    /// Records the result of a probe. - Returns: Whether the cause changed.
    private mutating func learn(_ diagnosis: Diagnosis) -> Bool {
        let before = cause
        self.diagnosis = diagnosis
        switch phase {
        case .backingOff(let problem): phase = .backingOff(explained(problem))
        case .waitingForNetwork(let problem): phase = .waitingForNetwork(explained(problem))
        case .queued, .connecting, .moving, .finished, .failed, .stopped: break
        }
        return cause.map { !$0.isSameFailure(as: before) } ?? (before != nil)
    }

    private mutating func enter(_ phase: Phase, _ now: Moment) -> Bool {
        let isSame = self.phase == phase
        self.phase = phase
        nextAttemptAt = nil
        meter = phase == .moving ? RateMeter(bytes: bytes, at: now.monotonicNanoseconds) : nil
        if !isSame { since = now }
        return !isSame
    }

    /// Samples the progress of the transfer. `wait`: the time until the next attempt.
    mutating func sample(bytes: Int64, total: Int64?, wait: Duration? = nil, at now: Moment) {
        guard phase != .queued, !phase.isFinal else { return }
        // The library publishes its progress up to 50 ms late, so it may be older than the continuation.
        let bytes = max(bytes, resumedFrom ?? 0)
        if direction == .upload, bytes > self.bytes {
            hasBegun = true
            if phase == .connecting { _ = enter(.moving, now) }
        }
        self.bytes = bytes
        if let total { self.total = total }
        meter?.add(bytes: bytes, at: now.monotonicNanoseconds)
        if case .backingOff = phase { nextAttemptAt = wait.map { now.advanced(by: $0).monotonicNanoseconds } }
    }

    /// Returns the bytes per second over the last seconds.
    func rate(at now: Moment) -> Int64? { meter?.rate(at: now.monotonicNanoseconds) }

    /// Returns the time without any bytes while bytes are expected; `nil` while bytes are transferred.
    func silence(at now: Moment) -> Duration? {
        guard let silence = meter?.silence(at: now.monotonicNanoseconds), silence >= RateMeter.window, !isComplete else {
            return nil
        }
        return .nanoseconds(silence)
    }

    func timeLeft(at now: Moment) -> Duration? {
        guard let total, let rate = rate(at: now), rate > 0 else { return nil }
        return .nanoseconds(Int64(min(9e18, Double(max(0, total - bytes)) / Double(rate) * 1e9)))
    }

    func timeToNextAttempt(at now: Moment) -> Duration? {
        nextAttemptAt.map { .nanoseconds(max(0, $0 - now.monotonicNanoseconds)) }
    }

    /// Whether all bytes were transferred: a download is verified and renamed now.
    var isComplete: Bool { phase == .moving && total == bytes && bytes > 0 }

    /// The percentage, 0 to 100, rounded down; `nil` while the length is not known.
    var percent: Int? { TransferStatus.percent(bytes, of: total) }

    static func percent(_ bytes: Int64, of total: Int64?) -> Int? {
        guard let total else { return nil }
        return total <= 0 ? 100 : Int(Double(max(0, min(bytes, total))) / Double(total) * 100)
    }

    /// The problem that delays the transfer, or has ended it.
    var problem: TransferProblem? {
        switch phase {
        case .waitingForNetwork(let problem), .backingOff(let problem), .failed(let problem): problem
        case .queued, .connecting, .moving, .finished, .stopped: nil
        }
    }

    /// The known cause of the problem, also while an attempt has no response.
    var cause: Cause? {
        if phase == .connecting { return diagnosis?.cause(through: proxy)?.behind(redirects, of: host) }
        return problem?.cause
    }

    /// The time without a response after which the endpoint is probed, in nanoseconds.
    private static let probeDelay: Int64 = 500_000_000
    /// The time without a response after which that is reported.
    static let silenceLimit = Duration.seconds(3)

    /// Returns the time for which the attempt has had no response; `nil` before ``silenceLimit``.
    func unansweredTime(at now: Moment) -> Duration? {
        guard phase == .connecting, isTrying else { return nil }
        let time = now.elapsed(since: since)
        return time >= TransferStatus.silenceLimit ? time : nil
    }

    /// The time from which the endpoint is probed, in nanoseconds; a time in the past means at once, `nil` never.
    var probesAt: Int64? {
        switch phase {
        case .connecting where isTrying: since.monotonicNanoseconds + TransferStatus.probeDelay
        case .backingOff(let problem), .waitingForNetwork(let problem):
            problem.connectionFailure != nil && stage < .connected ? 0 : nil
        default: nil
        }
    }

    /// The names of the states in records.
    enum RecordState: String, CaseIterable {
        case waiting, running, suspended
        case backingOff = "backing_off"
        case finished, failed
    }

    var recordState: RecordState {
        switch phase {
        case .queued, .waitingForNetwork: .waiting
        case .connecting, .moving: .running
        case .backingOff: .backingOff
        case .finished: .finished
        case .failed: .failed
        // It can be continued by a later run.
        case .stopped: .suspended
        }
    }
}
