internal import EventLoop
internal import Foundation
internal import HTTPTypes

/// What follows after an attempt that failed: another one, for the whole or for the rest.
extension TaskRun {
    /// The attempt has failed: another one follows, or the task ends with the error.
    func failed(with error: HTTPSessionError, facts: TransferFacts? = nil) {
        upload?.lost(sent: sentEnd, hasSent: exchange.isConnected)
        var failure = self.failure(error.code)
        failure.isDeadConnection =
            error.code == .connectionLost && (facts?.hadSurplus == true || exchange.head == nil && facts?.wasResent == true)
        if resumption != nil { failure.hasProgressed = hasProgressed }
        failure.isRefusal = exchange.trust?.wasRefused == true
        if failure.hasProgressed { retries.progressed() }
        hasPaidRetry = false
        isAskedAgain = true
        if holds(after: error, failure) { return }
        wasReleased = false
        switch decide(failure) {
        case .giveUp where isIntercepted && !failure.isBeyondRecall: askInterceptors(about: error)
        case .giveUp: end(with: error)
        case .retryDeadConnection:
            needsFreshConnection = true
            metrics.retryCount += 1
            loop.outbox.announce(.willRetry(task, error))
            goOn(with: nextAttempt())
        case .retry(let delay): retry(after: error, delay: delay)
        }
    }

    func transferMayRepeat() -> Bool { failure(.connectionLost).isRepeatable }

    /// The response may belong to no request: nothing of it is used.
    func failedBySurplus(with error: HTTPSessionError, facts: TransferFacts) {
        (resumption, exchange.next) = (nil, nil)
        failed(with: error, facts: facts)
    }

    /// Whether bytes came that the next attempt keeps, of a body that has not begun anew.
    private var hasProgressed: Bool {
        resumption != nil && progress.received > exchange.receivedBefore && (exchange.isRest || exchange.receivedBefore == 0)
    }

    /// How long to wait before the request is made again instead of taking this response, if it is to be made again.
    func retryDelay(insteadOf head: ResponseHead) -> Int64? {
        if upload != nil { return uploadRetryDelay(insteadOf: head) }
        return head.statusCode >= 400 ? retryDelay(for: head) : nil
    }

    /// `isAskedFor`: whatever the policy says of the status.
    func retryDelay(for head: ResponseHead, isAskedFor: Bool = false) -> Int64? {
        var failure = self.failure(.unacceptableStatus)
        failure.statusCode = head.statusCode
        failure.isAskedFor = isAskedFor
        failure.retryAfter = head.firstValue(of: "retry-after").flatMap { RetryAfter.parse($0, now: Date()) }
        guard case .retry(let delay) = decide(failure) else { return nil }
        return delay
    }

    func failure(_ code: HTTPSessionError.Code) -> RetryMachine.Failure {
        RetryMachine.Failure(
            code: code, isIdempotent: upload?.isRepeatable ?? request.isIdempotent, hasSent: exchange.isConnected,
            hasProgressed: upload?.hasProgressed ?? false, isBeyondRecall: task.kind == .stream && progress.received > 0)
    }

    private func decide(_ failure: RetryMachine.Failure) -> RetryMachine.Decision {
        upload?.hasProgressed = false
        return retries.decide(failure, remaining: remainingTime, draw: .random(in: 0 ... .max))
    }

    func retry(after error: HTTPSessionError, delay: Int64) {
        metrics.retryCount += 1
        metrics.timeBackingOff += .nanoseconds(delay)
        isAskedAgain = true
        loop.noteTrouble(with: origin)
        loop.outbox.announce(.willRetry(task, error))
        // It backs off even for no time: the budget is asked when the time is over.
        goOn(with: nextAttempt(), delay: max(1, delay))
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
        guard let resumption, progress.received > 0, let basis = resumption.basis(at: request.url) else {
            return conditionLines() + ["Accept-Encoding: identity"]
        }
        exchange.restBasis = basis
        return resumption.fieldLines(after: progress.received, by: basis) + ["Accept-Encoding: identity"]
    }

