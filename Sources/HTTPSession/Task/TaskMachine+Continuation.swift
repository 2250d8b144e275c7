internal import ByteComparison
internal import FoundationEssentials
internal import HTTPTypes

/// How a download continues: the bytes that are present, and the remaining range that is requested.
extension TaskMachine {
    // MARK: An earlier download's partial file

    /// Opens the partial file of an earlier download before the first request. - Returns: whether ``Event/partialFileOpened(_:)``
    /// follows.
    mutating func openPartialFileIfNeeded() -> Bool {
        guard partialFileState != .open, case .file(let destination) = rules.destination,
            rules.hasResumeData || destination.partialFile != .remove
        else { return false }
        guard partialFileState == .unknown else { return true }
        partialFileState = .opening
        issue(.openPartialFile(destination))
        return true
    }

    mutating func partialFileOpened(_ remains: Result<FileSink.Remains, HTTPSessionError>) {
        guard partialFileState == .opening, stateMachine.state != .finished else { return }
        partialFileState = .open
        switch remains {
        case .success(let remains):
            finishedFile = remains.finished
            if let partialFile = remains.part { adopt(partialFile) }
        case .failure(let error): return end(with: error)
        }
        startIfReady()
    }

    /// Adopts the bytes of a partial file if they may belong to the requested resource. Each response is compared with them.
    private mutating func adopt(_ partialFile: FileSink.Part) {
        guard case .file(let destination) = rules.destination else { return }
        let expected = destination.expectedDigest
        if let expected, let known = partialFile.sidecar.resumption.digest, expected != known { return }
        // A validator of another resource says nothing about this one. But if the first URL is the same, it may redirect to that
        // resource again.
        guard
            expected != nil || partialFile.sidecar.resumption.isSameResource(request.url)
                || partialFile.sidecar.start.absoluteString.isExactly(initialRequest.url.withoutUser.absoluteString)
        else { return }
        resumption = partialFile.sidecar.resumption
        firstResponse = FirstResponse(head: nil, destination: rules.destination)
        progress.bytesReceived = partialFile.length
        progress.expectedToReceive = partialFile.sidecar.resumption.total
        publishProgress()
    }

    // MARK: The request

    /// Whether this request's response may be assembled from several. A request with range fields of its own may not.
    private var isContinuable: Bool {
        guard kind == .download, case .none = request.body else { return false }
        let fields = request.headerFields
        return request.method == .get && fields[.range] == nil && fields[.ifRange] == nil && fields[.acceptEncoding] == nil
    }

    /// The field lines of a download's request. They ask for the unencoded representation: only its remaining range, or only a
    /// version other than that of the finished file.
    mutating func downloadFieldLines() -> [String] {
        attempt.receivedBefore = progress.bytesReceived
        guard isContinuable else { return [] }
        if let resumption, progress.bytesReceived > 0, let basis = resumption.basis(at: request.url) {
            attempt.rangeBasis = basis
            return resumption.fieldLines(after: progress.bytesReceived, by: basis) + ["Accept-Encoding: identity"]
        }
        let hasOwnCondition = request.headerFields[.ifNoneMatch] != nil || request.headerFields[.ifModifiedSince] != nil
        if let finishedFile, !hasOwnCondition, finishedFile.belongs(to: request.url, start: rules.request.url) {
            attempt.condition = finishedFile
            return [finishedFile.fieldLine, "Accept-Encoding: identity"]
        }
        return ["Accept-Encoding: identity"]
    }

    // MARK: The response

    /// Begins a complete representation, and records the validator or digest by which it can be continued later.
    mutating func noteCompleteRepresentation(_ head: ResponseHead, to destination: DownloadDestination) {
        resumption =
            isContinuable
            ? Resumption(
                completeResponse: head, from: request.url.withoutUser, expecting: destination.expectedDigest,
                now: attempt.headDate) : nil
        firstResponse = resumption == nil ? nil : FirstResponse(head: head, destination: .file(destination))
    }

