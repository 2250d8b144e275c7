internal import FoundationEssentials

/// The state of one request and its response.
struct Attempt {
    /// The progress of an attempt.
    enum Phase: Hashable, Sendable {
        /// The engine has not received the request.
        case preparing
        /// The interceptors have the request.
        case adapting
        /// The engine has the request, and the host's name is being resolved.
        case lookingUp
        /// The lookup has ended, with an address or without.
        case connecting
        /// The connection is established: the request may have been sent.
        case connected
        /// The response is complete, and a digest is compared.
        case verifying
    }

    /// The treatment of the response's body.
    enum Body {
        /// The treatment is not decided yet; the transfer is paused.
        case undecided
        /// The body goes to the sink.
        case streamed
        /// The body of a redirect or challenge is buffered: reading it frees the connection, and the response may turn out to be
        /// the result.
        case buffered(Data)
        /// The body of an unacceptable response is buffered for the error.
        case errorBody(Data)
    }

    /// How the task proceeds after this response.
    enum Next {
        case redirect(TransferRequest)
        case challenges([AuthenticationChallenge])
        /// The request is repeated after `delay` nanoseconds.
        case retry(delay: Int64)
        /// The request is repeated for the complete representation instead of the remaining range.
        case restart
        /// The first request follows, which redirects to the remaining range.
        case returnToStart
        /// No request follows: the bytes present are complete.
        case complete
        /// The task's interceptors decide about the response.
        case interception
        /// The upload's machine decides.
        case upload
    }

    /// The longest body of a redirect or challenge, in bytes.
    static let maximumBufferedLength = 256 << 10
    /// The most bytes of an unacceptable response's body that its error contains.
    static let maximumErrorBodyLength = 64 << 10

    var phase = Phase.preparing
    /// The request as the interceptors changed it.
    var adaptedRequest: TransferRequest?
    /// The time at which the engine received the request, and the network at that time.
    private(set) var fetchStart = Date.distantPast
    private(set) var network: TransactionMetrics.Network?
    /// The credential that the request carried without a challenge.
    @BoxedOptional private(set) var preemptiveCredential: Credential?
    /// Whether the certificate evaluation expects https. `false` if libcurl may upgrade the request by HSTS.
    private(set) var expectsHTTPS = false
    /// Whether the request has the expectation 100-continue.
    var expectsContinue = false
    var head: ResponseHead?
    /// The time at which the head arrived.
    var headDate = Date.distantPast
    var body = Body.undecided
    var next: Next?
    var destination: BodyDestination?
    /// Whether the transfer has ended while a handler was asked.
    var hasTransferEnded = false
    var isBodyRejected = false
    /// The error that cut off the body of a redirect or challenge. It matters only if that response becomes the result.
    var failure: HTTPSessionError?
    /// A failure that an outage may explain.
    @BoxedOptional var pendingFailure: (error: HTTPSessionError, failure: RetryMachine.Failure)?
    /// How an upload proceeds, and why its request is to be stopped.
    @BoxedOptional var uploadVerdict: UploadMachine.Verdict?
    @BoxedOptional var uploadStop: UploadMachine.EarlyStop?
    /// The digest of the complete upload, as the server states it.
    @BoxedOptional var uploadDigest: ContentDigest?
    /// The bytes of the body that were sent before libcurl rewound it.
    var sentBeforeRewind: Int64 = 0
    /// The basis on which the request asks for the remaining range; see ``Resumption``.
    @BoxedOptional var rangeBasis: Resumption.Basis?
    /// The version of the file at the destination, if the request asks only for another version.
    @BoxedOptional var condition: FileValidator?
    /// The bytes of the body that were present when the attempt began.
    var receivedBefore: Int64 = 0
    /// Whether the response's body is partial content behind the present bytes. A complete body counts as progress only after it
    /// has been continued: a server without range support would be asked without end.
    private(set) var isPartialContent = false
    /// The head of the response that brought the first bytes, if this response brings only the remaining range, or nothing.
    @BoxedOptional private(set) var firstResponseHead: ResponseHead?

    /// Whether the engine has received the request.
    var hasBegun: Bool {
        switch phase {
        case .preparing, .adapting: false
        case .lookingUp, .connecting, .connected, .verifying: true
        }
    }
    /// Whether the request may have been sent.
    var isConnected: Bool { phase == .connected || phase == .verifying }
    /// The requests of this attempt alone: the adapted one, and the one that a redirect proposes.
    var requests: [TransferRequest] {
        var requests = adaptedRequest.map { [$0] } ?? []
        if case .redirect(let proposed) = next { requests.append(proposed) }
        return requests
    }
    var requestsRemainingRange: Bool { rangeBasis != nil }
    var bufferedBody: Data {
        if case .buffered(let data) = body { return data.prefix(Attempt.maximumErrorBodyLength) }
        return Data()
    }

    /// Records that the response concerns the bytes already present. `isPartialContent`: it brings more of them.
    mutating func continueDownload(from firstResponse: TaskMachine.FirstResponse?, isPartialContent: Bool) {
        self.isPartialContent = isPartialContent
        firstResponseHead = firstResponse?.head
        destination = firstResponse?.destination
    }

    /// Records that the engine receives the request.
    mutating func begin(
        at date: Date, over network: TransactionMetrics.Network?, with credential: Credential?, expectsHTTPS: Bool
    ) {
        self.network = network
        fetchStart = date
        preemptiveCredential = credential
        self.expectsHTTPS = expectsHTTPS
        phase = .lookingUp
    }

    /// Records that the lookup of the name has ended.
    mutating func lookupEnded() {
        if phase == .lookingUp { phase = .connecting }
    }
}
