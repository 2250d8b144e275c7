internal import FoundationEssentials
internal import HTTPTypes

/// How a resumable upload continues: its ``UploadMachine`` chooses the next request, which is built here.
extension TaskMachine {
    /// Passes a response to the upload's machine, and consults the retry policy if that machine asks for a retry.
    ///
    /// - Returns: the delay before the next attempt if this response calls for a retry; `nil` otherwise.
    mutating func uploadRetryDelay(insteadOf head: ResponseHead) -> Int64? {
        let (end, url) = (sentEnd, request.url)
        guard let uploadVerdict = upload?.received(head, from: url, sent: end) else { return nil }
        reportUploadLocation()
        attempt.uploadVerdict = uploadVerdict
        guard case .retry(let isRequestedByServer) = uploadVerdict else { return nil }
        if let delay = retryDelay(for: head, isRequestedByServer: isRequestedByServer) { return delay }
        let isGood = (200...299).contains(head.statusCode)
        attempt.uploadVerdict = isGood ? .refuse(.init("the server does not confirm that the upload is complete")) : .final
        return nil
    }

    /// Takes the response to an upload's request; `nil` if it is the last one, and therefore the task's response.
    mutating func takeUploadResponse(_ head: ResponseHead) -> Intake? {
        switch attempt.uploadVerdict {
        case nil, .retry: return nil
        case .final:
            if (200...299).contains(head.statusCode), let upload {
                // The response to a request with a body may arrive before the body is sent.
                if upload.bodyCount == 0 { progress.bytesSent = upload.length }
                let isTus = if case .tus = upload.kind { true } else { false }
                attempt.uploadDigest = ReprDigest.ofUpload(head, to: request.method, isTus: isTus)
            }
            return nil
        case .refuse(let refusal): return .abort(TaskMachine.error(refusal, statusCode: head.statusCode))
        case .next:
            announceContinued(after: head)
            return bufferBody(until: .upload)
        }
    }

    /// Reports that the upload continues behind the server's offset after a failure.
    private mutating func announceContinued(after head: ResponseHead) {
        guard let upload, case .append(let offset, _) = upload.request, offset > 0,
            request.method == .head || head.statusCode == 409
        else { return }
        metrics.bytesContinued += offset
        issue(.report(.uploadContinued(offset: offset, total: upload.length)))
    }

    /// Compares the complete upload's files with the digest that the server has sent, if any. - Returns: whether
    /// ``Event/uploadDigestVerified(_:)`` follows.
    mutating func verifyUploadDigestIfNeeded() -> Bool {
        guard let digest = attempt.uploadDigest, upload != nil else { return false }
        advance(.receiverFull)
        attempt.phase = .verifying
        issue(.verifyUploadDigest(digest))
        return true
    }

    mutating func uploadDigestVerified(_ isRight: Bool) {
        guard attempt.phase == .verifying else { return }
        guard !isRight else { return advance(.ended) }
        let algorithm = attempt.uploadDigest?.algorithm.rawValue ?? ""
        let reason = "the server has received other bytes than the upload's: their \(algorithm) differs"
        end(with: HTTPSessionError(.digestMismatch, reason))
    }

    private mutating func reportUploadLocation() {
        if let location = upload?.location { issue(.reportUploadLocation(location)) }
    }

    mutating func takeUploadInterim(_ head: ResponseHead) {
        guard attempt.uploadStop == nil else { return }
        let (end, url) = (sentEnd, request.url)
        attempt.uploadStop = upload?.received(interim: head, from: url, sent: end)
        reportUploadLocation()
        // This runs inside a libcurl callback, in which a transfer cannot be ended.
        if attempt.uploadStop != nil { effects.append(.scheduleRequestStop) }
    }

    /// Stops the request before its end: the next request, or the error, is known already.
    mutating func stopRequest() {
        guard let stop = attempt.uploadStop, attempt.head == nil, attempt.hasBegun, let upload else { return }
        switch stop {
        case .refuse(let refusal):
            effects.append(.abandon)
            end(with: TaskMachine.error(refusal, statusCode: nil))
        case .acceptsOnlyParts:
            // A request that has been sent completely is left to the server's response.
            let end = sentEnd
            guard end < upload.bodyStart + upload.bodyCount else { return }
            effects.append(.abandon)
            self.upload?.lost(sent: end, hasSent: true)
            proceed(with: nextAttempt())
        }
    }

    private static func error(_ refusal: UploadMachine.Refusal, statusCode: Int?) -> HTTPSessionError {
        HTTPSessionError(refusal.code, refusal.reason, context: .init(statusCode: statusCode))
    }
}
