internal import EventLoop
package import Foundation
internal import HTTPTypes

/// What a task needs to upload in several requests.
struct UploadJob: Sendable {
    let machine: UploadMachine
    let body: ResumableBody
    /// Hears where the upload is, whenever its server has answered.
    let tellsPlace: (@Sendable (URL) -> Void)?

    /// Checks the request, and looks at the body's files.
    init(
        _ request: TransferRequest, _ segments: [BodySegment], _ kind: UploadProtocol, allowsInsecure: Bool,
        place: UploadPlace? = nil
    ) throws(HTTPSessionError) {
        if let objection = kind.objection(to: request) { throw objection }
        body = try ResumableBody(segments)
        var machine = UploadMachine(
            kind.kind, length: body.length, isIdempotent: request.isIdempotent, allowsInsecure: allowsInsecure)
        if let place, let known = place.known { machine.goOn(at: known, mayBeginAnew: place.mayBeginAnew) }
        self.machine = machine
        tellsPlace = place?.tell
    }
}

/// Where an upload is, across processes.
package struct UploadPlace: Sendable {
    /// What its server said to another process.
    package var known: URL?
    /// Whether it is made again where its server does not know it any more, though it may have been complete.
    package var mayBeginAnew: Bool
    /// Called on the session's thread whenever the server has answered; it must not wait.
    package var tell: @Sendable (URL) -> Void

    package init(known: URL?, mayBeginAnew: Bool = false, tell: @escaping @Sendable (URL) -> Void) {
        self.known = known
        self.mayBeginAnew = mayBeginAnew
        self.tell = tell
    }
}

/// An upload that goes on where it stopped: its machine says which request is next, and here it becomes one.
extension TaskRun {
    /// What another attempt asks for: the same again, the first address where a redirect has led nowhere, or of an upload what its machine
    /// says.
    func nextAttempt() -> TransferRequest {
        let next: TransferRequest
        if let upload, let body = job.upload?.body {
            next = upload.transferRequest(of: task.request)
            replaceBody(body.part(from: upload.bodyStart, count: upload.bodyCount))
        } else {
            guard leadsNowhere() else { return request }
            next = start
        }
        redirects = 0
        moveLogins(to: next)
        return next
    }

    /// How far into the whole body the present request has come. libcurl begins it anew on a connection that has died, also where some of it
    /// had arrived.
    var sentEnd: Int64 { max(exchange.sentBeforeRewind, progress.sent) }

    /// Tells the upload's machine of an answer, and asks the retry policy where it is to be asked.
    ///
    /// - Returns: how long to wait before the next attempt, if one follows because this one failed.
    func uploadRetryDelay(insteadOf head: ResponseHead) -> Int64? {
        guard let verdict = upload?.received(head, from: request.url, sent: sentEnd) else { return nil }
        tellPlace()
        exchange.verdict = verdict
        guard case .retry(let isAskedFor) = verdict else { return nil }
        if let delay = retryDelay(for: head, isAskedFor: isAskedFor) { return delay }
        let isGood = (200...299).contains(head.statusCode)
        exchange.verdict = isGood ? .refuse(.init("the server does not say that the upload is complete")) : .final
        return nil
    }

    /// What follows from the answer to an upload's request; `nil`: it is the last one, and the task's.
    func takeUploadAnswer(_ head: ResponseHead) -> Intake? {
        switch exchange.verdict {
        case nil, .retry: return nil
        case .final:
            if (200...299).contains(head.statusCode), let upload {
                progress.sent = upload.length
                let isTus = if case .tus = upload.kind { true } else { false }
                exchange.uploadDigest = ReprDigest.ofUpload(head, to: request.method, isTus: isTus)
            }
            return nil
        case .refuse(let refusal): return .abort(error(refusal, statusCode: head.statusCode))
        case .next:
            announceContinued(after: head)
            exchange.next = .upload
            exchange.body = .held(Data())
            return .taken
        }
    }

    /// An upload goes on behind what is there, after something went wrong.
    private func announceContinued(after head: ResponseHead) {
        guard let upload, case .append(let offset, _) = upload.request, offset > 0,
            request.method == .head || head.statusCode == 409
        else { return }
        metrics.bytesResumed += offset
        loop.outbox.announce(.uploadContinued(task, offset: offset, total: upload.length))
    }

    /// Compares the complete upload with its files if the server has sent a digest of it. - Returns: whether ``uploadVerified(_:)`` follows.
    func verifiesUpload() -> Bool {
        guard let digest = exchange.uploadDigest, let body = job.upload?.body else { return false }
        handle(.receiverFull)
        let (id, core, algorithm) = (task.id, task.core, digest.algorithm)
        settings.worker(for: id).run { [task] in
            // Of a body that cannot be read again nothing is known.
            let found = body.digest(algorithm) { task.result != nil }
            core.post(.uploadVerified(id, found == nil || found == digest))
        }
        return true
    }

    func uploadVerified(_ isRight: Bool) {
        guard !isRight else { return handle(.ended) }
        let algorithm = exchange.uploadDigest?.algorithm.rawValue ?? ""
        let reason = "the server has other bytes than were to be sent: their \(algorithm) differs"
        end(with: HTTPSessionError(.digestMismatch, reason))
    }

    private func tellPlace() {
        if let tell = job.upload?.tellsPlace, let place = upload?.location { tell(place) }
    }

    func takeUploadInterim(_ head: ResponseHead) {
        guard exchange.stop == nil else { return }
        exchange.stop = upload?.received(interim: head, from: request.url, sent: sentEnd)
        tellPlace()
        // It comes from inside of libcurl, where nothing can be ended.
        if exchange.stop != nil { task.core.post(.breakOff(task.id)) }
    }

    /// The request is not wanted to its end: what follows is known already, or it is the end.
    func breakOff() {
        guard let stop = exchange.stop, exchange.head == nil, transfer != nil, let upload else { return }
        switch stop {
        case .refuse(let refusal):
            abandonTransfer()
            end(with: error(refusal, statusCode: nil))
        case .takesParts:
            // What has gone whole is judged by its server.
            guard sentEnd < upload.bodyStart + upload.bodyCount else { return }
            abandonTransfer()
            self.upload?.lost(sent: sentEnd, hasSent: true)
            goOn(with: nextAttempt())
        }
    }

    private func error(_ refusal: UploadMachine.Refusal, statusCode: Int?) -> HTTPSessionError {
        HTTPSessionError(refusal.code, refusal.reason, context: .init(statusCode: statusCode))
    }
}
