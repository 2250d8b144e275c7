internal import EventLoop
internal import Foundation
internal import HTTPTypes
internal import Reachability

/// What libcurl tells of the task's transfer, and the answers of the user's handlers.
extension TaskRun: TransferReceiver {
    func transferLookedUp() {
        exchange.hasLookedUp = true
        noteLookedUp()
        loop.judgesAttempt(transfer?.tries ?? [])
    }

    func transferMayGo(from local: String) -> HTTPSessionError? { settings.refusal(of: request, from: local) }

    func transferMayReuse(from local: String, to remote: String) -> Bool { loop.leads(from: local, to: remote) }

    func transferConnected() {
        exchange.connectedAt = loop.now
        hasLeft = true
        // Before it has ended: what becomes of a connection depends on it.
        if transfer?.usesHTTP2 == true { loop.queue.speaksHTTP2(host) }
        noteActivity()
        noteLookedUp()
    }

    func transferReceived(challenge: ResponseHead) { loop.noteCookies(in: challenge, isSecure: isTrustedWithCookies) }

    func transferReceived(interim: ResponseHead) {
        noteActivity()
        loop.noteCookies(in: interim, isSecure: isTrustedWithCookies)
        if upload != nil { takeUploadInterim(interim) }
        loop.outbox.detail(.receivedInterimResponse(task, interim))
    }

    func transferReceived(head: ResponseHead) -> Intake {
        noteActivity()
        serverQuestions = 0
        needsFreshConnection = false
        loop.answered(task.id, at: origin)
        leaveGate()
        exchange.head = head
        loop.noteCookies(in: head, isSecure: isTrustedWithCookies)
        loop.outbox.detail(.receivedResponse(task, head))
        switch RedirectRules.decide(head, for: request, allowsInsecure: settings.configuration.followsInsecureRedirects) {
        // What an upload's request becomes by losing its method is none of the upload's.
        case .follow(let proposed) where upload == nil || proposed.method == request.method:
            exchange.next = .redirect(proposed)
            exchange.body = .held(Data())
            return .taken
        case .refuse(let error): return .abort(error)
        case .none, .follow: break
        }
        let challenges = answerableChallenges(head)
        guard challenges.isEmpty else {
            exchange.next = .challenges(challenges)
            exchange.body = .held(Data())
            return .taken
        }
        acceptLogins(head)
        if let delay = retryDelay(insteadOf: head) {
            exchange.next = .retry(delay: delay)
            exchange.body = .held(Data())
            return .taken
        }
        wasReleased = false
        if hasPaidRetry, !job.retryPolicy.statusCodes.contains(head.statusCode) { loop.noteSuccess(of: origin) }
        hasPaidRetry = false
        if let intake = takeUploadAnswer(head) ?? takeRest(head) { return intake }
        if head.statusCode >= 400, isIntercepted {
            exchange.next = .interception
            exchange.body = .held(Data())
            return .taken
        }
        guard let handler = task.handlers.response else { return accept(head, .allow) }
        ask { .response(await handler(head)) }
        return .taken
    }

    /// Decides where the body of the final response goes.
    private func accept(_ head: ResponseHead, _ disposition: TransferHandlers.ResponseDisposition) -> Intake {
        switch disposition {
        case .cancel: return .abort(HTTPSessionError(.cancelled, "the response was refused by its handler"))
        case .becomeDownload(let destination):
            if let refusal = contentRefusal(head, .file(destination)) { return .abort(refusal) }
            task.become(.download)
            loop.outbox.announce(.becameDownload(task, destination))
            open(.file(destination), head)
        case .allow:
            if let range = job.acceptableStatusCodes, !range.contains(head.statusCode) {
                exchange.body = .explained(Data())
            } else {
                if let refusal = contentRefusal(head, job.destination) { return .abort(refusal) }
                open(job.destination, head)
            }
        }
        return .taken
    }

