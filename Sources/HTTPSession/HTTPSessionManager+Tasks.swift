public import FoundationEssentials

/// Methods that make a task for a complete request, like those of `URLSession`.
extension HTTPSessionManager {
    /// Makes a task whose response is kept in memory.
    ///
    /// ```swift
    /// let response = try await session.dataTask(for: TransferRequest(url: url)).response
    /// ```
    ///
    /// - Parameters:
    ///   - request: The request. If it has a body, the task's ``TransferTask/kind-swift.property`` is `upload`.
    ///   - handlers: The task's own handlers, each in place of the session's of the same name; `nil` for none.
    ///   - startsImmediately: Whether the task starts now. If `false`, it is suspended until ``TransferTask/resume()``.
    /// - Returns: The task.
    public func dataTask(
        for request: TransferRequest, handlers: TransferHandlers? = nil, startsImmediately: Bool = true
    ) -> TransferTask {
        var kind = TransferTask.Kind.upload
        if case .none = request.body { kind = .data }
        return make(memoryJob(request, kind), handlers, startsImmediately)
    }

    /// Makes a task that sends a body and keeps the response in memory.
    ///
    /// - Parameters:
    ///   - request: The request. Its body is replaced by `body`.
    ///   - body: The body to send.
    ///   - handlers: The task's own handlers, each in place of the session's of the same name; `nil` for none.
    ///   - startsImmediately: Whether the task starts now. If `false`, it is suspended until ``TransferTask/resume()``.
    /// - Returns: The task.
    public func uploadTask(
        for request: TransferRequest, from body: RequestBody, handlers: TransferHandlers? = nil, startsImmediately: Bool = true
    ) -> TransferTask {
        var request = request
        request.body = body
        return make(memoryJob(request, .upload), handlers, startsImmediately)
    }

    /// Makes a task that sends the request's body in as many requests as necessary.
    ///
    /// A task continues after a lost connection, a restart of the server or a response that permits another attempt (``RetryPolicy``). It asks
    /// the server how many bytes it has, and sends the remaining bytes.
    ///
    /// ```swift
    /// let request = TransferRequest(url: files, method: .post, body: .file(film))
    /// let response = try await session.uploadTask(for: request, resumableUsing: .tus).response
    /// ```
    ///
    /// The response is the one that confirms the complete upload; ``TransferResponse/url`` is the upload's URL if that response came from it.
    /// A status outside of 200 to 299 fails the task with ``HTTPSessionError/Code/unacceptableStatus``. The body must have a known length and
    /// the same bytes whenever it is read: if a file changes, the task fails with ``HTTPSessionError/Code/fileChanged``.
    ///
    /// The rules for redirects also apply to the upload's URL. Credentials for the origin of the request are not sent to another origin. A
    /// canceled upload remains on its server until the server removes it.
    ///
    /// - Parameters:
    ///   - request: The request that creates the upload, with the body to send.
    ///   - uploadProtocol: The protocol of resumable uploads that the server supports.
    ///   - handlers: The task's own handlers, each in place of the session's of the same name; `nil` for none.
    ///   - startsImmediately: Whether the task starts now. If `false`, it is suspended until ``TransferTask/resume()``.
    /// - Returns: The task.
    public func uploadTask(
        for request: TransferRequest, resumableUsing uploadProtocol: UploadProtocol, handlers: TransferHandlers? = nil,
        startsImmediately: Bool = true
    ) -> TransferTask {
        make(memoryJob(request, .upload, accepting: TaskJob.successes, uploadProtocol), handlers, startsImmediately)
    }

    /// Makes a task that sends `body` in as many requests as necessary. It replaces the body of the request; see
    /// ``uploadTask(for:resumableUsing:handlers:startsImmediately:)``.
    public func uploadTask(
        for request: TransferRequest, from body: RequestBody, resumableUsing uploadProtocol: UploadProtocol,
        handlers: TransferHandlers? = nil, startsImmediately: Bool = true
    ) -> TransferTask {
        var request = request
        request.body = body
        return uploadTask(
            for: request, resumableUsing: uploadProtocol, handlers: handlers, startsImmediately: startsImmediately)
    }

    /// Makes a task that writes the response's body to a file.
    ///
    /// A status outside of 200 to 299 fails the task with ``HTTPSessionError/Code/unacceptableStatus``, so that no error page is saved. The file has the
    /// decompressed content if the server compresses it unasked (``SessionConfiguration/decompressesResponses``).
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - destination: The file, and the rules for an existing file and for a partial file.
    ///   - handlers: The task's own handlers, each in place of the session's of the same name; `nil` for none.
    ///   - startsImmediately: Whether the task starts now. If `false`, it is suspended until ``TransferTask/resume()``.
    /// - Returns: The task.
    public func downloadTask(
        for request: TransferRequest, to destination: DownloadDestination, handlers: TransferHandlers? = nil,
        startsImmediately: Bool = true
    ) -> TransferTask {
        let job = TaskJob(request, .download, to: .file(destination), accepting: TaskJob.successes, settings: core.settings)
        return make(job, handlers, startsImmediately)
    }

