internal import EventLoop
internal import FoundationEssentials
internal import HTTPTypes

/// How the task proceeds after a response. The first rule that applies decides, in the order of ``judge(_:)``.
extension TaskMachine {
    /// Takes the head of a final response (RFC 9110 section 15).
    ///
    /// `date`: the wall-clock time, to interpret the head's dates.
    ///
    /// - Returns: how to treat the body.
    mutating func receivedHead(_ head: ResponseHead, at date: Date, now: Int64) -> Intake {
        self.now = now
        noteReceived()
        handshakeQuestions = 0
        needsFreshConnection = false
        leaveOutage()
        advance(.answered)
        (attempt.head, attempt.headDate) = (head, date)
        return judge(head)
    }

    private mutating func judge(_ head: ResponseHead) -> Intake {
        switch RedirectRules.decide(
            head, for: request, allowsInsecure: rules.session.configuration.followsInsecureRedirects,
            forwarding: rules.session.configuration.forwardedHeaderFields)
        {
        // An upload does not follow a redirect that changes its method.
        case .follow(let proposed) where upload == nil || proposed.method == request.method:
            return bufferBody(until: .redirect(proposed))
        case .refuse(let error): return .abort(error)
        case .none, .follow: break
        }
        if head.statusCode == 417, attempt.expectsContinue { return repeatWithoutExpectation() }
        let challenges = answerableChallenges(head)
        guard challenges.isEmpty else { return bufferBody(until: .challenges(challenges)) }
        acceptLogins(head)
        if let delay = retryDelay(insteadOf: head) { return bufferBody(until: .retry(delay: delay)) }
        hasProceededAfterOutage = false
        if hasPaidRetry, !rules.retryPolicy.statusCodes.contains(head.statusCode) { effects.append(.refundRetry) }
        hasPaidRetry = false
        if let intake = takeUploadResponse(head) ?? takeRemainingRange(head) { return intake }
        if head.statusCode >= 400, isIntercepted { return bufferBody(until: .interception) }
        guard rules.handlers.contains(.response) else { return accept(head, .allow) }
        ask(.response(head))
        return .taken
    }

    /// Sends the request again without its expectation, which some server on its way does not support (RFC 9110 section 10.1.1). The transfer ends,
    /// because libcurl would send the request again itself, and its response would seem to continue this one.
    private mutating func repeatWithoutExpectation() -> Intake {
        omitsExpectation = true
        attempt.next = .restart
        attempt.isBodyRejected = true
        return .abort(HTTPSessionError(.unacceptableStatus, "the server does not support the expectation 100-continue"))
    }

    /// Buffers the body, which is not the result, so that the connection can be reused; then `next` follows.
    mutating func bufferBody(until next: Attempt.Next) -> Intake {
        attempt.next = next
        attempt.body = .buffered(Data())
        return .taken
    }

    /// Chooses the destination of the final response's body.
    private mutating func accept(_ head: ResponseHead, _ disposition: TransferHandlers.ResponseDisposition) -> Intake {
        switch disposition {
        case .cancel: return .abort(HTTPSessionError(.cancelled, "the response was refused by its handler"))
        case .becomeDownload(let destination):
            if let refusal = contentRefusal(head, .file(destination)) { return .abort(refusal) }
            kind = .download
            if request.options.connectivityTimeout == nil { stateMachine.removeConnectivityTimeout() }
            issue(.report(.becameDownload(destination)))
            open(.file(destination), head)
        case .allow:
            if let range = rules.acceptableStatusCodes, !range.contains(head.statusCode) {
                attempt.body = .errorBody(Data())
            } else {
                if let refusal = contentRefusal(head, rules.destination) { return .abort(refusal) }
                open(rules.destination, head)
            }
        }
        return .taken
    }

    private mutating func open(_ destination: BodyDestination, _ head: ResponseHead) {
        progress.expectedToReceive = request.method == .head ? nil : head.bodyLength
        progress.bytesReceived = 0
        if case .file(let destination) = destination {
            noteCompleteRepresentation(head, to: destination)
        } else {
            // Bytes that an earlier response wrote to a file cannot continue elsewhere.
            (resumption, firstResponse) = (nil, nil)
        }
        attempt.destination = destination
        attempt.body = .streamed
        hasReturnedToStart = false
        effects.append(.openSink)
    }

    /// The error of a response whose status excludes content, and which therefore never replaces a file (RFC 9110 section
    /// 15.3.5).
    private func contentRefusal(_ head: ResponseHead, _ destination: BodyDestination) -> HTTPSessionError? {
        guard case .file = destination, [204, 205].contains(head.statusCode), request.method != .head else { return nil }
        return HTTPSessionError(
            .unacceptableStatus, "the server answered \(head.statusCode): it has no content for the file",
            context: .init(statusCode: head.statusCode))
    }

    func unacceptable(_ body: Data) -> HTTPSessionError {
        var error = HTTPSessionError(
            .unacceptableStatus, "the server answered \(attempt.head?.statusCode ?? 0) \(attempt.head?.reasonPhrase ?? "")",
            context: .init(
                statusCode: attempt.head?.statusCode, responseBody: body,
                retryAfter: attempt.head.flatMap { RetryAfter.delay(of: $0, now: attempt.headDate) }.map { .nanoseconds($0) }))
        error.cause = attempt.head.flatMap {
            CauseOfResponse.status(
                $0, bodyBytes: body.count, from: request.url, accepted: rules.acceptableStatusCodes.map(Set.init))
        }
        return error
    }