    private func open(_ destination: TaskSpecification.Destination, _ head: ResponseHead) {
        let length = request.method == .head ? nil : head.bodyLength
        progress.expectedToReceive = length
        progress.received = 0
        switch destination {
        case .memory(let maximumSize): sink = DataSink(maximumSize: maximumSize)
        case .file(let destination):
            let file = fileSink(destination)
            noteWhole(head, to: destination)
            file.sidecar = sidecar(named: nameFile(file, by: head))
            sink = file
        case .reader(let buffer): sink = ChunkSink(buffer)
        }
        exchange.destination = destination
        exchange.body = .kept
        hasReturnedToStart = false
        sink?.begin(expected: length)
    }

    func transferReceived(bytes: UnsafeRawBufferPointer) -> Intake {
        noteActivity()
        switch exchange.body {
        case .undecided: return .pause
        case .held(var data):
            guard data.count + bytes.count <= Exchange.maximumHeld else {
                // The response is not wanted to its end; what follows it is.
                exchange.isRefused = true
                return .abort(HTTPSessionError(.transferFailed, "the body of an intermediate response is too long"))
            }
            exchange.body = .undecided
            data.append(contentsOf: bytes)
            exchange.body = .held(data)
            return .taken
        case .explained(var data):
            exchange.body = .explained(Data())
            data.append(contentsOf: bytes.prefix(Exchange.maximumExplanation - data.count))
            exchange.body = .explained(data)
            guard data.count < Exchange.maximumExplanation else {
                exchange.isRefused = true
                return .abort(unacceptable(data))
            }
            return .taken
        case .kept: return keep(bytes)
        }
    }

    private func keep(_ bytes: UnsafeRawBufferPointer) -> Intake {
        guard let sink else { return .taken }
        let total = progress.received + Int64(bytes.count)
        if exchange.isRest, let whole = resumption?.total, total > whole {
            return .abort(HTTPSessionError(.badServerResponse, "the server sent more than the rest"))
        }
        // Also where nothing is decompressed that the request asks for: Transfer-Encoding (RFC 9112 section 6.1) needs no question.
        let fresh = exchange.isRest ? total - exchange.receivedBefore : total
        if fresh > 8 << 20, let arrived = transfer?.receivedBodyBytes,
            fresh / Int64(settings.configuration.maximumDecompressionRatio) > max(arrived, 1)
        {
            return .abort(
                HTTPSessionError(
                    .responseTooLarge,
                    "the response decompresses to more than \(settings.configuration.maximumDecompressionRatio) times its size"))
        }
        let intake = sink.take(bytes)
        switch intake {
        case .taken:
            progress.received = total
            loop.wakes(at: sink.flushesAt)
            publishProgress()
        case .pause: noteReceiverFull()
        case .abort: break
        }
        return intake
    }

    func transferProvides(into buffer: UnsafeMutableRawBufferPointer) -> Provision {
        guard let source else { return .end }
        let provision = source.provide(into: buffer)
        if case .bytes(let count) = provision {
            noteActivity()
            progress.sent += Int64(count)
            publishProgress()
        }
        return provision
    }

    func transferRewinds() -> Bool {
        source?.rewind()
        exchange.sentBeforeRewind = sentEnd
        progress.sent = upload?.bodyStart ?? 0
        return true
    }

    // MARK: The end of a transfer

    func transferFinished(_ error: HTTPSessionError?, facts: TransferFacts) {
        if error != nil { noteRemotes() }
        transferIsOver()
        // Only a timeout leaves a look-up behind that goes on: every other end comes after its answer.
        if error?.code != .timedOut || facts.nameLookup != nil { exchange.hasLookedUp = true } else { noteUnansweredName() }
        if facts.wasRaised, error != nil, !exchange.expectsSecure {
            loop.raise(origin.host)
            return goOn(with: request)
        }
        if facts.wasHeldBack, error != nil { return goOn(with: request) }
        if facts.hadUnfitConnection, error != nil {
            needsFreshConnection = true
            return goOn(with: request)
        }
        noteProtocol(facts)
        note(facts)
        guard let error, !exchange.isRefused else { return conclude() }
        if facts.hadSurplus { return failedBySurplus(with: error, facts: facts) }
        if asksAboutServer() || holds(untilAllowed: error) { return }
        noteRejectedIdentity(error)
        // What follows is known from the head.
        if exchange.next != nil, [.connectionLost, .timedOut, .badServerResponse, .cannotDecodeContent].contains(error.code) {
            exchange.failure = error
            return conclude()
        }
        failed(with: explained(error), facts: facts)
    }