    /// Makes a task that writes the response's body to a file that does not exist yet. A ``DownloadDestination`` has other rules.
    public func downloadTask(
        for request: TransferRequest, to file: URL, handlers: TransferHandlers? = nil, startsImmediately: Bool = true
    ) -> TransferTask {
        downloadTask(for: request, to: DownloadDestination(file), handlers: handlers, startsImmediately: startsImmediately)
    }

    /// Makes a task that continues a download which failed or was canceled, from its ``HTTPSessionError/resumeData``.
    ///
    /// The task may be made in the same process, or in a later one with the same ``SessionConfiguration/resumeDirectory``. Resume data is valid
    /// until the file is complete. The destination may differ from the first one.
    ///
    /// If the stored bytes cannot be used, the task requests the complete file. If the session does not know the resume data and `request` is
    /// `nil`, the task fails with ``HTTPSessionError/Code/cannotResume``.
    ///
    /// - Parameters:
    ///   - resumeData: The data from the error.
    ///   - request: The request, with the fields and options of the first one, or with a URL that is signed again. If `nil`, the first URL is
    ///     requested without header fields: they may be secrets and are not stored.
    ///   - destination: The file, and the rules for an existing file and for a partial file.
    ///   - handlers: The task's own handlers, each in place of the session's of the same name; `nil` for none.
    ///   - startsImmediately: Whether the task starts now. If `false`, it is suspended until ``TransferTask/resume()``.
    /// - Returns: The task.
    public func downloadTask(
        withResumeData resumeData: Data, for request: TransferRequest? = nil, to destination: DownloadDestination,
        handlers: TransferHandlers? = nil, startsImmediately: Bool = true
    ) -> TransferTask {
        do throws(HTTPSessionError) {
            guard let directory = core.settings.resumes else {
                throw HTTPSessionError(.cannotResume, "the session has no resumeDirectory")
            }
            let record = try directory.record(of: resumeData)
            let job = TaskJob(
                request ?? TransferRequest(url: record.start), .download, to: .file(destination), accepting: TaskJob.successes,
                record: directory.hasPartialFile(record) ? record : nil, settings: core.settings)
            return make(job, handlers, startsImmediately)
        } catch {
            if let request {
                return downloadTask(for: request, to: destination, handlers: handlers, startsImmediately: startsImmediately)
            }
            return failedTask(.download, .file(destination), error, handlers)
        }
    }

    /// Makes a task whose response is read in chunks as they arrive (``TransferTask/chunks``). ``TransferTask/response`` returns when the head of the
    /// response has arrived; from then on the task is not retried.
    ///
    /// At most 256 KiB wait for the reader; then the connection waits. Streams use HTTP/1.1, because libcurl would buffer up to 32 MB of a
    /// paused HTTP/2 stream.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - handlers: The task's own handlers, each in place of the session's of the same name; `nil` for none.
    ///   - startsImmediately: Whether the task starts now. If `false`, it is suspended until ``TransferTask/resume()``.
    /// - Returns: The task.
    public func streamTask(
        for request: TransferRequest, handlers: TransferHandlers? = nil, startsImmediately: Bool = true
    ) -> TransferTask {
        let id = SessionCore.nextID()
        let buffer = ChunkBuffer { [weak core] in core?.post(.sinkReady(id)) }
        let job = TaskJob(
            request, .stream, to: .reader(buffer), accepting: TaskJob.successes, id: id, settings: core.settings)
        return make(job, handlers, startsImmediately)
    }

    /// The job of a task whose response is kept in memory.
    private func memoryJob(
        _ request: TransferRequest, _ kind: TransferTask.Kind, accepting statusCodes: ClosedRange<Int>? = nil,
        _ uploadProtocol: UploadProtocol? = nil
    ) -> TaskJob {
        let limit = request.options.maximumResponseSize ?? configuration.maximumResponseSize
        return TaskJob(
            request, kind, to: .memory(maximumSize: limit), accepting: statusCodes, uploadProtocol: uploadProtocol,
            settings: core.settings)
    }

    /// Makes the task of a job. `own`: the task's own handlers, which are added to the session's; `nil` for none.
    func make(_ job: TaskJob, _ own: TransferHandlers? = nil, _ startsImmediately: Bool) -> TransferTask {
        let (handlers, decisions, identities) = handlers(beside: own)
        let task = TransferTask(
            job, handlers: handlers, core: core, validation: validation, decisions: decisions, identities: identities)
        let failure = job.failure
        if !startsImmediately, failure == nil { core.register(task) }
        core.outbox.detail(.taskCreated(task))
        if let failure {
            task.fail(failure)
        } else if startsImmediately {
            task.resume()
        } else {
            // An event that is not delivered would keep the task, and the task its session.
            core.outbox.flush()
        }
        return task
    }

