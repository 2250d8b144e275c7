internal import EventLoop
internal import FoundationEssentials
internal import HTTPTypes

/// What follows from a response: the first rule that applies decides, in the order of ``judge(_:)``.
extension TransferMachine {
    /// A final response's head (RFC 9110 section 15) has come. `date`: of the wall clock, for what the head says of dates.
    ///
    /// - Returns: what becomes of its body.
    mutating func received(_ head: ResponseHead, at date: Date, now: Int64) -> Intake {
        self.now = now
        noteActivity()
        serverQuestions = 0
        needsFreshConnection = false
        leaveGate()
        (attempt.head, attempt.headDate) = (head, date)
        return judge(head)
    }

    private mutating func judge(_ head: ResponseHead) -> Intake {
        switch RedirectRules.decide(head, for: request, allowsInsecure: rules.session.configuration.followsInsecureRedirects) {
        // What an upload's request becomes by losing its method is none of the upload's.
        case .follow(let proposed) where upload == nil || proposed.method == request.method:
            return hold(until: .redirect(proposed))
        case .refuse(let error): return .abort(error)
        case .none, .follow: break
        }
        let challenges = answerableChallenges(head)
        guard challenges.isEmpty else { return hold(until: .challenges(challenges)) }
        acceptLogins(head)
        if let delay = retryDelay(insteadOf: head) { return hold(until: .retry(delay: delay)) }
        wasReleased = false
        if hasPaidRetry, !rules.retryPolicy.statusCodes.contains(head.statusCode) { effects.append(.noteSuccess) }
        hasPaidRetry = false
        if let intake = takeUploadAnswer(head) ?? takeRest(head) { return intake }
        if head.statusCode >= 400, isIntercepted { return hold(until: .interception) }
        guard rules.handlers.contains(.response) else { return accept(head, .allow) }
        ask(.response(head))
        return .taken
    }

    /// The body is no result: something else follows, and the connection serves it.
    mutating func hold(until next: Attempt.Next) -> Intake {
        attempt.next = next
        attempt.body = .held(Data())
        return .taken
    }

    /// Decides where the body of the final response goes.
    private mutating func accept(_ head: ResponseHead, _ disposition: TransferHandlers.ResponseDisposition) -> Intake {
        switch disposition {
        case .cancel: return .abort(HTTPSessionError(.cancelled, "the response was refused by its handler"))
        case .becomeDownload(let destination):
            if let refusal = contentRefusal(head, .file(destination)) { return .abort(refusal) }
            kind = .download
            order(.tell(.becameDownload(destination)))
            open(.file(destination), head)
        case .allow:
            if let range = rules.acceptableStatusCodes, !range.contains(head.statusCode) {
                attempt.body = .explained(Data())
            } else {
                if let refusal = contentRefusal(head, rules.destination) { return .abort(refusal) }
                open(rules.destination, head)
            }
        }
        return .taken
    }

    private mutating func open(_ destination: BodyDestination, _ head: ResponseHead) {
        progress.expectedToReceive = request.method == .head ? nil : head.bodyLength
        progress.received = 0
        if case .file(let destination) = destination {
            noteWhole(head, to: destination)
        } else {
            // What an earlier response has brought to a file is not continued elsewhere.
            (resumption, beginning) = (nil, nil)
        }
        attempt.destination = destination
        attempt.body = .kept
        hasReturnedToStart = false
        effects.append(.open)
    }

    /// The error of a response that has no content by its status, and therefore never replaces a file (RFC 9110 section 15.3.5).
    private func contentRefusal(_ head: ResponseHead, _ destination: BodyDestination) -> HTTPSessionError? {
        guard case .file = destination, [204, 205].contains(head.statusCode), request.method != .head else { return nil }
        return HTTPSessionError(
            .unacceptableStatus, "the server answered \(head.statusCode): it has no content for the file",
            context: .init(statusCode: head.statusCode))
    }

    func unacceptable(_ body: Data) -> HTTPSessionError {
        HTTPSessionError(
            .unacceptableStatus, "the server answered \(attempt.head?.statusCode ?? 0) \(attempt.head?.reasonPhrase ?? "")",
            context: .init(statusCode: attempt.head?.statusCode, responseBody: body))
    }