    mutating func receivedInterim(_ head: ResponseHead) {
        noteReceived()
        if upload != nil { takeUploadInterim(head) }
    }

    // MARK: The end of a response

    /// The transfer has ended. `failure`: why there is no complete response.
    mutating func transferFinished(_ facts: TransferFacts, _ failure: TransferFailure?, now: Int64) {
        self.now = now
        // A lookup outlives its transfer only after a timeout; all other transfers end after the lookup's answer.
        if failure?.error.code != .timedOut || facts.nameLookup != nil { attempt.lookupEnded() } else { noteStalledLookup() }
        if facts.wasUpgraded, failure != nil, !attempt.expectsHTTPS {
            effects.append(.upgradeToHTTPS)
            return proceed(with: request)
        }
        if facts.wasSuspendedBeforeSending, failure != nil { return proceed(with: request) }
        // A fresh connection that cannot carry a further request of a login counts as lost, because it could happen each time.
        if facts.hadUnfitConnection, failure != nil, !needsFreshConnection {
            needsFreshConnection = true
            return proceed(with: request)
        }
        note(facts, of: request)
        effects.append(.reportTransaction)
        guard let failure, !attempt.isBodyRejected else {
            if failure == nil, let error = earlySuccess(facts) { return failedByEarlySuccess(error, facts) }
            return concludeAttempt()
        }
        if facts.hadSurplus { return failedBySurplus(failure, facts) }
        if askAboutServerIfNeeded(failure) || waitForAllowedNetwork(after: failure.error, hasBegun: true) { return }
        noteRejectedIdentity(failure.error)
        // The head has already decided how the task proceeds.
        if attempt.next != nil,
            [.connectionLost, .timedOut, .badServerResponse, .cannotDecodeContent].contains(failure.error.code)
        {
            attempt.failure = failure.error
            return concludeAttempt()
        }
        if hasOverflowed(failure.error) {
            readsSmallPieces = true
            return proceed(with: request)
        }
        failed(with: attributeToNetwork(failure), facts, isHandshakeRefusal: failure.isHandshakeRefusal)
    }

    /// Whether a download failed because one read was decompressed to more than libcurl keeps while the file accepts no more (64 MiB,
    /// `DYN_PAUSE_BUFFER`): smaller reads suffice.
    private func hasOverflowed(_ error: HTTPSessionError) -> Bool {
        kind == .download && !readsSmallPieces && error.context.curlCode == TaskMachine.outOfMemory && mayRepeat
            && attempt.head?.has("content-encoding") == true
    }

    /// The number of `CURLE_OUT_OF_MEMORY`.
    private static let outOfMemory: Int32 = 27

    /// The attempt is complete: the task proceeds as decided.
    mutating func concludeAttempt() {
        switch attempt.next {
        case .redirect(let proposed): redirect(to: proposed)
        case .challenges(let challenges): answerChallenges(challenges)
        case .retry(let delay): retry(after: unacceptable(attempt.bufferedBody), delay: delay)
        case .restart: proceed(with: request)
        case .returnToStart: returnToStart()
        case .complete: endWithResponse()
        case .interception: askInterceptors(about: nil)
        case .upload: proceed(with: nextAttempt())
        case nil where hasRemainingRange: requestRemainingRange()
        case nil:
            switch attempt.body {
            // The response handler has not answered yet.
            case .undecided: attempt.hasTransferEnded = true
            case .errorBody(let data): end(with: unacceptable(data))
            case .streamed, .buffered: endWithResponse()
            }
        }
    }

    /// The attempt was stopped by an error: the task proceeds as the head decided, or fails.
    mutating func attemptStopped(by error: HTTPSessionError) {
        guard attempt.next != nil else { return failed(with: error) }
        attempt.failure = error
        concludeAttempt()
    }

    /// Ends the task with the redirect or challenge itself as its response.
    mutating func endWithCurrentResponse() {
        guard let head = attempt.head, case .buffered(let data) = attempt.body else { return }
        guard !attempt.isBodyRejected else {
            let reason = "the response to a redirect or a challenge is longer than \(Attempt.maximumBufferedLength) bytes"
            return end(with: HTTPSessionError(.responseTooLarge, reason))
        }
        if let failure = attempt.failure { return end(with: failure) }
        attempt.next = nil
        attempt.hasTransferEnded = true
        guard rules.handlers.contains(.response) else { return deliver(head, .allow, data) }
        ask(.response(head))
    }

    /// Delivers the final response to its destination; `data` is the part of the body received before.
    mutating func deliver(_ head: ResponseHead, _ disposition: TransferHandlers.ResponseDisposition, _ data: Data) {
        if case .abort(let error) = accept(head, disposition) {
            effects.append(.abandon)
            return end(with: error)
        }
        if data.isEmpty { bufferedBodyDelivered(nil) } else { issue(.deliverBufferedBody(data)) }
    }

    /// The sink has taken the buffered body, or failed.
    mutating func bufferedBodyDelivered(_ error: HTTPSessionError?) {
        if let error, !attempt.isBodyRejected { return end(with: error) }
        guard !attempt.hasTransferEnded else { return concludeAttempt() }
        advance(.receiverReady)
        effects.append(.resumeReceiving)
    }
}
