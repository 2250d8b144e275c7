import Pacing

/// The life of one connection: which requests are answered, and when it is closed.
///
/// ```
/// waiting ─head→ reading ─end→ answering ─end of response→ waiting
///    │              │              └─last response→ finishing ─output closed→ lingering ─time, or the client closed→ closed
///    └─time, or replaced→ closed ←─┘ time
/// ```
/// A request is read when the response to the one before it is written, and the client has read most of it (``input(at:)``). The pieces that
/// are read may still contain two, which are answered in order. A refusal is the last response: it waits for those before it.
struct ConnectionMachine: Sendable {
    /// A request that has no complete response yet.
    struct Exchange: Hashable, Sendable {
        var isHead = false
        /// Whether the response is a stream, which has no end.
        var isStream = false
        /// Whether the connection stays open after the response.
        var keepsAlive = true
        /// Whether the client speaks HTTP/1.0.
        var isOldVersion = false
    }

    /// The step that follows an event.
    enum Step: Hashable, Sendable {
        /// The request, or the part of a response, is passed on.
        case pass
        /// Nothing is passed on.
        case discard
        /// The error is sent as the last response.
        case refuse(WebProblem)
        /// The connection is closed after what was written: first its output, so that the client can read it.
        case finish
        /// The connection is closed at once.
        case close
    }

    /// The treatment of the bytes that the client has sent.
    enum Input: Hashable, Sendable {
        /// They are passed on.
        case pass
        /// They are passed on at this time, because the client sends requests too fast.
        case wait(until: Int64)
        /// They stay where they are until a response is written, and nothing is read.
        case hold
        /// They are discarded, and nothing is read: the response has no end.
        case ignore
        /// They are discarded, and so are those that follow.
        case discard
    }

    private let limits: WebLimits
    private var rate: CostBucket
    /// Whether the connection only answers requests for the state of the service.
    let isReserved: Bool
    /// The request whose content is read. It is passed on when it is complete.
    private var reading: Exchange?
    private var readingSince: Int64 = 0
    private var contentBytes = 0
    private var contentLimit = 0
    private var exchanges: [Exchange] = []
    /// The last response, which waits for those before it.
    private var refusal: WebProblem?
    private var isFirst = true
    private var isInputClosed = false
    /// The time since which the client has sent nothing that counts: the connection's start, or the end of the last response.
    private var waitingSince: Int64
    /// The time since which the client reads too slowly for what is written; `nil` if it does not.
    private(set) var stalledSince: Int64?
    /// The time of the last response, and the time since which the client has all of it.
    private var finishingSince: Int64?
    private var lingeringSince: Int64?

    init(limits: WebLimits, isReserved: Bool = false, now: Int64) {
        (self.limits, self.isReserved, waitingSince) = (limits, isReserved, now)
        rate = CostBucket(interval: limits.requestInterval(delayed: 0), burst: limits.requestBurst)
    }

    /// The time since which the client neither completes a request nor reads a response; `nil` if a request is answered. Such a
    /// connection may be closed for another.
    var idleSince: Int64? {
        guard exchanges.isEmpty else { return stalledSince }
        guard finishingSince == nil else { return lingeringSince }
        return reading == nil ? waitingSince : readingSince
    }

    /// The request whose response is written.
    var current: Exchange? { exchanges.first }

    /// Whether the response that is written is the last one.
    var isLastResponse: Bool { exchanges.first.map { !$0.keepsAlive || (exchanges.count == 1 && isInputClosed) } ?? true }

    /// Whether a further request would be answered.
    var acceptsRequests: Bool { refusal == nil && finishingSince == nil && exchanges.allSatisfy(\.keepsAlive) }

    /// Whether the only request without a complete response is the one that is answered.
    var answersOneRequest: Bool { exchanges.count == 1 && refusal == nil }

    /// Returns what happens to the bytes of the client.
    func input(at now: Int64) -> Input {
        guard acceptsRequests else {
            if exchanges.isEmpty { return .discard }
            return exchanges.first?.isStream == true ? .ignore : .hold
        }
        guard exchanges.isEmpty, stalledSince == nil else { return .hold }
        return reading == nil && rate.readyAt > now ? .wait(until: rate.readyAt) : .pass
    }

