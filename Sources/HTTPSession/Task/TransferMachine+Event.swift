internal import FoundationEssentials
internal import Reachability

extension TransferMachine {
    /// What happens to a task. What is answered at once, or comes with every request, has functions of its own:
    /// heads, bytes, the end of a transfer, the end of a sink.
    enum Event: Sendable {
        // MARK: The owner
        case resume
        case suspend
        case cancel

        // MARK: The queue
        case admitted
        /// The look-up that the task waits for had no answer for as long as another's request waited for one.
        case nameIsDoubtful

        // MARK: The attempt
        indirect case partOpened(Result<FileSink.Remains, HTTPSessionError>)
        /// `hasBegun`: it is not what is asked for, but the way there, that is refused.
        indirect case cannotStart(HTTPSessionError, hasBegun: Bool)
        case nameStaysUnanswered
        /// Other tasks wait for what is missing on the way to the same server, and so does this one.
        indirect case joined(Cause)
        case lookedUp
        case connected
        indirect case interim(ResponseHead)
        case receiverReady
        /// The bytes have gone where they belong, or why not.
        indirect case fed(HTTPSessionError?)
        case breakOff

        // MARK: The user's handlers
        indirect case answered(question: Int, HandlerAnswer)

        // MARK: Files
        indirect case verified(Result<Bool, HTTPSessionError>)
        case uploadVerified(Bool)

        // MARK: The network
        indirect case explained(GateAnswer)
        /// The server's probe says that the network is gone.
        indirect case networkIsGone(Cause)
        /// The server's probe gets through, or meets the server itself.
        case networkIsBack(delay: Int64)
        /// The path is another one.
        case networkChanged
        case networkIsAllowed
        /// What can be done again is, over another way; the rest is left to TCP.
        case connectionIsDoubtful(String)
        /// The connection carries nothing any more. `cause`: what this machine misses.
        indirect case connectionIsGone(String, cause: Cause?)

        // MARK: Time
        case retryIsPaid
        case retryHasToWait(Int64)
        /// The ``TransferMachine/deadline`` has come.
        case time
    }

    /// What the gate says of a failure.
    enum GateAnswer: Sendable {
        /// There is no gate, or it knows nothing of such servers.
        case notAsked
        /// It does not know a reason yet.
        case unknown
        /// That is missing, and may come.
        case missing(Cause)
    }
}

/// Why a transfer has ended without a whole response. A class, because most end well: what is not there takes a word.
final class TransferFailure: Sendable {
    let error: HTTPSessionError
    /// The certificates that a handler is asked about.
    let challenge: ServerTrustChallenge?
    /// The authorities of a server that wants a certificate, and nobody has said which.
    let authorities: [String]?
    /// The handshake ended with a word.
    let wasRefused: Bool
    /// Where this machine has no path, and no route to what was tried: what it misses.
    let lack: Lack?

    /// What is missing, where that is known.
    struct Lack: Sendable {
        var cause: Cause?
    }

    init(
        _ error: HTTPSessionError, challenge: ServerTrustChallenge? = nil, authorities: [String]? = nil, wasRefused: Bool = false,
        lack: Lack? = nil
    ) {
        self.error = error
        self.challenge = challenge
        self.authorities = authorities
        self.wasRefused = wasRefused
        self.lack = lack
    }
}
