import Console
import Reachability

/// What happens to one transfer, as far as somebody is told.
enum TransferEvent: Hashable {
    /// It has its turn.
    case started
    /// A request is about to go.
    case requested
    /// The server has answered.
    case answered(status: Int, phrase: String)
    case redirected(to: String)
    /// A transaction has ended, and got so far.
    case measured(AttemptStage)
    /// A probe of the endpoint that the transfer connects to has a result.
    case diagnosed(Diagnosis)
    /// The attempt has been without an answer for ``TransferStatus/silenceLimit``, or the cause of that has become known since.
    case silent
    /// It goes on behind so many bytes.
    case continued(offset: Int64, total: Int64?)
    /// Another attempt follows.
    case failedForNow(Trouble)
    /// It goes on when the network is back.
    case networkGone(Trouble)
    /// The file is complete already, with so many bytes: nothing has been received, and `finished` follows.
    case unchanged(size: Int64)
    /// The finished file is at this path; `finished` follows.
    case saved(file: String)
    case finished
    case failed(Trouble)
    /// By a signal; what is here is kept where it may be continued.
    case stopped
}

/// One transfer as it is now: events and samples go in, states come out. The contract's states are ``word``.
struct TransferStatus: Hashable {
    enum Phase: Hashable {
        /// Others come first.
        case queued
        /// Nothing has come of the present attempt.
        case connecting
        /// Bytes come, or go.
        case moving
        case waitingForNetwork(Trouble)
        case backingOff(Trouble)
        case finished
        case failed(Trouble)
        case stopped

