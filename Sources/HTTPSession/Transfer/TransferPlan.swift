/// One attempt at one transaction, as an engine needs it: decided before, carried out without another question.
package struct TransferPlan: Sendable {
    /// How the body is framed.
    package enum BodyFraming: Hashable, Sendable {
        case none
        case length(Int64)
        /// Chunked over HTTP/1.1, the stream's end over HTTP/2.
        case untilEnd
    }

    /// Who to say we are, and by which schemes the engine may.
    package struct Login: Hashable, Sendable {
        package var user: String
        package var password: String
        package var schemes: AuthenticationScheme.Set

        package init(user: String, password: String, schemes: AuthenticationScheme.Set) {
            self.user = user
            self.password = password
            self.schemes = schemes
        }
    }

    /// Absolute, without user, password and fragment.
    package var url: String
    package var method: String
    /// `Name: value`, as they go out.
    package var headerLines: [String] = []
    package var body = BodyFraming.none
    package var login: Login?
    package var proxyLogin: Login?
    package var connectTimeoutMilliseconds: Int64 = 60_000
    /// Uses no connection that has been used before, and no name that has been looked up before.
    package var needsFreshConnection = false
    /// Uses no connection that has been idle for longer, in seconds; 0: none that has been used before; `nil`: as the engine likes.
    package var maximumIdleSeconds: Int?
    package var handlesCookies = true
    /// Ask for compressed content and decompress it.
    package var decompresses = true
    /// HTTP/1.1 even where the server offers HTTP/2.
    package var avoidsHTTP2 = false
    /// Room for received bytes, in bytes: larger where they go to a file.
    package var bufferSize = 64 << 10

    /// Whether the way to the server is TLS.
    package var isSecure: Bool { url.prefix(6).lowercased() == "https:" }

    package init(url: String, method: String) {
        self.url = url
        self.method = method
    }
}

/// What became of received bytes.
package enum Intake: Sendable {
    case taken
    /// Nothing was taken; the same bytes come again after the transfer has been resumed.
    case pause
    case abort(HTTPSessionError)
}

/// What there is to send.
package enum Provision: Sendable {
    case bytes(Int)
    case end
    /// Nothing yet: the transfer is resumed when there is.
    case pause
    case abort(HTTPSessionError)
}

/// Whoever runs a transfer: told by the engine on the loop's thread, and never from inside a call that it made itself.
package protocol TransferReceiver: AnyObject {
    /// The connection stands and the request is about to be sent.
    func transferConnected()
    /// A final response's head (RFC 9110 section 15): status 200 and above, and of an authentication only the last.
    func transferReceived(head: ResponseHead) -> Intake
    /// An interim response's head (1xx).
    func transferReceived(interim: ResponseHead)
    func transferReceived(bytes: UnsafeRawBufferPointer) -> Intake
    func transferProvides(into buffer: UnsafeMutableRawBufferPointer) -> Provision
    /// The body is wanted again from its beginning.
    func transferRewinds() -> Bool
    func transferFinished(_ outcome: Result<TransferFacts, HTTPSessionError>, facts: TransferFacts)
}
