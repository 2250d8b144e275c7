internal import Foundation

/// One request and its response, as far as they have come.
struct Exchange {
    /// What is done with the body of the response.
    enum Body {
        /// Not decided yet: it is paused.
        case undecided
        /// To the sink.
        case kept
        /// The body of a redirect or a challenge: it is read for the sake of the connection, and in case the response turns out to be
        /// the answer.
        case held(Data)
        /// The body of a response that is not accepted, kept for the error.
        case explained(Data)
    }

    /// What follows after this response.
    enum Next {
        case redirect(TransferRequest)
        case challenges([AuthenticationChallenge])
        /// The same request, after so many nanoseconds.
        case retry(delay: Int64)
        /// The same request, for the whole instead of the rest.
        case startOver
        /// The task's own request: it leads to where the rest is.
        case returnToStart
        /// Nothing: what is here already is all.
        case complete
    }

    /// The longest body of a redirect or a challenge, in bytes.
    static let maximumHeld = 256 << 10
    /// How much of an unacceptable response goes with the error, in bytes.
    static let maximumExplanation = 64 << 10

    private(set) var hasBegun = false
    /// Whether the body may be longer than what comes.
    private(set) var decompresses = false
    private(set) var fetchStart = Date.distantPast
    var trust: ServerTrust?
    var head: ResponseHead?
    var body = Body.undecided
    var next: Next?
    var destination: TransferJob.Destination?
    /// When the connection stood.
    var connectedAt: Int64?
    /// Whether the name's look-up is known to be over, well or badly.
    var hasLookedUp = false
    /// Whether the transfer has ended while a handler was thinking.
    var isComplete = false
    var isRefused = false
    /// Why the body of a redirect or a challenge did not come whole, which matters only to whoever wants it.
    var failure: HTTPSessionError?
    /// Whether it asks for what lies behind the bytes that are here; see ``Resumption``.
    var asksForRest = false
    /// How much of the body was here when it began.
    var receivedBefore: Int64 = 0

    var isConnected: Bool { connectedAt != nil }
    var heldBody: Data {
        if case .held(let data) = body { return data.prefix(Exchange.maximumExplanation) }
        return Data()
    }

    mutating func begin(_ plan: TransferPlan, at date: Date) {
        hasBegun = true
        decompresses = plan.decompresses
        fetchStart = date
    }
}