    func note(_ facts: TransferFacts) {
        let transaction = TransactionMetrics(
            method: request.method.rawValue, address: request.url, statusCode: exchange.head?.statusCode,
            fetchStart: exchange.fetchStart, network: exchange.network, facts: facts)
        if metrics.transactions.count >= TransferMetrics.maximumTransactions { metrics.transactions.removeFirst() }
        metrics.transactions.append(transaction)
        loop.outbox.detail(.transactionFinished(task, transaction))
    }

    func conclude() {
        switch exchange.next {
        case .redirect(let proposed): redirect(to: proposed)
        case .challenges(let challenges): meet(challenges)
        case .retry(let delay): retry(after: unacceptable(exchange.heldBody), delay: delay)
        case .startOver: goOn(with: request)
        case .returnToStart: returnToStart()
        case .complete: endWithResponse()
        case .interception: askInterceptors(about: nil)
        case .upload: goOn(with: nextAttempt())
        case nil where isPart: continuePart()
        case nil:
            switch exchange.body {
            // The response's handler is still thinking.
            case .undecided: exchange.isComplete = true
            case .explained(let data): end(with: unacceptable(data))
            case .kept, .held: endWithResponse()
            }
        }
    }

    func unacceptable(_ body: Data) -> HTTPSessionError {
        HTTPSessionError(
            .unacceptableStatus, "the server answered \(exchange.head?.statusCode ?? 0) \(exchange.head?.reasonPhrase ?? "")",
            context: .init(statusCode: exchange.head?.statusCode, responseBody: body))
    }

    /// Where there is certainly no network, that is the reason, whatever libcurl ran into.
    private func explained(_ error: HTTPSessionError) -> HTTPSessionError {
        guard let path = settings.path?.currentPath, path.status == .unsatisfied, !origin.isLoopback,
            !loop.hasRoute(to: exchange.remotes)
        else { return error }
        switch error.code {
        case .cannotFindHost, .cannotConnectToHost: break
        // One on this machine is there without a network, and one that has answered was reached.
        case .proxyFailed where error.context.statusCode == nil && !settings.hasLoopbackProxy(before: origin): break
        default: return error
        }
        var explanation = HTTPSessionError(
            .notConnected, path.cause.map { "\($0)" } ?? "there is no path to any network", context: error.context,
            underlying: error)
        explanation.cause = path.cause
        return explanation
    }

    // MARK: Redirects

    private func redirect(to proposed: TransferRequest) {
        guard redirects < settings.configuration.maximumRedirects else {
            return end(
                with: HTTPSessionError(.tooManyRedirects, "more than \(settings.configuration.maximumRedirects) redirects"))
        }
        guard let head = exchange.head, let handler = task.handlers.redirect else { return follow(proposed) }
        ask {
            let disposition = await handler(.init(response: head, proposed: proposed))
            guard case .modify(let request) = disposition else { return .redirect(disposition) }
            // Here, because a file is looked at.
            do throws(HTTPSessionError) { return .modified(request, .success(try request.body.segments())) } catch {
                return .modified(request, .failure(error))
            }
        }
    }

    func follow(_ next: TransferRequest) {
        redirects += 1
        metrics.redirectCount += 1
        if let head = exchange.head { loop.outbox.announce(.redirected(task, head)) }
        turn(to: next)
    }

    /// The next request may go to another server, and through another proxy.
    func turn(to next: TransferRequest) {
        isAskedAgain = false
        moveLogins(to: next)
        goOn(with: next)
    }

    func moveLogins(to next: TransferRequest) {
        let place = Origin(next.url)
        logins.move(to: place, through: place.flatMap { settings.proxies.proxy(before: $0) })
    }