    /// A new body begins: what can be known for later is kept.
    func noteWhole(_ head: ResponseHead, to destination: DownloadDestination) {
        resumption =
            isContinuable
            ? Resumption(whole: head, from: request.url.withoutUser, expecting: destination.expectedDigest, now: Date()) : nil
        beginning = resumption == nil ? nil : (head, .file(destination))
    }

    /// Takes the response for the rest of the body, if it is that.
    func takeRest(_ head: ResponseHead) -> Intake? {
        if let intake = takeUnchanged(head) { return intake }
        if mayReturnToStart(head) {
            hasReturnedToStart = true
            exchange.next = .returnToStart
            exchange.body = .held(Data())
            return .taken
        }
        guard let basis = exchange.restBasis, let resumption else {
            guard head.statusCode == 206, isContinuable else { return nil }
            return .abort(HTTPSessionError(.badServerResponse, "the server sent a part (206) where the whole was asked for"))
        }
        switch resumption.judge(head, received: progress.received, by: basis) {
        case .append(let total):
            self.resumption?.learn(from: head, total: total)
            progress.expectedToReceive = total
            metrics.bytesResumed += progress.received
            exchange.continues(beginning, isRest: true)
            exchange.body = .kept
            hasReturnedToStart = false
            if let file = sink as? FileSink, ContentDisposition.fileName(of: head) != nil { nameFile(file, by: head) }
            loop.outbox.announce(.downloadContinued(task, offset: progress.received, total: total))
            return .taken
        case .replace, .keep: return nil
        case .startOver:
            self.resumption = nil
            exchange.next = .startOver
            exchange.isRefused = true
            return .abort(HTTPSessionError(.badServerResponse, "the rest is of another version"))
        case .complete:
            exchange.next = .complete
            // An earlier process has seen the response that the bytes here began with; nobody asked this one for a 304.
            exchange.continues(beginning.map { ($0.head ?? head.ofWhole, $0.destination) }, isRest: false)
            exchange.body = .held(Data())
            metrics.bytesResumed += progress.received
            return .taken
        }
    }

    /// An address that a redirect led to may hold for a while only, as signed ones do: the first one then leads to another. Of one that
    /// has just been led to, the answer is meant.
    private func mayReturnToStart(_ head: ResponseHead) -> Bool {
        guard [401, 403, 404, 410].contains(head.statusCode), request.url != start.url, !hasReturnedToStart,
            exchange.asksForRest || isAskedAgain
        else { return false }
        return isRepeatableFromStart
    }

    /// Whether the address that a redirect led to has brought nothing twice in a row: the first one may lead to another by now.
    func leadsNowhere() -> Bool {
        guard request.url != start.url, isRepeatableFromStart else { return false }
        fruitlessAttempts = hasProgressed ? 0 : fruitlessAttempts + 1
        guard fruitlessAttempts > 1 else { return false }
        fruitlessAttempts = 0
        return true
    }

    private var isRepeatableFromStart: Bool {
        guard case .none = start.body else { return false }
        return [.get, .head].contains(start.method)
    }

    func returnToStart() {
        redirects = 0
        turn(to: start)
    }

    /// The part was shorter than what was asked for (RFC 9110 section 15.3.7): the rest of the rest follows, after one that brought hardly
    /// anything only when a wait is over. A server that sends byte by byte would be asked without a pause until it was done.
    func continuePart() {
        let count = progress.received - exchange.receivedBefore
        guard count >= TaskRun.smallestPart else {
            return failed(with: HTTPSessionError(.connectionLost, "the server sent \(count) bytes of the rest"))
        }
        goOn(with: request)
    }

    /// In bytes.
    private static let smallestPart: Int64 = 16 << 10

    var isPart: Bool {
        guard exchange.isRest, case .kept = exchange.body, let total = resumption?.total else { return false }
        return progress.received < total
    }
}
