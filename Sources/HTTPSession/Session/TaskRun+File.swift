internal import EventLoop
internal import Foundation
internal import HTTPTypes
internal import Logging

/// A download's file: what an earlier one left of it is looked at before the first request, and the whole before it gets its name.
extension TaskRun {
    /// Whether the file has been looked for.
    enum PartState {
        case unknown
        case opening
        case open
    }

    /// The sink of a download to `destination`; the same one for all of a task's attempts.
    func fileSink(_ destination: DownloadDestination) -> FileSink {
        if let sink = sink as? FileSink, sink.destination == destination { return sink }
        var keeping = PartialFile.Keeping(resumes: settings.resumes, record: job.record)
        if let record = job.record {
            keeping.path = record.part
        } else if destination.unfinished != .removed {
            keeping.path = destination.file.path + DownloadDestination.partSuffix
            keeping.continues = destination.unfinished == .kept
            // It is found by its place.
            keeping.resumes = nil
        }
        let (id, core) = (task.id, task.core)
        return FileSink(
            destination, keeping: keeping, worker: settings.worker(for: id),
            report: { [logger = settings.configuration.logger] in
                logger.warning("an unfinished download is left alone", metadata: ["reason": "\($0)"])
            }
        ) { core.post(.sinkReady(id)) }
    }

    /// Looks for what an earlier download left, before the first request. - Returns: whether ``partOpened(_:)`` follows.
    func opensPart() -> Bool {
        guard partState != .open, case .file(let destination) = job.destination,
            job.record != nil || destination.unfinished != .removed
        else { return false }
        guard partState == .unknown else { return true }
        partState = .opening
        let sink = fileSink(destination)
        self.sink = sink
        let (id, core) = (task.id, task.core)
        sink.reopen { core.post(.partOpened(id, $0)) }
        return true
    }

    /// Names the file as the response suggests, if the destination asks for that. - Returns: the name.
    @discardableResult
    func nameFile(_ file: FileSink, by head: ResponseHead) -> String? {
        guard let naming = file.destination.naming else { return nil }
        // What is kept of it is harmless, and short.
        let name = naming.name(ContentDisposition.fileName(of: head))
        file.name(name)
        return name
    }

    /// What tells a later download of the bytes that come now.
    func sidecar(named name: String?) -> Sidecar? {
        resumption.map {
            Sidecar(
                resumption: $0, start: task.request.url.withoutUser, boot: BootIdentifier.current, suggestedName: name)
        }
    }

    func partOpened(_ remains: Result<FileSink.Remains, HTTPSessionError>) {
        guard partState == .opening, task.result == nil else { return }
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
    private func goOn(from part: FileSink.Part) {
        let wanted = (sink as? FileSink)?.destination.expectedDigest
        if let wanted, let known = part.sidecar.resumption.digest, wanted != known { return }
        // What a server said of another resource says nothing of this one; but what was asked for then may lead to the same again.
        guard
            wanted != nil || part.sidecar.resumption.isSameResource(request.url)
                || part.sidecar.start == start.url.withoutUser
        else { return }
        resumption = part.sidecar.resumption
        beginning = (nil, job.destination)
        progress.received = part.length
        progress.expectedToReceive = part.sidecar.resumption.total
        publishProgress()
    }

    /// The response's body is whole. Where it has a digest, that is looked at first. - Returns: whether ``verified(_:)`` follows.
    func verifies() -> Bool {
        guard let file = sink as? FileSink, case .file? = exchange.destination,
            let digest = file.destination.expectedDigest ?? resumption?.digest ?? serversDigest
        else { return false }
        // It may take longer than a server may be silent.
        handle(.receiverFull)
        let (id, core) = (task.id, task.core)
        file.verify(digest) { core.post(.verified(id, $0)) }
        return true
    }

    /// The error of a response that has no content by its status, and therefore never replaces a file (RFC 9110 section 15.3.5).
    func contentRefusal(_ head: ResponseHead, _ destination: TaskSpecification.Destination) -> HTTPSessionError? {
        guard case .file = destination, [204, 205].contains(head.statusCode), request.method != .head else { return nil }
        return HTTPSessionError(
            .unacceptableStatus, "the server answered \(head.statusCode): it has no content for the file",
            context: .init(statusCode: head.statusCode))
    }

    /// Of a response that could not be continued, as a POST's.
    private var serversDigest: ContentDigest? {
        request.method == .head ? nil : exchange.head.flatMap(ReprDigest.ofBody)
    }

    func verified(_ isRight: Result<Bool, HTTPSessionError>) {
        switch isRight {
        case .success(true): handle(.ended)
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
