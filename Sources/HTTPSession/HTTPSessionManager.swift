public import Dispatch
internal import EventLoop
public import FoundationEssentials
internal import HTTPTypes
internal import Pacing
public import Reachability

/// A session: its connections, its cookies, its limits and its tasks.
///
/// ```swift
/// let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/")
/// let user: User = try await session.get("users/7").decode()
/// ```
///
/// Tasks start when they are made and go on without the manager: it may be dropped while they run (``close(cancelsTasks:)`` says what
/// that waits for). Everything is done on a thread of
/// the session's own; handlers, callbacks and monitors are called elsewhere.
public final class HTTPSessionManager: Sendable {
    /// Addresses given as text are relative to it (RFC 3986 section 5), as if its path ended in a slash.
    public let baseURL: URL?
    /// As given.
    public let configuration: SessionConfiguration
    /// What is asked of tasks that have no handlers of their own.
    public let handlers: TransferHandlers
    /// How parameters of the methods named after HTTP's become requests.
    public let requestSerializer: any RequestSerializer
    /// What a response must be for ``TransferTask/data()`` and its like.
    public let validation: ResponseValidation
    /// Where callbacks run.
    public let completionQueue: DispatchQueue
    /// Entered by every callback until it has run.
    public let completionGroup: DispatchGroup?
    let core: SessionCore

    /// A session for programs that need no other, made when it is first asked for, with ``SessionConfiguration/default``. It cannot be
    /// invalidated.
    ///
    /// - Throws: what the system refuses: descriptors or a thread. The next access tries again.
    public static var shared: HTTPSessionManager {
        get throws(HTTPSessionError) {
            try sharedManager.withLock { (shared) throws(HTTPSessionError) in
                if let shared { return shared }
                let manager = try HTTPSessionManager()
                manager.core.neverEnds()
                shared = manager
                return manager
            }
        }
    }

    private static let sharedManager = Locked<HTTPSessionManager?>(nil)

    /// Makes a session and its thread.
    ///
    /// - Parameters:
    ///   - baseURL: what addresses are relative to; `nil`: they are absolute.
    ///   - configuration: how the session behaves; read now.
    ///   - handlers: asked for tasks that bring none of their own.
    ///   - requestSerializer: how parameters become requests.
    ///   - validation: what a response must be where a value is made of it; 200 to 299 unless told otherwise.
    ///   - completionQueue: where callbacks run. Without one they run one after another on a queue of the session's own: a main queue
    ///     runs only in programs that have a main loop (`dispatchMain()`, `RunLoop.main.run()`), and in others a callback on it never
    ///     comes.
    ///   - completionGroup: entered by every callback until it has run.
    ///   - credentials: may be shared between sessions.
    ///   - reachability: tells the network's state: without it nothing is known of cellular or expensive networks, a name that is not found
    ///     for want of a network is ``HTTPSessionError/Code/cannotFindHost`` and not ``HTTPSessionError/Code/notConnected``, and no task
    ///     waits for a network.
    ///   - monitors: hear every event, in this order.
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration`` naming what is wrong with it, or what the system refused. So is a policy
    ///   that pins without a base URL of https, as in AFNetworking: without TLS nobody is judged (``SecurityPolicy/PinningMode``).
    public convenience init(
        baseURL: String? = nil, configuration: SessionConfiguration = .default, handlers: TransferHandlers = TransferHandlers(),
        requestSerializer: any RequestSerializer = HTTPRequestSerializer(),
        validation: ResponseValidation = ResponseValidation(), completionQueue: DispatchQueue? = nil,
        completionGroup: DispatchGroup? = nil, credentials: CredentialStore = CredentialStore(), reachability: PathMonitor? = nil,
        monitors: [any EventMonitor] = []
    ) throws(HTTPSessionError) {
        try self.init(
            baseURL: baseURL, configuration: configuration, handlers: handlers, requestSerializer: requestSerializer,
            validation: validation, completionQueue: completionQueue, completionGroup: completionGroup, credentials: credentials,
            reachability: reachability, monitors: monitors, carriedBy: CurlTransport())
    }

