internal import EventLoop
internal import FoundationEssentials
internal import Logging

/// Where a response's body goes, and what becomes of it.
extension TransferDriver {
    func openPart(_ destination: DownloadDestination) {
        let sink = fileSink(destination)
        self.sink = sink
        let (id, core) = (task.id, task.core)
        sink.reopen { core.post(.partOpened(id, $0)) }
    }

    /// The sink of a download to `destination`; the same one for all of a task's attempts.
    private func fileSink(_ destination: DownloadDestination) -> FileSink {
        if let sink = sink as? FileSink, sink.destination == destination { return sink }
        var keeping = PartialFile.Retention(resumes: settings.resumes, record: job.record)
        if let record = job.record {
            keeping.path = record.partialFile
        } else if destination.partialFile != .remove {
            keeping.path = destination.file.path + DownloadDestination.partialFileSuffix
            keeping.continues = destination.partialFile == .keep
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

    func openSink() {
        guard let destination = machine.attempt.destination, let head = machine.attempt.head else { return }
        switch destination {
        case .memory(let maximumSize): sink = DataSink(maximumSize: maximumSize)
        case .file(let destination):
            let file = fileSink(destination)
            file.sidecar = sidecar(named: file.name(by: head))
            sink = file
        case .reader(let buffer): sink = ChunkSink(buffer)
        }
        sink?.begin(expected: machine.progress.expectedToReceive)
    }

    /// What tells a later download of the bytes that come now.
    private func sidecar(named name: String?) -> Sidecar? {
        machine.resumption.map {
            Sidecar(resumption: $0, start: task.request.url.withoutUser, boot: BootIdentifier.current, suggestedName: name)
        }
    }

    /// Bytes that have come before their place was known.
    func feed(_ data: Data) {
        if case .abort(let error) = data.withUnsafeBytes({ transferReceived(bytes: $0) }) {
            send(.fed(error))
        } else {
            send(.fed(nil))
        }
    }

    /// The sink has room again.
    func receive() {
        guard let transfer else { return }
        if let failure = sink?.failure {
            transfer.refuse(with: failure)
            return loop.engine.endRefused(transfer)
        }
        transfer.resumeReceiving()
    }

    /// Compares the complete upload with its files.
    func verifyUpload(_ digest: ContentDigest) {
        let (id, core, body, algorithm) = (task.id, task.core, job.upload?.body, digest.algorithm)
        settings.worker(for: id).run { [task] in
            // Of a body that cannot be read again nothing is known.
            let found = body?.digest(algorithm) { task.result != nil }
            core.post(.uploadVerified(id, found == nil || found == digest))
        }
    }

    // MARK: The end

    func discard(_ error: HTTPSessionError) {
        let (id, core) = (task.id, task.core)
        // Whoever hears of the end may end the program: nothing shall be left then.
        guard let sink, !sink.discard(error, { core.post(.delivered(id, .failure($0))) }) else {
            return delivered(.failure(error))
        }
    }

    func deliver() {
        guard let sink else { return delivered(.success(ReceivedBody())) }
        if let body = sink.finishNow() { return delivered(.success(body)) }
        let (id, core) = (task.id, task.core)
        sink.finish { core.post(.delivered(id, $0)) }
    }

    func delivered(_ body: Result<ReceivedBody, HTTPSessionError>) {
        machine.delivered(body, during: DateInterval(start: started, end: max(started, Date())), now: loop.now)
        perform()
    }

    func complete() {
        guard let result = machine.result.take() else { return }
        // A response handler may have made a download of a stream: its reader hears of the end here.
        if case .failure(let error) = result {
            task.note(machine.metrics)
            task.chunkBuffer?.finish(error)
        } else {
            task.chunkBuffer?.finish(nil)
        }
        loop.outbox.complete(task, result)
        loop.forget(task.id)
    }

    /// What of it may be the user's, to be let go of where that may end. Most have nothing but the task: memory that another thread gives
    /// back costs both of them.
    var remains: any Sendable {
        let taskHasAll =
            job.segments.isEmpty && segments.isEmpty && job.upload == nil && machine.redirects == 0
            && task.handlers.interceptors.isEmpty
        return taskHasAll ? task : Remains(task: task, job: job, segments: segments, requests: machine.requests)
    }

    private struct Remains: Sendable {
        let task: TransferTask
        let job: TransferJob
        let segments: [BodySegment]
        let requests: [TransferRequest]
    }
}

extension FileSink {
    /// Names the file as the response suggests, if the destination asks for that. - Returns: the name.
    @discardableResult
    func name(by head: ResponseHead) -> String? {
        guard let naming = destination.naming else { return nil }
        // What is kept of it is harmless, and short.
        let name = naming.name(ContentDisposition.fileName(of: head))
        self.name(name)
        return name
    }
}
