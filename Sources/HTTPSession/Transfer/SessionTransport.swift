package import EventLoop
package import FoundationEssentials
package import Reachability

/// The transport of a session: its clock, and the engine that carries out its transfers.
///
/// There are two: libcurl on the kernel's sockets and clocks (`Curl/CurlTransport.swift`), and the scripted transport of HTTPSessionTestKit, which
/// has no socket and whose time a test sets. Everything above decides by ``now()`` alone.
package protocol SessionTransport: Sendable {
    /// Whether servers in trouble are probed over the network of the session's path monitor. If not, the path alone decides when tasks
    /// that wait for connectivity proceed.
    var probesServers: Bool { get }
    /// Whether the engine verifies the certificates of servers. If not, a session loads no certificate authorities.
    var verifiesCertificates: Bool { get }
    /// The time for which a session collects deferred items (``HandoverDelay``), in nanoseconds; 0 if the time does not pass by itself.
    var handoverDelay: Int64 { get }
    /// The seed of a new session's random numbers, which spread retries.
    var seed: UInt64 { get }
    /// The time in nanoseconds, on a clock that does not go backward. Called on any thread.
    func now() -> Int64
    /// The date at ``now()``: for metrics, and for fields with dates. Called on any thread.
    func date() -> Date
    /// Waits until `duration` has passed on the transport's clock.
    ///
    /// - Throws: `CancellationError` if the Swift task is canceled.
    func sleep(for duration: Duration) async throws
    /// The engine of a session, made on the session's thread.
    ///
    /// - Parameters:
    ///   - network: The options that all transfers have in common.
    ///   - path: The path monitor of the session; `nil` if it has none.
    /// - Returns: The engine, which belongs to the calling thread.
    /// - Throws: An error of the system or the library.
    func makeEngine(
        _ network: EngineConfiguration, path: PathMonitor?
    ) throws(HTTPSessionError) -> any TransferEngine
}

/// The engine of one session. Everything here belongs to the session's thread.
package protocol TransferEngine: AnyObject {
    /// Ends a wait from any thread.
    var waker: Waker { get }

    /// Begins an attempt. Its receiver is called by ``advance()`` and ``wait(until:idleness:hasCommands:awake:)`` only.
    ///
    /// - Parameters:
    ///   - plan: The request and its options.
    ///   - receiver: The receiver of the response, which also provides the request's body.
    ///   - trust: The evaluation of the server's certificate; `nil` without encryption.
    ///   - now: The time of the session's turn.
    /// - Returns: The attempt.
    /// - Throws: ``HTTPSessionError/Code/invalidRequest`` for a request that cannot be sent, or an error of the library.
    func start(
        _ plan: TransferPlan, for receiver: any TransferReceiver, trust: ServerTrust?, now: Int64
    ) throws(HTTPSessionError) -> any Transfer
    /// Performs what is due, and reports the transfers that have ended.
    func advance()
    /// Waits until something is ready, `deadline` has passed or the waker was woken. A deadline that is not after ``SessionTransport/now()``
    /// only looks.
    ///
    /// - Parameters:
    ///   - deadline: The earliest moment at which the session has something to do; it may be too early.
    ///   - idleness: The waits of the session. An engine that cannot change the time does not call it.
    ///   - hasCommands: Whether commands of other threads wait for the session, such as a published path. An engine that changes the time asks it
    ///     under the lock of its clock, so that the time does not pass before the session has handled what other threads have sent.
    ///   - awake: Called when the wait has ended, before any receiver.
    func wait(until deadline: Int64?, idleness: () -> SessionIdleness, hasCommands: () -> Bool, awake: () -> Void)
    /// Prepares for requests that share a connection, after a host has used HTTP/2.
    func allowMultiplexing()
    /// Allows connections beyond the limit of a host: those of suspended transfers that have yielded their places.
    func allowConnections(beyondLimit count: Int)
    /// The network has changed: connections that are idle may be dead, and names may have other addresses.
    func networkChanged()
    /// Ends every transfer without a call to its receiver.
    ///
    /// - Returns: The objects of the transfers that may belong to the user.
    func close() -> [any Sendable]
}

/// One attempt at one transaction. No method may be called from inside a call to its receiver.
package protocol Transfer: AnyObject {
    /// The time at which it began.
    var started: Int64 { get }
    /// The measurements so far.
    var facts: TransferFacts { get }
    /// Bytes of the response's body so far, before decompression.
    var receivedBodyBytes: Int64 { get }
    /// Whether Strict-Transport-Security (RFC 6797) has upgraded the request from http to https.
    var isUpgraded: Bool { get }
    /// Whether other transfers may share the connection; `nil` if that is not known yet.
    var usesHTTP2: Bool? { get }
    /// The addresses of the connection in use; `nil` if no connection between two addresses exists.
    var ends: (local: String, remote: String)? { get }
    /// The addresses that it connects to.
    var connectAttempts: [RouteTracker.ConnectAttempt] { get }
    /// Whether the remote end of the connection has acknowledged everything that was sent (tcp(7), tcpi_unacked).
    var isAcknowledged: Bool { get }
    /// Whether it waits for an event outside of the session and its server, which does not depend on time.
    var waitsForOthers: Bool { get }

    /// Stops both directions, or lets them continue.
    func hold(_ isHeld: Bool)
    /// The receiver has room again.
    func resumeReceiving()
    /// The receiver has something to send again.
    func resumeSending()
    /// Ends it without a call to its receiver.
    func cancel()
    /// Ends it with an error, which its receiver gets at once.
    func end(with error: HTTPSessionError)
    /// Prevents that ``cancel()`` sends anything on the connection, because its route is lost.
    func silence()
}

/// The waits of a session that has nothing to do. They decide how far scripted time may pass.
package struct SessionIdleness: Sendable {
    /// Whether files are read or written for a task, which takes real time.
    package var usesFiles = false
    /// Whether a user's handler runs, which may take any time.
    package var asksHandlers = false
    /// The earliest deadline of the tasks that wait for a server or a time; `.max` if there is none. Tasks that wait for a user, a network or a file
    /// are not considered.
    package var deadline = Int64.max
}

extension SessionConfiguration {
    /// The transport of sessions with this configuration; `nil` for libcurl.
    package var transport: (any SessionTransport)? {
        get { storedTransport as? any SessionTransport }
        set { storedTransport = newValue }
    }
}
