internal import FoundationEssentials
internal import HTTPTypes

/// An upload that goes on where it stopped: its machine says which request is next, and here it becomes one.
extension TransferMachine {
    /// Tells the upload's machine of an answer, and asks the retry policy where it is to be asked.
    ///
    /// - Returns: how long to wait before the next attempt, if one follows because this one failed.
    mutating func uploadRetryDelay(insteadOf head: ResponseHead) -> Int64? {
        let end = sentEnd
        guard let verdict = upload?.received(head, from: request.url, sent: end) else { return nil }
        tellPlace()
        attempt.verdict = verdict
        guard case .retry(let isAskedFor) = verdict else { return nil }
        if let delay = retryDelay(for: head, isAskedFor: isAskedFor) { return delay }
        let isGood = (200...299).contains(head.statusCode)
        attempt.verdict = isGood ? .refuse(.init("the server does not say that the upload is complete")) : .final
        return nil
    }

    /// What follows from the answer to an upload's request; `nil`: it is the last one, and the task's.
    mutating func takeUploadAnswer(_ head: ResponseHead) -> Intake? {
        switch attempt.verdict {
        case nil, .retry: return nil
        case .final:
            if (200...299).contains(head.statusCode), let upload {
                progress.sent = upload.length
                let isTus = if case .tus = upload.kind { true } else { false }
                attempt.uploadDigest = ReprDigest.ofUpload(head, to: request.method, isTus: isTus)
            }
            return nil
        case .refuse(let refusal): return .abort(TransferMachine.error(refusal, statusCode: head.statusCode))
        case .next:
            announceContinued(after: head)
            return hold(until: .upload)
        }
    }

    /// An upload goes on behind what is there, after something went wrong.
    private mutating func announceContinued(after head: ResponseHead) {
        guard let upload, case .append(let offset, _) = upload.request, offset > 0,
            request.method == .head || head.statusCode == 409
        else { return }
        metrics.bytesResumed += offset
        order(.tell(.uploadContinued(offset: offset, total: upload.length)))
    }

    /// Compares the complete upload with its files if the server has sent a digest of it. - Returns: whether
    /// ``Event/uploadVerified(_:)`` follows.
    mutating func verifiesUpload() -> Bool {
        guard let digest = attempt.uploadDigest, upload != nil else { return false }
        live(.receiverFull)
        attempt.phase = .verifying
        order(.verifyUpload(digest))
        return true
    }

    mutating func uploadVerified(_ isRight: Bool) {
        guard attempt.phase == .verifying else { return }
        guard !isRight else { return live(.ended) }
        let algorithm = attempt.uploadDigest?.algorithm.rawValue ?? ""
        let reason = "the server has other bytes than were to be sent: their \(algorithm) differs"
        end(with: HTTPSessionError(.digestMismatch, reason))
    }

    private mutating func tellPlace() {
        if let place = upload?.location { order(.tellPlace(place)) }
    }

    mutating func takeUploadInterim(_ head: ResponseHead) {
        guard attempt.stop == nil else { return }
        let end = sentEnd
        attempt.stop = upload?.received(interim: head, from: request.url, sent: end)
        tellPlace()
        // It comes from inside of libcurl, where nothing can be ended.
        if attempt.stop != nil { effects.append(.breakOffSoon) }
    }

    /// The request is not wanted to its end: what follows is known already, or it is the end.
    mutating func breakOff() {
        guard let stop = attempt.stop, attempt.head == nil, attempt.hasBegun, let upload else { return }
        switch stop {
        case .refuse(let refusal):
            effects.append(.abandon)
            end(with: TransferMachine.error(refusal, statusCode: nil))
        case .takesParts:
            // What has gone whole is judged by its server.
            let end = sentEnd
            guard end < upload.bodyStart + upload.bodyCount else { return }
            effects.append(.abandon)
            self.upload?.lost(sent: end, hasSent: true)
            goOn(with: nextAttempt())
        }
    }

    private static func error(_ refusal: UploadMachine.Refusal, statusCode: Int?) -> HTTPSessionError {
        HTTPSessionError(refusal.code, refusal.reason, context: .init(statusCode: statusCode))
    }
}
