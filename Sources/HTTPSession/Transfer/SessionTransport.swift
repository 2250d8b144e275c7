package import EventLoop
package import FoundationEssentials
package import Reachability

/// The transport of a session: its clock, and the engine that carries out its transfers.
///
/// There are two: libcurl on the kernel's sockets and clocks (`Curl/CurlTransport.swift`), and the scripted transport of HTTPSessionTestKit, which
/// has no socket and whose time a test sets. Everything above decides by ``now()`` alone.
package protocol SessionTransport: Sendable {
    /// Whether servers in trouble are probed over the network of the session's path monitor. If not, the path alone decides when tasks
    /// that wait for connectivity are released.
    var probesServers: Bool { get }
    /// The time in nanoseconds, on a clock that does not go backward. Called on any thread.
    func now() -> Int64
    /// The date at ``now()``: for metrics, and for fields with dates. Called on any thread.
    func date() -> Date
    /// Waits until so much of the transport's time has passed.
    ///
    /// - Throws: `CancellationError` if the Swift task is canceled.
    func sleep(for duration: Duration) async throws
    /// The engine of a session, made on the session's thread.
    ///
    /// - Parameters:
    ///   - network: the options that all transfers have in common.
    ///   - cookieLines: the cookies of a former session, in Netscape's format.
    ///   - path: the path monitor of the session; `nil`: it has none.
    /// - Returns: the engine, which belongs to the calling thread.
    /// - Throws: an error of the system or the library.
    func makeEngine(
        _ network: NetworkOptions, cookieLines: [CookieLine], path: PathMonitor?
    ) throws(HTTPSessionError) -> any TransferEngine
}

/// The engine of one session. Everything here belongs to the session's thread.
package protocol TransferEngine: AnyObject {
    /// Ends a wait from any thread.
    var waker: Waker { get }
    /// Every cookie of the session, a line each in Netscape's format.
    var cookieLines: [CookieLine] { get }
    /// Sets a cookie; `ALL` removes all of them, `SESS` those of the session (CURLOPT_COOKIELIST).
    func setCookie(_ line: CookieLine) throws(HTTPSessionError)

    /// Begins an attempt. Its receiver is called from ``advance()`` and ``wait(until:idleness:awake:)`` only.
    ///
    /// - Parameters:
    ///   - plan: the request, and how it is sent.
    ///   - receiver: takes the response and provides the body.
    ///   - trust: judges the server's certificate; `nil` where nothing is encrypted.
    ///   - now: the time of the session's turn.
    /// - Returns: the attempt.
    /// - Throws: ``HTTPSessionError/Code/invalidRequest`` for a request that cannot be sent, or an error of the library.
    func start(
        _ plan: TransferPlan, for receiver: any TransferReceiver, trust: ServerTrust?, now: Int64
    ) throws(HTTPSessionError) -> any Transfer
    /// Does what is due, and reports the transfers that have ended.
    func advance()
    /// Waits until something is ready, `deadline` has passed or the waker was woken. A deadline that is not after ``SessionTransport/now()``
    /// only looks.
    ///
    /// - Parameters:
    ///   - deadline: the earliest moment at which the session has something to do; it may be too early.
    ///   - idleness: the waits of the session. An engine that cannot change the time does not call it.
    ///   - awake: called when the wait has ended, before any receiver.
    func wait(until deadline: Int64?, idleness: () -> SessionIdleness, awake: () -> Void)
    /// A host speaks HTTP/2: its requests share a connection.
    func multiplexes()
    /// The network has changed: connections that are idle may be dead, and names may have other addresses.
    func networkChanged()
    /// Ends every transfer without a call to its receiver.
    ///
    /// - Returns: the objects of the transfers that may belong to the user.
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
    /// Whether Strict-Transport-Security (RFC 6797) has made https of http.
    var isUpgraded: Bool { get }
    /// Whether its connection may carry others beside it; `nil`: not known yet.
    var usesHTTP2: Bool? { get }
    /// The addresses of the connection in use; `nil`: there is no connection between two addresses.
    var ends: (local: String, remote: String)? { get }
    /// The addresses that it asks for a connection.
    var connectAttempts: [RouteTracker.ConnectAttempt] { get }
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
    /// Prevents, before ``cancel()``, that closing the connection sends anything: its route is lost.
    func silence()
}

/// The waits of a session that has nothing to do. They decide how far scripted time may pass.
package struct SessionIdleness: Sendable {
    /// Whether files are read or written for a task, which takes real time.
    package var usesFiles = false
    /// Whether a user's handler is asked, which takes as long as it likes.
    package var asksHandlers = false
    /// The earliest deadline of the tasks that wait for a server or for their time; `.max`: there is none. Tasks that wait for a user, a
    /// network or a file have no part in it.
    package var deadline = Int64.max
}