    /// The handlers of a task, and the stores of their decisions: a handler of the session decides for all tasks without their own one, a task's own
    /// handler for that task alone.
    private func handlers(
        beside own: TransferHandlers?
    ) -> (TransferHandlers, ServerTrustDecisions?, ClientCertificateDecisions?) {
        let (settings, handlers) = (core.settings, self.handlers)
        let decisions = handlers.serverTrust == nil ? nil : settings.decisions
        let identities = handlers.clientCertificate == nil ? nil : settings.identities
        guard let own else { return (handlers, decisions, identities) }
        return (
            own.added(to: handlers), own.serverTrust == nil ? decisions : .init(capacity: 32),
            own.clientCertificate == nil ? identities : .init(capacity: 32)
        )
    }

    /// Returns a task that fails before it starts, because its request cannot be made.
    func failedTask(
        _ kind: TransferTask.Kind, _ destination: BodyDestination, _ error: HTTPSessionError, _ handlers: TransferHandlers? = nil
    ) -> TransferTask {
        let request = TransferRequest(url: baseURL ?? URL(fileURLWithPath: "/"))
        return make(TaskJob(request, kind, to: destination, failure: error, settings: core.settings), handlers, false)
    }

    // MARK: Lists

    /// All tasks that have started and have not finished, in the order in which they were made.
    public var tasks: [TransferTask] { get async { await core.tasks().sorted { $0.id < $1.id } } }
    /// Those ``tasks`` that keep their response in memory and send no body.
    public var dataTasks: [TransferTask] { get async { await tasks.filter { $0.kind == .data } } }
    /// Those ``tasks`` that send a body.
    public var uploadTasks: [TransferTask] { get async { await tasks.filter { $0.kind == .upload } } }
    /// Those ``tasks`` that write their response to a file.
    public var downloadTasks: [TransferTask] { get async { await tasks.filter { $0.kind == .download } } }
    /// Those ``tasks`` whose response is read in chunks.
    public var streamTasks: [TransferTask] { get async { await tasks.filter { $0.kind == .stream } } }

    // MARK: The session's end

    /// Ends the session. Tasks that are made later fail with ``HTTPSessionError/Code/sessionInvalidated``.
    ///
    /// The last event of the session is ``SessionEvent/sessionInvalidated``; then the session releases its monitors and handlers. The ``shared``
    /// session ignores this call.
    ///
    /// - Parameter afterTasks: Whether the session ends when its last task has finished. Tasks that were not started fail. If `false`, all tasks are
    ///   canceled.
    public func cancel(afterTasks: Bool = false) { core.invalidate(cancelsTasks: !afterTasks, session: self) }

    /// Waits until the session has ended: its tasks and connections, its files, which are those of cookies and of Strict-Transport-Security, and its
    /// last event. The session has then released its monitors and handlers. For the ``shared`` session, the call returns at once.
    ///
    /// ```swift
    /// session.cancel()
    /// await session.waitUntilEnded()
    /// ```
    ///
    /// A session without references ends with its last task. The thread that releases the last reference waits until the connections are closed
    /// and the files are written: milliseconds, or longer on a slow disk. If that thread must not wait, call these methods before you release the
    /// last reference.
    public func waitUntilEnded() async { await core.waitUntilEnded() }
}

extension HTTPSessionManager {
    /// The events of this session from now on. Every access returns a new sequence; see ``SessionEvents``.
    public var events: SessionEvents { SessionEvents(core.outbox) }
    /// The cookies of this session; `nil` if its configuration keeps none (``SessionConfiguration/CookieStorage/none``).
    public var cookieStore: CookieStore? { core.settings.network.cookieStore }
}

/// Methods that make a task for a GET request of a URL, and start it.
extension HTTPSessionManager {
    /// Makes a task that requests a URL and keeps the response in memory; see ``dataTask(for:handlers:startsImmediately:)``.
    public func dataTask(for url: URL) -> TransferTask { dataTask(for: TransferRequest(url: url)) }

    /// Makes a task that requests a URL and writes the response's body to a file that does not exist yet. A ``DownloadDestination`` has other
    /// rules.
    public func downloadTask(for url: URL, to file: URL) -> TransferTask {
        downloadTask(for: TransferRequest(url: url), to: DownloadDestination(file))
    }

    /// Makes a task that requests a URL and writes the response's body to a file; see
    /// ``downloadTask(for:to:handlers:startsImmediately:)-(_,DownloadDestination,_,_)``.
    public func downloadTask(for url: URL, to destination: DownloadDestination) -> TransferTask {
        downloadTask(for: TransferRequest(url: url), to: destination)
    }

    /// Makes a task that requests a URL, and whose response is read in chunks; see ``streamTask(for:handlers:startsImmediately:)``.
    public func streamTask(for url: URL) -> TransferTask { streamTask(for: TransferRequest(url: url)) }
}
