internal import FoundationEssentials

/// One request and its response, as far as they have come.
struct Attempt {
    /// How far it has come.
    enum Phase: Hashable, Sendable {
        /// Nothing is with the engine yet.
        case preparing
        /// The interceptors have the request.
        case adapting
        /// The engine has it, and the host's name is being looked up.
        case lookingUp
        /// The look-up is over, well or badly.
        case connecting
        /// The connection stands: the request may have been sent.
        case connected
        /// The response is whole, and a digest is compared.
        case verifying
    }

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
        /// What the task's interceptors say of the response.
        case interception
        /// What the upload's machine says.
        case upload
    }

    /// The longest body of a redirect or a challenge, in bytes.
    static let maximumHeld = 256 << 10
    /// How much of an unacceptable response goes with the error, in bytes.
    static let maximumExplanation = 64 << 10

    var phase = Phase.preparing
    /// The request as interceptors have made it.
    var adapted: TransferRequest?
    /// When the engine got it, and over which network.
    private(set) var fetchStart = Date.distantPast
    private(set) var network: TransactionMetrics.Network?
    /// What the request has said before anybody asked.
    private(set) var unaskedCredential: Credential?
    /// Whether whoever judges knows that the server is spoken to by https.
    private(set) var expectsSecure = false
    var head: ResponseHead?
    /// When the head came.
    var headDate = Date.distantPast
    var body = Body.undecided
    var next: Next?
    var destination: BodyDestination?
    /// Whether the transfer has ended while a handler was thinking.
    var isComplete = false
    var isRefused = false
    /// Why the body of a redirect or a challenge did not come whole, which matters only to whoever wants it.
    var failure: HTTPSessionError?
    /// A failure that the gate is asked about.
    var unexplained: (error: HTTPSessionError, failure: RetryMachine.Failure)?
    /// What follows for an upload, and why its request is to be broken off.
    var verdict: UploadMachine.Verdict?
    var stop: UploadMachine.Stop?
    /// The digest that the server says the upload has, now that it is complete.
    var uploadDigest: ContentDigest?
    /// How far into the body it had come when libcurl began it again.
    var sentBeforeRewind: Int64 = 0
    /// It asks for what lies behind the bytes that are here, by this; see ``Resumption``.
    var restBasis: Resumption.Basis?
    /// The version of the file at the destination, if the request asks only for another one.
    var condition: FileValidator?
    /// How much of the body was here when it began.
    var receivedBefore: Int64 = 0
    /// Whether its body goes behind those bytes. One that takes their place is no progress until it has been continued itself: a server
    /// that knows no ranges would be asked for ever.
    private(set) var isRest = false
    /// The head of the response that the bytes here began with, where this one brings only their rest, or nothing more.
    private(set) var wholeHead: ResponseHead?

    /// Whether the engine has got it.
    var hasBegun: Bool {
        switch phase {
        case .preparing, .adapting: false
        case .lookingUp, .connecting, .connected, .verifying: true
        }
    }
    /// Whether the request may have been sent.
    var isConnected: Bool { phase == .connected || phase == .verifying }
    /// The requests that belong to this attempt alone: as interceptors have made it, and the one that a redirect proposes.
    var requests: [TransferRequest] {
        var requests = adapted.map { [$0] } ?? []
        if case .redirect(let proposed) = next { requests.append(proposed) }
        return requests
    }
    var asksForRest: Bool { restBasis != nil }
    var heldBody: Data {
        if case .held(let data) = body { return data.prefix(Attempt.maximumExplanation) }
        return Data()
    }

    /// Its response is about the bytes that are here already. `isRest`: and brings more of them.
    mutating func continues(_ beginning: TransferMachine.Beginning?, isRest: Bool) {
        self.isRest = isRest
        wholeHead = beginning?.head
        destination = beginning?.destination
    }

    /// The engine gets it.
    mutating func begin(
        at date: Date, over network: TransactionMetrics.Network?, saying credential: Credential?, expectsSecure: Bool
    ) {
        self.network = network
        fetchStart = date
        unaskedCredential = credential
        self.expectsSecure = expectsSecure
        phase = .lookingUp
    }

    /// The look-up of the name is over.
    mutating func nameIsKnown() {
        if phase == .lookingUp { phase = .connecting }
    }
}