    // MARK: Challenges

    /// The challenges that somebody may have an answer to.
    private func answerableChallenges(_ head: ResponseHead) -> [AuthenticationChallenge] {
        guard head.statusCode == 401 || head.statusCode == 407 else { return [] }
        let asker = head.statusCode == 407 ? settings.proxies.proxy(before: origin) ?? origin : origin
        var challenges = AuthenticationChallenge.all(in: head, from: asker)
        if head.statusCode == 401, let credential = exchange.unaskedCredential {
            for challenge in challenges where challenge.scheme == .basic { logins.noteSent(credential, for: challenge) }
        }
        for space in Set(challenges.map(\.protectionSpace)) { logins.refuse(space) }
        for index in challenges.indices {
            challenges[index].previousFailureCount = logins.failureCount(challenges[index].protectionSpace)
        }
        let hasAnswer = task.handlers.challenge != nil || challenges.contains { knownCredential(for: $0) != nil }
        return hasAnswer ? challenges : []
    }

    private func knownCredential(for challenge: AuthenticationChallenge) -> Credential? {
        var candidates: [Credential] = []
        if !challenge.protectionSpace.isProxy, let own = request.url.credential { candidates.append(own) }
        if let kept = settings.credentials[challenge.protectionSpace] { candidates.append(kept) }
        return candidates.first { logins.mayTry($0, for: challenge) }
    }

    private func meet(_ challenges: [AuthenticationChallenge]) {
        for challenge in challenges {
            guard let credential = knownCredential(for: challenge) else { continue }
            loop.outbox.announce(.challenged(task, challenge))
            return answer(challenge, with: credential)
        }
        askAbout(challenges)
    }

    func askAbout(_ challenges: [AuthenticationChallenge]) {
        guard let challenge = challenges.first, let handler = task.handlers.challenge else {
            return settleForResponse()
        }
        exchange.next = .challenges(challenges)
        loop.outbox.announce(.challenged(task, challenge))
        ask { .challenge(await handler(challenge)) }
    }

    /// Nothing follows: the redirect or the challenge itself is the answer.
    func settleForResponse() {
        guard let head = exchange.head, case .held(let data) = exchange.body else { return }
        guard !exchange.isRefused else {
            let reason = "the response to a redirect or a challenge is longer than \(Exchange.maximumHeld) bytes"
            return end(with: HTTPSessionError(.responseTooLarge, reason))
        }
        if let failure = exchange.failure { return end(with: failure) }
        exchange.next = nil
        exchange.isComplete = true
        guard let handler = task.handlers.response else { return settle(head, .allow, data) }
        ask { .response(await handler(head)) }
    }

    /// The final response's fate is known; `data` came before.
    func settle(_ head: ResponseHead, _ disposition: TransferHandlers.ResponseDisposition, _ data: Data) {
        if case .abort(let error) = accept(head, disposition) {
            abandonTransfer()
            return end(with: error)
        }
        if !data.isEmpty, case .abort(let error) = data.withUnsafeBytes({ transferReceived(bytes: $0) }), !exchange.isRefused {
            return end(with: error)
        }
        if exchange.isComplete { conclude() } else { sinkReady() }
    }

    func answer(_ challenge: AuthenticationChallenge, with credential: Credential) {
        // libcurl puts a token, and for Digest a user's name, into the request as they are: a line break would begin another field.
        guard !credential.user.hasControlCharacter, !credential.secret.hasControlCharacter else {
            let reason = "the credential has a line break, NUL or another control character"
            return end(with: HTTPSessionError(.authenticationFailed, reason))
        }
        guard logins.answers < TaskLogins.maximumAnswers else { return settleForResponse() }
        logins.use(credential, for: challenge)
        goOn(with: request)
    }

    private func acceptLogins(_ head: ResponseHead) {
        for (space, credential) in logins.takeConfirmed() where credential.persistence == .forSession {
            // Refused without another challenge.
            if head.statusCode == 407 || (head.statusCode == 401 && !space.isProxy) { continue }
            settings.credentials[space] = credential
        }
    }
}
