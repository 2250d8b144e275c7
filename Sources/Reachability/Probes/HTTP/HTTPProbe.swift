/// The HTTP level of one probe: requests, responses and redirects as a value without sockets and without a clock.
///
/// The owner connects to the endpoint of ``request``, sends ``HTTPProbeRequest/bytes()``, passes what it receives, and asks for
/// ``next`` after each piece. When the probe is finished, or its deadline has passed, ``facts`` has what a verdict needs.
package struct HTTPProbe: Sendable {
    /// The next action of the owner.
    package enum Step: Hashable, Sendable {
        /// More bytes are needed, or the end of the connection.
        case receive
        /// The owner closes the connection, and sends this request, which is the current one now, on another connection.
        case follow(HTTPProbeRequest)
        /// The probe is finished.
        case finished
    }

    package let expectation: HTTPExpectation
    package let isCanary: Bool
    /// Whether a request is sent only to an https server whose certificate is valid.
    private let verifiesCertificates: Bool
    /// The current request.
    package private(set) var request: HTTPProbeRequest
    /// The current exchange.
    package private(set) var exchange: HTTPExchange
    package private(set) var redirects: Redirects
    private var redirectFailure: RedirectFailure?
    // Whether the current response is known to be the last one.
    private var isLast = false

    /// Creates a probe.
    ///
    /// - Parameters:
    ///   - request: the first request.
    ///   - expectation: the response that is expected.
    ///   - isFollowing: whether redirects are followed.
    ///   - redirects: the redirects that led to the request; `nil` for the target's own request.
    ///   - isCanary: whether the URL is the canary, whose response is known.
    ///   - verifiesCertificates: whether the owner sends requests only to https servers whose certificates are valid.
    package init(
        _ request: HTTPProbeRequest, expecting expectation: HTTPExpectation = HTTPExpectation(), isFollowing: Bool = true,
        after redirects: Redirects? = nil, isCanary: Bool = false, verifiesCertificates: Bool = true
    ) {
        self.request = request
        self.expectation = expectation
        self.isCanary = isCanary
        self.verifiesCertificates = verifiesCertificates
        exchange = HTTPExchange(method: request.method, keepsBody: expectation.needsBody)
        self.redirects = redirects ?? Redirects(of: request, isFollowing: isFollowing)
    }

    /// Takes bytes of the current connection.
    package mutating func receive(_ bytes: UnsafeRawBufferPointer) { exchange.receive(bytes) }

    /// Takes bytes of the current connection.
    package mutating func receive(_ bytes: [UInt8]) { exchange.receive(bytes) }

    /// Takes the end of the current connection.
    package mutating func endOfInput() { exchange.endOfInput() }

    /// Returns the next action. The body of a redirect is not awaited: its head decides.
    package mutating func next() -> Step {
        guard redirectFailure == nil else { return .finished }
        if !isLast, let head = exchange.head, exchange.progress == .receivingBody || exchange.progress == .complete {
            switch redirects.next(after: head, to: request, isVerified: isVerified, expecting: expectation) {
            case .final: isLast = true
            case .follow(let next):
                request = next
                exchange = HTTPExchange(method: next.method, keepsBody: expectation.needsBody)
                return .follow(next)
            case .failed(let failure):
                redirectFailure = failure
                return .finished
            }
        }
        return exchange.isEnded ? .finished : .receive
    }

    /// Whether the certificate of the current request's server is verified.
    private var isVerified: Bool { verifiesCertificates && request.url.scheme == .https }

    private var isRedirectAuthentic: Bool { redirects.isRedirectAuthentic == true }

    /// The facts so far.
    package var facts: HTTPProbeFacts {
        HTTPProbeFacts(
            response: exchange.facts, redirects: redirects.locations, redirectFailure: redirectFailure,
            otherHost: redirects.otherHost, isDowngraded: redirects.isDowngraded, isDeclared: expectation.isDeclared,
            isCanary: isCanary, isAuthentic: isVerified && (redirects.otherHost == nil || isRedirectAuthentic) ? true : nil,
            isRedirectAuthentic: isRedirectAuthentic ? true : nil,
            mismatch: redirectFailure == nil ? expectation.mismatch(of: exchange) : nil)
    }
}
