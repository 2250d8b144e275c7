internal import FoundationEssentials
internal import Reachability

extension TaskMachine {
    /// An event of a task. Some events have methods of their own, because they are frequent or the caller needs their effects at
    /// once. These are heads, bytes, the end of a transfer and the end of a sink.
    enum Event: Sendable {
        // MARK: The owner
        case resume
        case suspend
        case cancel

        // MARK: The queue
        case admitted
        /// Another task's request timed out during the name lookup that this task waits for.
        case sharedLookupStalled

        // MARK: The attempt
        indirect case partialFileOpened(Result<FileSink.Remains, HTTPSessionError>)
        /// The engine refused the attempt. `hasBegun`: the attempt had started, and its route (not the request) was refused.
        indirect case startFailed(HTTPSessionError, hasBegun: Bool)
        case sharedLookupFailed
        /// Other tasks wait for the same missing link or route to the same server; this task waits with them.
        indirect case joinedOutage(Cause)
        case nameResolved
        case connected
        indirect case receivedInterim(ResponseHead)
        case receiverReady
        /// The sink has taken the buffered body, or failed with the error.
        indirect case bufferedBodyDelivered(HTTPSessionError?)
        case requestStopDue

        // MARK: The user's handlers
        indirect case handlerAnswered(question: Int, HandlerAnswer)

        // MARK: Files
        indirect case digestVerified(Result<Bool, HTTPSessionError>)
        case uploadDigestVerified(Bool)

        // MARK: The network
        indirect case failureExplained(FailureExplanation)
        /// The server's probe reports that the network is missing.
        indirect case networkLost(Cause)
        /// The server's probe reaches the server, or at least its network. `delay`: nanoseconds before the next attempt.
        case networkRestored(delay: Int64)
        /// The path has changed.
        case networkChanged
        case networkAllowed
        /// A repeatable request is made again over another route; any other connection is left to TCP.
        case connectionSuspect(String)
        /// The connection carries no more data. `cause`: what this machine lacks.
        indirect case connectionDead(String, cause: Cause?)

        // MARK: Time
        case retryGranted
        case retryPostponed(Int64)
        /// The ``TaskMachine/deadline`` has passed.
        case deadlineReached
    }

    /// The outage tracker's explanation of a failure.
    enum FailureExplanation: Sendable {
        /// The session has no outage tracker, or the tracker does not watch such servers.
        case unavailable
        /// The cause is not known yet.
        case unknown
        /// A link or route is missing, and may return.
        case missing(Cause)
    }
}

/// The reason why a transfer has no complete response. It is a class because most transfers succeed: its absence takes one word.
final class TransferFailure: Sendable {
    let error: HTTPSessionError
    /// The certificates about which a handler is asked.
    let challenge: ServerTrustChallenge?
    /// The acceptable authorities of a server that requests a client certificate, if none is chosen yet.
    let authorities: [String]?
    /// Whether the TLS handshake ended with an alert of either side, and not because the connection was lost.
    let isHandshakeRefusal: Bool
    /// The missing path, if this machine has no path and no route to the addresses of the attempt.
    let missingPath: MissingPath?

    /// The cause of a missing path, if it is known.
    struct MissingPath: Sendable {
        var cause: Cause?
    }

    init(
        _ error: HTTPSessionError, challenge: ServerTrustChallenge? = nil, authorities: [String]? = nil,
        isHandshakeRefusal: Bool = false,
        missingPath: MissingPath? = nil
    ) {
        self.error = error
        self.challenge = challenge
        self.authorities = authorities
        self.isHandshakeRefusal = isHandshakeRefusal
        self.missingPath = missingPath
    }
}