        var isOver: Bool {
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
    /// As the user wrote it, without user and password.
    let url: String
    /// The name of the file, for people: of a finished one the last component of its path.
    private(set) var name: String
    /// The name of the file as it was before the server named it.
    let requestedName: String
    /// The path of the finished file; `nil` before, and of uploads.
    private(set) var file: String?
    private(set) var phase = Phase.queued
    /// Since when the phase holds.
    private(set) var since: Moment
    /// When it had its turn.
    private(set) var startedAt: Moment?
    /// How many bytes have come, or gone.
    private(set) var bytes: Int64 = 0
    private(set) var total: Int64?
    /// Where the last continuation began; `nil`: all of it came in one piece so far.
    private(set) var resumedFrom: Int64?
    /// Of those bytes, how many were here before this run.
    private(set) var keptBefore: Int64 = 0
    private(set) var attempt = 0
    /// Whether the file was complete before, and is untouched.
    private(set) var isUnchanged = false
    /// How long until the next attempt, when ``since`` or the last sample was taken.
    private(set) var nextAttemptAt: Int64?
    private var meter: RateMeter?
    /// Whether a request of the present attempt has gone.
    private var isTrying = false
    /// Whether anything has come in this run.
    private var hasBegun = false
    /// How far the last attempt got.
    private(set) var stage = AttemptStage.unresolved
    /// The latest result of a probe, while there is no answer.
    private(set) var diagnosis: Diagnosis?
    /// The proxy (HOST:PORT) that the transfer connects to; `nil`: it connects to the server.
    var proxy: String?
    /// Whether TLS follows the connection.
    var usesTLS = false
    /// Since when the network is gone, also over attempts that found it so.
    private var offlineSince: Moment?

    init(_ direction: Direction = .download, url: String, name: String, at now: Moment) {
        self.direction = direction
        self.url = url
        (self.name, requestedName) = (name, name)
        since = now
    }

    /// - Returns: whether the state is another one, which is told at once.
    mutating func see(_ event: TransferEvent, at now: Moment) -> Bool {
        guard !phase.isOver else { return false }
        switch event {
        case .started:
            startedAt = now
            return enter(.connecting, now)
        case .requested:
            // A redirect and a challenge belong to the same attempt.
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
            guard phase == .connecting, (200...299).contains(status) else { return false }
            offlineSince = nil
            // Of an upload the answer comes last, or is one of several.
            guard direction == .download else { return false }
            // A part is told of by what follows it.
            if status != 206 { hasBegun = true }
            return enter(.moving, now)
        case .redirected: return false
        case .continued(let offset, let total):
            if !hasBegun { keptBefore = offset }
            hasBegun = true
            resumedFrom = offset
            // What went and did not arrive goes again.
            bytes = direction == .upload ? offset : max(bytes, offset)
            if let total { self.total = total }
            meter = RateMeter(bytes: bytes, at: now.monotonicNanoseconds)
            (phase, since, offlineSince) = (.moving, now, nil)
            return true
        case .failedForNow(let trouble):
            isTrying = false
            return enter(.backingOff(explained(trouble)), now)
        case .networkGone(let trouble):
            isTrying = false
            let isOther = enter(.waitingForNetwork(explained(trouble)), now)
            offlineSince = offlineSince ?? now
            since = offlineSince ?? now
            return isOther
        case .unchanged(let size):
            (bytes, total, keptBefore, isUnchanged) = (size, size, size, true)
            return false
        case .saved(let path):
            (file, name) = (path, path.split(separator: "/").last.map(String.init) ?? name)
            return name != requestedName
        case .finished:
            total = bytes
            return enter(.finished, now)
        case .failed(let trouble): return enter(.failed(trouble), now)
        case .stopped: return enter(.stopped, now)
        }
    }

    /// The trouble with the cause that is known of the missing connection.
    func explained(_ trouble: Trouble) -> Trouble {
        // libcurl 7.88 takes the time of the connection when the handshake is over. A probe shows earlier that there is one.
        let isHandshake = usesTLS && stage == .unconnected && diagnosis == .answers
        return trouble.explained(at: isHandshake ? .connected : stage, by: diagnosis, through: proxy)
    }

    /// - Returns: whether the cause is another one.
    private mutating func learn(_ diagnosis: Diagnosis) -> Bool {
        let before = cause
        self.diagnosis = diagnosis
        switch phase {
        case .backingOff(let trouble): phase = .backingOff(explained(trouble))
        case .waitingForNetwork(let trouble): phase = .waitingForNetwork(explained(trouble))
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

    /// How far the transfer has come; `wait`: how long until the next attempt.
    mutating func sample(bytes: Int64, total: Int64?, wait: Duration? = nil, at now: Moment) {
        guard phase != .queued, !phase.isOver else { return }
        // Until the request that follows the server's word, the library has no word of its own.
        let bytes = direction == .upload ? max(bytes, resumedFrom ?? 0) : bytes
        // Of a whole that begins anew nothing was continued.
        if bytes < resumedFrom ?? 0 { (resumedFrom, keptBefore) = (nil, 0) }
        if direction == .upload, bytes > self.bytes {
            hasBegun = true
            if phase == .connecting { _ = enter(.moving, now) }
        }
        self.bytes = bytes
        if let total { self.total = total }
        meter?.add(bytes: bytes, at: now.monotonicNanoseconds)
        if case .backingOff = phase { nextAttemptAt = wait.map { now.advanced(by: $0).monotonicNanoseconds } }
    }

    /// Bytes a second over the last seconds.
    func rate(at now: Moment) -> Int64? { meter?.rate(at: now.monotonicNanoseconds) }

    /// How long nothing has come although something should; `nil`: something does.
    func silence(at now: Moment) -> Duration? {
        guard let silence = meter?.silence(at: now.monotonicNanoseconds), silence >= RateMeter.window, !isWhole else {
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

    /// Everything has come, and is being looked at and given its name.
    var isWhole: Bool { phase == .moving && total == bytes && bytes > 0 }

    /// 0 to 100, rounded down; `nil` while the length is not known.
    var percent: Int? { TransferStatus.percent(bytes, of: total) }

    static func percent(_ bytes: Int64, of total: Int64?) -> Int? {
        guard let total else { return nil }
        return total <= 0 ? 100 : Int(Double(max(0, min(bytes, total))) / Double(total) * 100)
    }

    /// What stands in its way, or has ended it.
    var trouble: Trouble? {
        switch phase {
        case .waitingForNetwork(let trouble), .backingOff(let trouble), .failed(let trouble): trouble
        case .queued, .connecting, .moving, .finished, .stopped: nil
        }
    }

    /// What is missing, as far as it is known: also while an attempt is without an answer.
    var cause: Cause? {
        if phase == .connecting { return diagnosis?.cause(through: proxy) }
        return trouble?.cause
    }

    /// How long an attempt may be without an answer until its endpoint is probed, in nanoseconds.
    private static let patience: Int64 = 500_000_000
    /// How long an attempt may be without an answer until that is reported.
    static let silenceLimit = Duration.seconds(3)

    /// How long the attempt has been without an answer, once that is worth a word.
    func unansweredTime(at now: Moment) -> Duration? {
        guard phase == .connecting, isTrying else { return nil }
        let time = now.elapsed(since: since)
        return time >= TransferStatus.silenceLimit ? time : nil
    }

    /// When the endpoint is to be probed: at once where that is in the past; `nil`: never.
    var probesAt: Int64? {
        switch phase {
        case .connecting where isTrying: since.monotonicNanoseconds + TransferStatus.patience
        case .backingOff(let trouble), .waitingForNetwork(let trouble):
            trouble.connectionFailure != nil && stage < .connected ? 0 : nil
        default: nil
        }
    }

    /// The contract's word for the state.
    enum Word: String, CaseIterable {
        case waiting, running, suspended
        case backingOff = "backing_off"
        case finished, failed
    }

    var word: Word {
        switch phase {
        case .queued, .waitingForNetwork: .waiting
        case .connecting, .moving: .running
        case .backingOff: .backingOff
        case .finished: .finished
        case .failed: .failed
        // It can go on, and does not.
        case .stopped: .suspended
        }
    }
}
