internal import EventLoop
internal import FoundationEssentials
internal import Logging

/// The destination of a response's body, and its completion.
extension TaskDriver {
    func openPartialFile(_ destination: DownloadDestination) {
        let sink = fileSink(destination)
        self.sink = sink
        let (id, core) = (task.id, task.core)
        fileWork += 1
        sink.reopen { core.post(.partialFileOpened(id, $0)) }
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
            // A later download finds the partial file by its path, without resume data.
            keeping.resumes = nil
        }
        let (id, core) = (task.id, task.core)
        return FileSink(
            destination, keeping: keeping, worker: settings.worker(for: id), chunks: settings.spareChunks,
            now: { [transport = loop.transport] in transport.now() },
            report: { [logger = settings.configuration.logger] in
                logger.warning("a partial file is not used", metadata: ["reason": "\($0)"])
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
        case .reader(let buffer):
            sink = ChunkSink(buffer)
            showResponse(head)
        }
        sink?.begin(expected: machine.progress.expectedToReceive)
    }

    /// Gives the response of a stream to those who await it: its body may wait for a reader for ever.
    private func showResponse(_ head: ResponseHead) {
        var metrics = machine.metrics
        metrics.taskInterval = DateInterval(start: started, end: max(started, loop.transport.date()))
        let (url, method) = (machine.request.url, machine.request.method)
        loop.outbox.resume(task.beginBody(of: TransferResponse(head: head, url: url, method: method, metrics: metrics)))
    }

    /// The sidecar that describes the partial file to a later download.
    private func sidecar(named name: String?) -> Sidecar? {
        machine.resumption.map {
            Sidecar(resumption: $0, start: task.request.url.withoutUser, boot: BootIdentifier.current, suggestedName: name)
        }
    }

    /// Passes on bytes that arrived before the sink was open.
    func feed(_ data: Data) {
        if case .abort(let error) = data.withUnsafeBytes({ transferReceived(bytes: $0) }) {
            send(.bufferedBodyDelivered(error))
        } else {
            send(.bufferedBodyDelivered(nil))
        }
    }

    /// The sink has room again.
    func receive() {
        guard let transfer else { return }
        if let failure = sink?.failure {
            return transfer.end(with: failure)
        }
        transfer.resumeReceiving()
    }

    /// Compares the complete upload with its files.
    func verifyUploadDigest(_ digest: ContentDigest) {
        let (id, core, body, algorithm) = (task.id, task.core, job.upload?.body, digest.algorithm)
        fileWork += 1
        settings.worker(for: id).run { [task] in
            // A body that cannot be read again counts as verified.
            let found = body?.digest(algorithm) { task.result != nil }
            core.post(.uploadDigestVerified(id, found == nil || found == digest))
        }
    }

    // MARK: The end

    func discard(_ error: HTTPSessionError) {
        task.endBody()
        let (id, core) = (task.id, task.core)
        // The caller may exit as soon as the task has ended: the partial file has to be removed or complete before that.
        guard let sink, !sink.discard(error, { core.post(.delivered(id, .failure($0))) }) else {
            return delivered(.failure(error))
        }
        fileWork += 1
    }

    func deliver() {
        task.endBody()
        guard let sink else { return delivered(.success(ReceivedBody())) }
        if let body = sink.finishNow() { return delivered(.success(body)) }
        let (id, core) = (task.id, task.core)
        fileWork += 1
        sink.finish { core.post(.delivered(id, $0)) }
    }

    func delivered(_ body: Result<ReceivedBody, HTTPSessionError>) {
        machine.delivered(body, during: DateInterval(start: started, end: max(started, loop.transport.date())), now: loop.now)
        perform()
    }

    func complete() {
        guard let result = machine.result.take() else { return }
        // A response handler may have turned a stream into a download: the stream's reader is notified of the end here.
        if case .failure(let error) = result {
            task.store(machine.metrics)
            task.chunkBuffer?.finish(error)
        } else {
            task.chunkBuffer?.finish(nil)
        }
        if case .success(let response) = result { loop.recentResponses.add(response, now: loop.now) }
        // Before the result is set, because a reader takes the job with it.
        if !mayHaveUserObjects { task.keep(job) }
        loop.outbox.complete(task, result)
        loop.forget(task.id)
    }

    /// Whether the run may reference objects of the user.
    var mayHaveUserObjects: Bool { task.mayHaveUserObjects || !segments.isEmpty || machine.redirectCount > 0 }

    /// The objects of the run that may be the user's, to be released on the delivery queue. If the task references all of them, it alone is returned,
    /// without an allocation.
    var userObjects: any Sendable {
        let taskHasAll =
            job.segments.isEmpty && segments.isEmpty && job.upload == nil && machine.redirectCount == 0
            && !task.hasInterceptors
        return taskHasAll ? task : UserObjects(task: task, job: job, segments: segments, requests: machine.requests)
    }

    private struct UserObjects: Sendable {
        let task: TransferTask
        let job: TaskJob
        let segments: [BodySegment]
        let requests: [TransferRequest]
    }
}

extension FileSink {
    /// Names the file as the response suggests, if the destination permits that. - Returns: The name.
    @discardableResult
    func name(by head: ResponseHead) -> String? {
        guard let naming = destination.naming else { return nil }
        // The destination's naming removes path separators and control characters, and limits the length.
        let name = naming.name(ContentDisposition.fileName(of: head))
        self.name(name)
        return name
    }
}