    mutating func received(interim head: ResponseHead) {
        noteActivity()
        if upload != nil { takeUploadInterim(head) }
    }

    // MARK: The end of a response

    /// The transfer is over. `failure`: why it has no whole response.
    mutating func finished(_ facts: TransferFacts, _ failure: TransferFailure?, now: Int64) {
        self.now = now
        // Only a timeout leaves a look-up behind that goes on: every other end comes after its answer.
        if failure?.error.code != .timedOut || facts.nameLookup != nil { attempt.nameIsKnown() } else { noteUnansweredName() }
        if facts.wasUpgraded, failure != nil, !attempt.expectsSecure {
            effects.append(.raise)
            return goOn(with: request)
        }
        if facts.wasHeldUnsent, failure != nil { return goOn(with: request) }
        if facts.hadUnfitConnection, failure != nil {
            needsFreshConnection = true
            return goOn(with: request)
        }
        note(facts, of: request)
        effects.append(.tellTransaction)
        guard let failure, !attempt.isRefused else { return conclude() }
        if facts.hadSurplus { return failedBySurplus(failure, facts) }
        if asksAboutServer(failure) || holds(untilAllowed: failure.error, hasBegun: true) { return }
        noteRejectedIdentity(failure.error)
        // What follows is known from the head.
        if attempt.next != nil,
            [.connectionLost, .timedOut, .badServerResponse, .cannotDecodeContent].contains(failure.error.code)
        {
            attempt.failure = failure.error
            return conclude()
        }
        failed(with: explain(failure), facts, wasRefused: failure.wasRefused)
    }

    /// What follows from the response is done.
    mutating func conclude() {
        switch attempt.next {
        case .redirect(let proposed): redirect(to: proposed)
        case .challenges(let challenges): meet(challenges)
        case .retry(let delay): retry(after: unacceptable(attempt.heldBody), delay: delay)
        case .startOver: goOn(with: request)
        case .returnToStart: returnToStart()
        case .complete: endWithResponse()
        case .interception: askInterceptors(about: nil)
        case .upload: goOn(with: nextAttempt())
        case nil where isPart: continuePart()
        case nil:
            switch attempt.body {
            // The response's handler is still thinking.
            case .undecided: attempt.isComplete = true
            case .explained(let data): end(with: unacceptable(data))
            case .kept, .held: endWithResponse()
            }
        }
    }

    /// The attempt has been broken off: what follows is known from its head, or nothing is.
    mutating func stopped(by error: HTTPSessionError) {
        guard attempt.next != nil else { return failed(with: error) }
        attempt.failure = error
        conclude()
    }

    /// Nothing follows: the redirect or the challenge itself is the answer.
    mutating func settleForResponse() {
        guard let head = attempt.head, case .held(let data) = attempt.body else { return }
        guard !attempt.isRefused else {
            let reason = "the response to a redirect or a challenge is longer than \(Attempt.maximumHeld) bytes"
            return end(with: HTTPSessionError(.responseTooLarge, reason))
        }
        if let failure = attempt.failure { return end(with: failure) }
        attempt.next = nil
        attempt.isComplete = true
        guard rules.handlers.contains(.response) else { return settle(head, .allow, data) }
        ask(.response(head))
    }

    /// The final response's fate is known; `data` came before.
    mutating func settle(_ head: ResponseHead, _ disposition: TransferHandlers.ResponseDisposition, _ data: Data) {
        if case .abort(let error) = accept(head, disposition) {
            effects.append(.abandon)
            return end(with: error)
        }
        if data.isEmpty { fed(nil) } else { order(.feed(data)) }
    }

    /// What came before the response's fate was known has gone where it belongs.
    mutating func fed(_ error: HTTPSessionError?) {
        if let error, !attempt.isRefused { return end(with: error) }
        guard !attempt.isComplete else { return conclude() }
        live(.receiverReady)
        effects.append(.receive)
    }
}