    /// A complete head of a request. A problem is the reason why it is refused. The more connections are delayed, because they send requests
    /// faster than they may, the slower is each.
    mutating func receivedHead(
        _ exchange: Exchange, contentLength: Int?, readsContent: Bool = false, problem: WebProblem?, delayed: Int = 0,
        at now: Int64
    ) -> Step {
        guard acceptsRequests else { return .discard }
        if let problem { return refuse(problem, at: now) }
        contentLimit = readsContent ? limits.readContentBytes : limits.contentBytes
        if let contentLength, contentLength > contentLimit { return refuse(contentTooLarge, at: now) }
        (reading, readingSince, contentBytes) = (exchange, now, 0)
        rate.spend(limits.requestInterval(delayed: delayed), at: now)
        return .pass
    }

    /// A part of a request's content, of which at most the beginning is read.
    mutating func receivedContent(_ count: Int, at now: Int64) -> Step {
        guard reading != nil else { return .discard }
        contentBytes += min(count, contentLimit + 1)
        return contentBytes > contentLimit ? refuse(contentTooLarge, at: now) : .discard
    }

    /// The end of a request, which is passed on.
    mutating func receivedEnd() -> Step {
        guard var exchange = reading else { return .discard }
        if exchange.isStream { exchange.keepsAlive = false }
        exchanges.append(exchange)
        (reading, isFirst) = (nil, false)
        return .pass
    }

    /// Bytes that are no HTTP request, or that exceed a limit.
    mutating func receivedMalformed(_ problem: WebProblem, at now: Int64) -> Step {
        reading == nil && !acceptsRequests ? .discard : refuse(problem, at: now)
    }

    /// The client sends nothing more. It may still read.
    mutating func closedInput(at now: Int64) -> Step {
        isInputClosed = true
        if exchanges.first?.isStream == true || lingeringSince != nil { return .close }
        return exchanges.isEmpty && finishingSince == nil ? .close : .discard
    }

    /// All output is written, and the client knows that nothing follows.
    mutating func closedOutput(at now: Int64) -> Step {
        lingeringSince = now
        return isInputClosed ? .close : .discard
    }

    /// Makes the response that is written the last one.
    mutating func endAfterResponse() {
        if !exchanges.isEmpty { exchanges[0].keepsAlive = false }
    }

    /// The end of a response.
    mutating func wroteEnd(at now: Int64) -> Step {
        guard !exchanges.isEmpty else { return .pass }
        let exchange = exchanges.removeFirst()
        guard exchange.keepsAlive else { return finish(at: now) }
        guard exchanges.isEmpty else { return .pass }
        if let refusal { return send(refusal, at: now) }
        if isInputClosed { return finish(at: now) }
        waitingSince = now
        return .pass
    }

    /// The client reads again, or reads too slowly for what is written.
    mutating func changedWritability(_ isWritable: Bool, at now: Int64) { stalledSince = isWritable ? nil : stalledSince ?? now }

    /// Whether a time limit is exceeded.
    func isOverdue(at now: Int64) -> Bool {
        if let lingeringSince { return now - lingeringSince >= limits.lingerTime }
        if let stalledSince, now - stalledSince >= limits.stallTime { return true }
        if let finishingSince { return now - finishingSince >= limits.stallTime }
        if reading != nil { return now - readingSince >= limits.contentTime }
        guard exchanges.isEmpty else { return false }
        return now - waitingSince >= (isFirst ? limits.headTime : limits.idleTime)
    }

    private var contentTooLarge: WebProblem {
        WebProblem(.contentTooLarge, "the content is larger than \(contentLimit) bytes")
    }

    private mutating func refuse(_ problem: WebProblem, at now: Int64) -> Step {
        reading = nil
        guard exchanges.isEmpty else {
            refusal = problem
            return .discard
        }
        return send(problem, at: now)
    }

    private mutating func send(_ problem: WebProblem, at now: Int64) -> Step {
        refusal = problem
        finishingSince = now
        return .refuse(problem)
    }

    private mutating func finish(at now: Int64) -> Step {
        finishingSince = now
        return .finish
    }
}
