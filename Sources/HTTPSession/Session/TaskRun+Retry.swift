internal import EventLoop
internal import Foundation
internal import HTTPTypes

/// What follows after an attempt that failed: another one, for the whole or for the rest.
extension TaskRun {
    /// The attempt has failed: another one follows, or the task ends with the error.
    func failed(with error: HTTPSessionError, facts: TransferFacts? = nil) {
        var failure = self.failure(error.code)
        failure.isDeadConnection = error.code == .connectionLost && exchange.head == nil && facts?.wasResent == true
        failure.hasProgressed = resumption != nil && progress.received > exchange.receivedBefore
        failure.isBeyondRecall = task.kind == .stream && progress.received > 0
        hasPaidRetry = false
        if holds(after: error, failure) { return }
        wasReleased = false
        switch decide(failure) {
        case .giveUp: end(with: error)
        case .retryDeadConnection:
            needsFreshConnection = true
            metrics.retryCount += 1
            loop.outbox.announce(.willRetry(task, error))
            goOn(with: request)
        case .retry(let delay): retry(after: error, delay: delay)
        }
    }

    /// How long to wait before the request is made again instead of taking this response, if it is to be made again.
    func retryDelay(insteadOf head: ResponseHead) -> Int64? {
        guard head.statusCode >= 400 else { return nil }
        var failure = self.failure(.unacceptableStatus)
        failure.statusCode = head.statusCode
        failure.retryAfter = head.firstValue(of: "retry-after").flatMap { RetryAfter.parse($0, now: Date()) }
        guard case .retry(let delay) = decide(failure) else { return nil }
        return delay
    }

    private func failure(_ code: HTTPSessionError.Code) -> RetryMachine.Failure {
        RetryMachine.Failure(code: code, isIdempotent: request.isIdempotent, hasSent: exchange.isConnected)
    }

    private func decide(_ failure: RetryMachine.Failure) -> RetryMachine.Decision {
        retries.decide(failure, remaining: remainingTime, draw: .random(in: 0 ... .max))
    }

    func retry(after error: HTTPSessionError, delay: Int64) {
        metrics.retryCount += 1
        metrics.timeBackingOff += .nanoseconds(delay)
        loop.noteTrouble(with: origin)
        loop.outbox.announce(.willRetry(task, error))
        // It backs off even for no time: the budget is asked when the time is over.
        goOn(with: request, delay: max(1, delay))
    }

    // MARK: The rest of a download

    /// Whether bytes of this request's response may be put together from several: one that asks for no part itself.
    private var isContinuable: Bool {
        guard task.kind == .download, case .none = request.body else { return false }
        let fields = request.headerFields
        return request.method == .get && fields[.range] == nil && fields[.ifRange] == nil && fields[.acceptEncoding] == nil
    }

    /// What a download asks for: the representation as it is, and of that only what is not here yet.
    func downloadLines() -> [String] {
        exchange.receivedBefore = progress.received
        guard isContinuable else { return [] }
        guard let resumption, progress.received > 0, resumption.isSameResource(request.url) else {
            return ["Accept-Encoding: identity"]
        }
        exchange.asksForRest = true
        return resumption.fieldLines(after: progress.received) + ["Accept-Encoding: identity"]
    }

    /// A new body begins: what can be known for later is kept.
    func noteWhole(_ head: ResponseHead) {
        resumption = isContinuable ? Resumption(whole: head, from: request.url, now: Date()) : nil
    }

    /// Takes the response for the rest of the body, if it is that.
    func takeRest(_ head: ResponseHead) -> Intake? {
        guard exchange.asksForRest, let resumption else {
            guard head.statusCode == 206, isContinuable else { return nil }
            return .abort(HTTPSessionError(.badServerResponse, "the server sent a part (206) where the whole was asked for"))
        }
        switch resumption.judge(head, received: progress.received) {
        case .append(let total):
            hasReturnedToStart = false
            self.resumption?.total = total
            progress.expectedToReceive = total
            metrics.bytesResumed += progress.received
            exchange.destination = job.destination
            exchange.body = .kept
            loop.outbox.announce(.downloadContinued(task, offset: progress.received, total: total))
            return .taken
        case .keep where mayReturnToStart(head):
            hasReturnedToStart = true
            exchange.next = .returnToStart
            exchange.body = .held(Data())
            return .taken
        case .replace, .keep: return nil
        case .startOver:
            self.resumption = nil
            exchange.next = .startOver
            exchange.isRefused = true
            return .abort(HTTPSessionError(.badServerResponse, "the rest is of another version"))
        case .complete:
            exchange.next = .complete
            exchange.body = .held(Data())
            return .taken
        }
    }

    /// An address that a redirect led to may hold for a while only, as signed ones do: the first one then leads to another.
    private func mayReturnToStart(_ head: ResponseHead) -> Bool {
        [401, 403, 404, 410].contains(head.statusCode) && request.url != task.request.url && !hasReturnedToStart
    }

    func returnToStart() {
        redirects = 0
        turn(to: task.request)
    }

    /// The part was shorter than what was asked for (RFC 9110 section 15.3.7): the rest of the rest follows.
    func continuePart() {
        guard progress.received > exchange.receivedBefore else {
            return failed(with: HTTPSessionError(.connectionLost, "the server sent nothing of the rest"))
        }
        goOn(with: request)
    }

    var isPart: Bool {
        guard exchange.asksForRest, case .kept = exchange.body, let total = resumption?.total else { return false }
        return progress.received < total
    }
}
