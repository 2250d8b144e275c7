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
    public init(
        baseURL: String? = nil, configuration: SessionConfiguration = .default, handlers: TransferHandlers = TransferHandlers(),
        requestSerializer: any RequestSerializer = HTTPRequestSerializer(),
        validation: ResponseValidation = ResponseValidation(), completionQueue: DispatchQueue? = nil,
        completionGroup: DispatchGroup? = nil, credentials: CredentialStore = CredentialStore(), reachability: PathMonitor? = nil,
        monitors: [any EventMonitor] = []
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
            settings: SessionSettings(configuration, credentials: credentials, path: reachability),
            monitors: monitors)
        self.completionQueue = completionQueue ?? core.outbox.queue
    }

    /// The connections that the session has at a time: those of its configuration, or as many as the process has descriptors for.
    package var connectionLimit: Int { core.settings.queueLimits.total }
}
