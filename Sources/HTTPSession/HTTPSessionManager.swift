public import Dispatch
internal import EventLoop
public import FoundationEssentials
internal import HTTPTypes
internal import Pacing
public import Reachability

/// A session: its connections, cookies, limits and tasks.
///
/// ```swift
/// let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/")
/// let user = try await session.get("users/7").decode(as: User.self)
/// ```
///
/// A task starts when it is made, unless `startsImmediately` is `false`. It runs even if the program keeps no reference to the session or to the
/// task. A session has a thread of its own, which never runs user code: handlers, callbacks and monitors run elsewhere. A session ends when it is
/// canceled (``cancel(afterTasks:)``), or with its last task after its last reference is released.
public final class HTTPSessionManager: Sendable {
    /// The URL that paths are relative to (RFC 3986 section 5), as if its path ended in a slash; `nil` if all URLs are absolute.
    public let baseURL: URL?
    /// The configuration that the session was made with.
    public let configuration: SessionConfiguration
    /// The handlers of tasks that have none of their own; none when the session has ended (``cancel(afterTasks:)``), which releases them.
    public var handlers: TransferHandlers { core.handlers.current }
    /// The serializer that puts parameters into requests.
    public let requestSerializer: any RequestSerializer
    /// The validation of responses in ``TransferTask/data()`` and the other methods that return a value.
    public let validation: ResponseValidation
    /// The queue of callbacks.
    public let completionQueue: DispatchQueue
    /// The group that every callback enters, and leaves when it has run; `nil` for none.
    public let completionGroup: DispatchGroup?
    let core: SessionCore

    /// The shared session, with ``SessionConfiguration/default``. It is made at the first access and cannot be invalidated.
    ///
    /// - Throws: An error if the system refuses descriptors or a thread. The next access tries to make the session again.
    public static var shared: HTTPSessionManager {
        get throws(HTTPSessionError) {
            try sharedManager.withLock { (shared) throws(HTTPSessionError) in
                if let shared { return shared }
                let manager = try HTTPSessionManager()
                manager.core.makePermanent()
                shared = manager
                return manager
            }
        }
    }

    private static let sharedManager = Locked<HTTPSessionManager?>(nil)

    /// Creates a session and its thread.
    ///
    /// - Parameters:
    ///   - baseURL: The URL that paths are relative to; `nil` if all URLs are absolute.
    ///   - configuration: The behavior of the session.
    ///   - handlers: The handlers of tasks that have none of their own.
    ///   - requestSerializer: The serializer that puts parameters into requests.
    ///   - validation: The validation of responses; status 200 to 299 by default.
    ///   - completionQueue: The queue of callbacks. If it is `nil`, callbacks run one after another on a queue of the session. The main queue runs
    ///     only in programs that have a main loop (`dispatchMain()`, `RunLoop.main.run()`).
    ///   - completionGroup: The group that every callback enters, and leaves when it has run.
    ///   - credentials: The store of credentials. Several sessions may share it.
    ///   - monitor: The monitor of the network path. With one, tasks wait for a network: data tasks for 60 s
    ///     (``SessionConfiguration/connectivityTimeout``), downloads and uploads until their resource timeout. Without one, the session does not recognize cellular or expensive networks, and tasks do
    ///     not wait for a network. A lookup without a network then fails with ``HTTPSessionError/Code/cannotFindHost`` instead of
    ///     ``HTTPSessionError/Code/notConnected``. The outcomes of transfers are reported to the monitor: for its `ServerMonitor`s of the
    ///     same host and port, a response counts as a successful probe, and a failure to connect causes a probe at once.
    ///   - eventMonitors: The monitors that receive every event, in this order.
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration``, whose reason names the property, or an error if the system refuses descriptors or
    ///   a thread. A policy with a pinning mode requires an https base URL, as in AFNetworking: without TLS no certificate is verified
    ///   (``SecurityPolicy/PinningMode``).
    public convenience init(
        baseURL: String? = nil, configuration: SessionConfiguration = .default, handlers: TransferHandlers = TransferHandlers(),
        requestSerializer: any RequestSerializer = HTTPRequestSerializer(),
        validation: ResponseValidation = ResponseValidation(), completionQueue: DispatchQueue? = nil,
        completionGroup: DispatchGroup? = nil, credentials: CredentialStore = CredentialStore(), monitor: PathMonitor? = nil,
        eventMonitors: [any EventMonitor] = []
    ) throws(HTTPSessionError) {
        try self.init(
            baseURL: baseURL, configuration: configuration, handlers: handlers, requestSerializer: requestSerializer,
            validation: validation, completionQueue: completionQueue, completionGroup: completionGroup, credentials: credentials,
            monitor: monitor, eventMonitors: eventMonitors, carriedBy: configuration.transport ?? CurlTransport())
    }

    /// Creates a session and its thread, as the initializer with a string as the base URL does.
    ///
    /// ```swift
    /// let session = try HTTPSessionManager(baseURL: url)
    /// ```
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration``, whose reason names the property, or an error if the system refuses descriptors or
    ///   a thread.
    public convenience init(
        baseURL: URL, configuration: SessionConfiguration = .default, handlers: TransferHandlers = TransferHandlers(),
        requestSerializer: any RequestSerializer = HTTPRequestSerializer(),
        validation: ResponseValidation = ResponseValidation(), completionQueue: DispatchQueue? = nil,
        completionGroup: DispatchGroup? = nil, credentials: CredentialStore = CredentialStore(), monitor: PathMonitor? = nil,
        eventMonitors: [any EventMonitor] = []
    ) throws(HTTPSessionError) {
        try self.init(
            baseURL: baseURL.absoluteString, configuration: configuration, handlers: handlers,
            requestSerializer: requestSerializer, validation: validation, completionQueue: completionQueue,
            completionGroup: completionGroup, credentials: credentials, monitor: monitor, eventMonitors: eventMonitors)
    }

    /// A session on a transport of the caller's choice.
    package init(
        baseURL: String?, configuration: SessionConfiguration, handlers: TransferHandlers,
        requestSerializer: any RequestSerializer, validation: ResponseValidation, completionQueue: DispatchQueue?,
        completionGroup: DispatchGroup?, credentials: CredentialStore, monitor: PathMonitor?, eventMonitors: [any EventMonitor],
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
        self.requestSerializer = requestSerializer
        self.validation = validation
        self.completionGroup = completionGroup
        core = try SessionCore(
            settings: SessionSettings(configuration, credentials: credentials, path: monitor, transport: transport),
            handlers: handlers, eventMonitors: eventMonitors)
        self.completionQueue = completionQueue ?? core.outbox.queue
    }

    /// The largest number of connections: the number in the configuration, or less if the process may not open enough descriptors.
    package var connectionLimit: Int { core.settings.queueLimits.total }

    /// Returns the endpoint of a connection for a request to the URL; `nil` for a Unix domain socket and for a URL without a host.
    package func firstEndpoint(for url: URL) -> FirstEndpoint? {
        Origin(url).flatMap { core.settings.firstEndpoint(for: $0) }
    }
}