    /// Takes the response if it continues or completes the download; `nil` if other rules decide.
    mutating func takeRemainingRange(_ head: ResponseHead) -> Intake? {
        if let intake = takeUnchanged(head) { return intake }
        if mayReturnToStart(head) {
            hasReturnedToStart = true
            return bufferBody(until: .returnToStart)
        }
        guard let basis = attempt.rangeBasis, let resumption else {
            guard head.statusCode == 206, isContinuable else { return nil }
            return .abort(HTTPSessionError(.badServerResponse, "the server sent partial content (206) that was not requested"))
        }
        switch resumption.decide(head, received: progress.bytesReceived, by: basis) {
        case .append(let total):
            self.resumption?.update(from: head, total: total)
            progress.expectedToReceive = total
            metrics.bytesContinued += progress.bytesReceived
            attempt.continueDownload(from: firstResponse, isPartialContent: true)
            attempt.body = .streamed
            hasReturnedToStart = false
            if ContentDisposition.fileName(of: head) != nil { issue(.renameFile(by: head)) }
            issue(.report(.downloadContinued(offset: progress.bytesReceived, total: total)))
            return .taken
        case .replace, .keep: return nil
        case .restart:
            self.resumption = nil
            return restart("the remaining range is of another version")
        case .complete:
            // An earlier process received the first response. The 304 itself was not requested by the user.
            let first = firstResponse.map {
                FirstResponse(head: $0.head ?? head.completeRepresentation, destination: $0.destination)
            }
            attempt.continueDownload(from: first, isPartialContent: false)
            metrics.bytesContinued += progress.bytesReceived
            return bufferBody(until: .complete)
        }
    }

    /// Takes a 304 (Not Modified): the file at the destination is the download's result. A 304 about another version makes the
    /// task send the request again without its condition.
    private mutating func takeUnchanged(_ head: ResponseHead) -> Intake? {
        guard let condition = attempt.condition, head.statusCode == 304 else { return nil }
        guard condition.isConfirmed(by: head) else {
            finishedFile = nil
            return restart("the server's 304 is about another version")
        }
        issue(.confirmFinishedFile(condition))
        (progress.bytesReceived, progress.expectedToReceive) = (condition.size, condition.size)
        return bufferBody(until: .complete)
    }

    /// Rejects the body and restarts the download with the same request.
    private mutating func restart(_ reason: String) -> Intake {
        attempt.next = .restart
        attempt.isBodyRejected = true
        return .abort(HTTPSessionError(.badServerResponse, reason))
    }

    /// Whether the task returns to the first request. A redirect's target may expire, as signed URLs do; the first URL then
    /// redirects to another one. The response of a new redirect target counts.
    private func mayReturnToStart(_ head: ResponseHead) -> Bool {
        guard [401, 403, 404, 410].contains(head.statusCode), request.url != initialRequest.url, !hasReturnedToStart,
            attempt.requestsRemainingRange || isRepeatRequest
        else { return false }
        return isRepeatableFromStart
    }

    // MARK: The end of a partial response

    /// Whether the attempt has received bytes that the next one keeps. A body that restarted does not count.
    var hasProgressed: Bool {
        resumption != nil && progress.bytesReceived > attempt.receivedBefore
            && (attempt.isPartialContent || attempt.receivedBefore == 0)
    }

    var hasRemainingRange: Bool {
        guard attempt.isPartialContent, case .streamed = attempt.body, let total = resumption?.total else { return false }
        return progress.bytesReceived < total
    }

    /// Requests the remaining range after a response shorter than requested (RFC 9110 section 15.3.7). After a response of a few
    /// bytes the task backs off. Otherwise it would send requests without a pause to a server that answers byte by byte.
    mutating func requestRemainingRange() {
        let count = progress.bytesReceived - attempt.receivedBefore
        guard count >= TaskMachine.minimumPartLength else {
            return failed(with: HTTPSessionError(.connectionLost, "the server sent \(count) bytes of the remaining range"))
        }
        proceed(with: request)
    }

    /// The shortest partial response after which the next request follows at once, in bytes.
    private static let minimumPartLength: Int64 = 16 << 10

    // MARK: The digest

    /// Compares the complete representation with its digest, if there is one. - Returns: whether ``Event/digestVerified(_:)``
    /// follows.
    mutating func verifyDigestIfNeeded() -> Bool {
        guard case .file(let destination)? = attempt.destination,
            let digest = destination.expectedDigest ?? resumption?.digest ?? serversDigest
        else { return false }
        // The comparison may take longer than the request timeout.
        advance(.receiverFull)
        attempt.phase = .verifying
        issue(.verifyDigest(digest))
        return true
    }

    /// The digest of a response that could not be continued, such as a POST's.
    private var serversDigest: ContentDigest? {
        request.method == .head ? nil : attempt.head.flatMap(ReprDigest.ofBody)
    }

    mutating func digestVerified(_ isRight: Result<Bool, HTTPSessionError>) {
        guard attempt.phase == .verifying else { return }
        switch isRight {
        case .success(true): advance(.ended)
        case .success(false) where metrics.bytesContinued > 0 && !hasRestartedAfterDigest:
            // The partial file does not belong to the remaining range: the complete representation is requested, once.
            hasRestartedAfterDigest = true
            resumption = nil
            proceedToAddress(of: initialRequest)
        case .success(false):
            end(with: HTTPSessionError(.digestMismatch, "the file does not have the expected digest"))
        case .failure(let error): end(with: error)
        }
    }
}
