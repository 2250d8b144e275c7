internal import FoundationEssentials
internal import HTTPTypes

/// What a download has already, and what it asks for.
extension TransferMachine {
    // MARK: An earlier download's part

    /// Looks for what an earlier download left, before the first request. - Returns: whether ``Event/partOpened(_:)`` follows.
    mutating func opensPart() -> Bool {
        guard partState != .open, case .file(let destination) = rules.destination,
            rules.hasRecord || destination.partialFile != .remove
        else { return false }
        guard partState == .unknown else { return true }
        partState = .opening
        order(.openPart(destination))
        return true
    }

    mutating func partOpened(_ remains: Result<FileSink.Remains, HTTPSessionError>) {
        guard partState == .opening, life.state != .finished else { return }
        partState = .open
        switch remains {
        case .success(let remains):
            finishedFile = remains.finished
            if let part = remains.part { goOn(from: part) }
        case .failure(let error): return end(with: error)
        }
        beginIfReady()
    }

    /// What is here is what was asked for, or may turn out to be: each response is judged by it.
    private mutating func goOn(from part: FileSink.Part) {
        guard case .file(let destination) = rules.destination else { return }
        let wanted = destination.expectedDigest
        if let wanted, let known = part.sidecar.resumption.digest, wanted != known { return }
        // What a server said of another resource says nothing of this one; but what was asked for then may lead to the same again.
        guard
            wanted != nil || part.sidecar.resumption.isSameResource(request.url)
                || part.sidecar.start == start.url.withoutUser
        else { return }
        resumption = part.sidecar.resumption
        beginning = Beginning(head: nil, destination: rules.destination)
        progress.received = part.length
        progress.expectedToReceive = part.sidecar.resumption.total
        publishProgress()
    }

    // MARK: The request

    /// Whether bytes of this request's response may be put together from several: one that asks for no part itself.
    private var isContinuable: Bool {
        guard kind == .download, case .none = request.body else { return false }
        let fields = request.headerFields
        return request.method == .get && fields[.range] == nil && fields[.ifRange] == nil && fields[.acceptEncoding] == nil
    }

    /// What a download asks for, as field lines: the representation as it is, and of that only what is not here yet, or another version
    /// than that of the file that is there.
    mutating func downloadLines() -> [String] {
        attempt.receivedBefore = progress.received
        guard isContinuable else { return [] }
        if let resumption, progress.received > 0, let basis = resumption.basis(at: request.url) {
            attempt.restBasis = basis
            return resumption.fieldLines(after: progress.received, by: basis) + ["Accept-Encoding: identity"]
        }
        if let finishedFile, finishedFile.belongs(to: request.url, start: rules.request.url) {
            attempt.condition = finishedFile
            return [finishedFile.fieldLine, "Accept-Encoding: identity"]
        }
        return ["Accept-Encoding: identity"]
    }

    // MARK: The response

    /// A new body begins: what can be known for later is kept.
    mutating func noteWhole(_ head: ResponseHead, to destination: DownloadDestination) {
        resumption =
            isContinuable
            ? Resumption(
                whole: head, from: request.url.withoutUser, expecting: destination.expectedDigest, now: attempt.headDate) : nil
        beginning = resumption == nil ? nil : Beginning(head: head, destination: .file(destination))
    }

    /// Takes the response for the rest of the body, if it is that.
    mutating func takeRest(_ head: ResponseHead) -> Intake? {
        if let intake = takeUnchanged(head) { return intake }
        if mayReturnToStart(head) {
            hasReturnedToStart = true
            return hold(until: .returnToStart)
        }
        guard let basis = attempt.restBasis, let resumption else {
            guard head.statusCode == 206, isContinuable else { return nil }
            return .abort(HTTPSessionError(.badServerResponse, "the server sent a part (206) where the whole was asked for"))
        }
        switch resumption.judge(head, received: progress.received, by: basis) {
        case .append(let total):
            self.resumption?.learn(from: head, total: total)
            progress.expectedToReceive = total
            metrics.bytesResumed += progress.received
            attempt.continues(beginning, isRest: true)
            attempt.body = .kept
            hasReturnedToStart = false
            if ContentDisposition.fileName(of: head) != nil { order(.rename(head)) }
            order(.tell(.downloadContinued(offset: progress.received, total: total)))
            return .taken
        case .replace, .keep: return nil
        case .startOver:
            self.resumption = nil
            return startOver("the rest is of another version")
        case .complete:
            // An earlier process has seen the response that the bytes here began with; nobody asked this one for a 304.
            let first = beginning.map { Beginning(head: $0.head ?? head.ofWhole, destination: $0.destination) }
            attempt.continues(first, isRest: false)
            metrics.bytesResumed += progress.received
            return hold(until: .complete)
        }
    }