    /// A session on a transport of the caller's choice.
    package init(
        baseURL: String?, configuration: SessionConfiguration, handlers: TransferHandlers,
        requestSerializer: any RequestSerializer, validation: ResponseValidation, completionQueue: DispatchQueue?,
        completionGroup: DispatchGroup?, credentials: CredentialStore, reachability: PathMonitor?, monitors: [any EventMonitor],
        carriedBy transport: any SessionTransport
    ) throws(HTTPSessionError) {
        let base = try baseURL.map { (text) throws(HTTPSessionError) -> URL in
            do throws(HTTPSessionError) { return RequestURL.asDirectory(try RequestURL.resolve(text)) } catch {
                throw HTTPSessionError(.invalidConfiguration, "the base URL cannot be asked: \(error.reason)")
            }
        }
        try configuration.securityPolicy.requireSecure(base)
        self.baseURL = base
        self.configuration = configuration
        self.handlers = handlers
        self.requestSerializer = requestSerializer
        self.validation = validation
        self.completionGroup = completionGroup
        core = try SessionCore(
            settings: SessionSettings(configuration, credentials: credentials, path: reachability, transport: transport),
            monitors: monitors,
            postsNotifications: configuration.postsNotifications)
        self.completionQueue = completionQueue ?? core.outbox.queue
    }

    /// The connections that the session has at a time: those of its configuration, or as many as the process has descriptors for.
    package var connectionLimit: Int { core.settings.queueLimits.total }

    // MARK: Tasks

    /// A task whose response is kept in memory; an upload where the request has a body.
    public func data(_ request: TransferRequest, handlers: TransferHandlers? = nil, startsNow: Bool = true) -> TransferTask {
        let limit = request.options.maximumResponseSize ?? configuration.maximumResponseSize
        var kind = TransferTask.Kind.upload
        if case .none = request.body { kind = .data }
        return make(
            TaskSpecification(
                request: request, kind: kind, destination: .memory(maximumSize: limit), handlers: handlers, startsNow: startsNow))
    }

    /// A task whose request's body is sent in as many requests as it takes: after a lost connection, a restart of the server or an answer
    /// that says to come again (``RetryPolicy``), it asks the server how much it has, and sends the rest.
    ///
    /// ```swift
    /// let request = TransferRequest(url: files, method: .post, body: .file(film))
    /// let response = try await session.upload(request, resumably: .tus(metadata: ["filename": "film.mkv"])).value
    /// ```
    ///
    /// The value is the answer that says that all is there; ``TransferResponse/url`` is the upload's place, where the answer came from it.
    /// An answer with another status than 200 to 299 ends the task with ``HTTPSessionError/Code/unacceptableStatus``. The body has a length
    /// that is known, and is the same whenever it is read: a file that changes ends the task (``HTTPSessionError/Code/fileChanged``).
    ///
    /// The upload's place has to be one that a redirect may lead to; what was meant for the request's own origin is not sent to another.
    /// A cancelled upload stays with its server until that drops it.
    public func upload(
        _ request: TransferRequest, resumably kind: UploadProtocol, handlers: TransferHandlers? = nil, startsNow: Bool = true
    ) -> TransferTask {
        let limit = request.options.maximumResponseSize ?? configuration.maximumResponseSize
        return make(
            TaskSpecification(
                request: request, kind: .upload, destination: .memory(maximumSize: limit),
                acceptableStatusCodes: TaskSpecification.successes, handlers: handlers, startsNow: startsNow, uploadProtocol: kind
            ))
    }

    /// A task whose response becomes a file. A status outside of 200 to 299 ends it with
    /// ``HTTPSessionError/Code/unacceptableStatus``: the text of an error page is no download.
    public func download(
        _ request: TransferRequest, to destination: DownloadDestination, handlers: TransferHandlers? = nil, startsNow: Bool = true
    ) -> TransferTask {
        make(
            TaskSpecification(
                request: request, kind: .download, destination: .file(destination),
                acceptableStatusCodes: TaskSpecification.successes, handlers: handlers, startsNow: startsNow))
    }

    /// A task whose response is read in pieces, as it comes (``TransferTask/chunks``). Of what comes, at most 256 KiB wait for the
    /// reader: then the connection does. Streams use HTTP/1.1, because libcurl would buffer up to 32 MB of a paused HTTP/2 stream.
    public func stream(_ request: TransferRequest, handlers: TransferHandlers? = nil, startsNow: Bool = true) -> TransferTask {
        let id = SessionCore.nextID()
        let buffer = ChunkBuffer { [weak core] in core?.post(.sinkReady(id)) }
        return make(
            TaskSpecification(
                id: id, request: request, kind: .stream, destination: .reader(buffer),
                acceptableStatusCodes: TaskSpecification.successes, handlers: handlers, startsNow: startsNow))
    }

    func make(_ specification: TaskSpecification) -> TransferTask {
        let (job, failure) = core.settings.job(of: specification)
        let own = specification.handlers
        let task = TransferTask(
            specification, handlers: own ?? handlers, job: job, core: core, validation: validation,
            decisions: memory(of: core.settings.decisions, or: .init(capacity: 32), own) { $0.serverTrust != nil },
            identities: memory(of: core.settings.identities, or: .init(capacity: 32), own) { $0.clientCertificate != nil })
        let startsNow = specification.startsNow
        if !startsNow, failure == nil { core.register(task) }
        core.outbox.detail(.taskCreated(task))
        if let failure {
            task.fail(failure)
        } else if startsNow {
            task.resume()
        } else {
            // What is not told would keep the task, and the task its session.
            core.outbox.flush()
        }
        return task
    }

    /// Where a handler's word is kept, if there is one: the session's speaks for all the tasks that have it, a task's own for that task.
    private func memory<Memory>(
        of session: Memory, or own: @autoclosure () -> Memory, _ handlers: TransferHandlers?, isThere: (TransferHandlers) -> Bool
    ) -> Memory? {
        guard isThere(handlers ?? self.handlers) else { return nil }
        return handlers == nil ? session : own()
    }

    /// Every task that has been started and has not ended.
    public var tasks: [TransferTask] { core.tasks.sorted { $0.id < $1.id } }
    /// Those of ``tasks`` that keep their response in memory and send no body.
    public var dataTasks: [TransferTask] { tasks.filter { $0.kind == .data } }
    /// Those of ``tasks`` that send a body.
    public var uploadTasks: [TransferTask] { tasks.filter { $0.kind == .upload } }
    /// Those of ``tasks`` whose response becomes a file.
    public var downloadTasks: [TransferTask] { tasks.filter { $0.kind == .download } }
    /// Those of ``tasks`` whose response is read in pieces.
    public var streamTasks: [TransferTask] { tasks.filter { $0.kind == .stream } }

    /// Ends the session: with its tasks, or after them. New tasks end with ``HTTPSessionError/Code/sessionInvalidated``.
    /// ``DidInvalidate`` is posted when the last task has ended.
    public func invalidate(cancelsTasks: Bool) { core.invalidate(cancelsTasks: cancelsTasks, post: postsEnd) }

    /// Ends the session as ``invalidate(cancelsTasks:)`` does, and returns when all of it has ended: its tasks, its connections, what it
    /// writes of cookies and Strict-Transport-Security, and its monitors have heard of that. The ``shared`` session goes on, and this
    /// returns at once.
    ///
    /// A session that is only dropped ends with its last task. Whoever drops the last of them waits until the connections are closed and
    /// the files are written: milliseconds, or as long as a slow disk takes. A thread that must not wait calls this before.
    public func close(cancelsTasks: Bool = true) async {
        await core.close(cancelsTasks: cancelsTasks, post: postsEnd)
    }
}