    /// Takes a 304 (Not Modified), after which the file at the destination is the download's. A 304 about another version has the same
    /// request made without its condition.
    private mutating func takeUnchanged(_ head: ResponseHead) -> Intake? {
        guard let condition = attempt.condition, head.statusCode == 304 else { return nil }
        guard condition.isConfirmed(by: head) else {
            finishedFile = nil
            return startOver("the server's 304 is about another version")
        }
        order(.confirm(condition))
        (progress.received, progress.expectedToReceive) = (condition.size, condition.size)
        return hold(until: .complete)
    }

    /// The body is of no use, and the same is asked for anew.
    private mutating func startOver(_ reason: String) -> Intake {
        attempt.next = .startOver
        attempt.isRefused = true
        return .abort(HTTPSessionError(.badServerResponse, reason))
    }

    /// An address that a redirect led to may hold for a while only, as signed ones do: the first one then leads to another. Of one that
    /// has just been led to, the answer is meant.
    private func mayReturnToStart(_ head: ResponseHead) -> Bool {
        guard [401, 403, 404, 410].contains(head.statusCode), request.url != start.url, !hasReturnedToStart,
            attempt.asksForRest || isAskedAgain
        else { return false }
        return isRepeatableFromStart
    }

    // MARK: The end of a part

    /// Whether bytes came that the next attempt keeps, of a body that has not begun anew.
    var hasProgressed: Bool {
        resumption != nil && progress.received > attempt.receivedBefore && (attempt.isRest || attempt.receivedBefore == 0)
    }

    var isPart: Bool {
        guard attempt.isRest, case .kept = attempt.body, let total = resumption?.total else { return false }
        return progress.received < total
    }

    /// The part was shorter than what was asked for (RFC 9110 section 15.3.7): the rest of the rest follows, after one that brought hardly
    /// anything only when a wait is over. A server that sends byte by byte would be asked without a pause until it was done.
    mutating func continuePart() {
        let count = progress.received - attempt.receivedBefore
        guard count >= TransferMachine.smallestPart else {
            return failed(with: HTTPSessionError(.connectionLost, "the server sent \(count) bytes of the rest"))
        }
        goOn(with: request)
    }

    /// In bytes.
    private static let smallestPart: Int64 = 16 << 10

    // MARK: The digest

    /// The response's body is whole. Where it has a digest, that is looked at first. - Returns: whether ``Event/verified(_:)`` follows.
    mutating func verifies() -> Bool {
        guard case .file(let destination)? = attempt.destination,
            let digest = destination.expectedDigest ?? resumption?.digest ?? serversDigest
        else { return false }
        // It may take longer than a server may be silent.
        live(.receiverFull)
        attempt.phase = .verifying
        order(.verify(digest))
        return true
    }

    /// Of a response that could not be continued, as a POST's.
    private var serversDigest: ContentDigest? {
        request.method == .head ? nil : attempt.head.flatMap(ReprDigest.ofBody)
    }

    mutating func verified(_ isRight: Result<Bool, HTTPSessionError>) {
        guard attempt.phase == .verifying else { return }
        switch isRight {
        case .success(true): live(.ended)
        case .success(false) where metrics.bytesResumed > 0 && !hasDistrustedPart:
            // What was here does not belong to the rest: the whole is asked for, once.
            hasDistrustedPart = true
            resumption = nil
            turn(to: start)
        case .success(false):
            end(with: HTTPSessionError(.digestMismatch, "the file has another digest than it should have"))
        case .failure(let error): end(with: error)
        }
    }
}
