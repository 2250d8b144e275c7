/// One attempt at one transaction, as an engine needs it: decided before, carried out without another question.
package struct TransferPlan: Hashable, Sendable {
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
    package private(set) var url: String
    /// Whether the way to the server is TLS.
    package let isSecure: Bool
    package var method: String
    /// `Name: value`, as they go out.
    package var headerLines: [String] = []
    package var body = BodyFraming.none
    package var login: Login?
    package var proxyLogin: Login?
    /// The URL's user and password, if the request carries them before a server asks.
    package var preemptiveCredential: Credential?
    /// The server may take the connection itself for the user's (Negotiate, RFC 4559 section 6): no other request may be on it, before,
    /// beside or after this one.
    package var isolatesConnection = false
    package var connectTimeoutMilliseconds: Int64 = 60_000
    /// Uses no connection that has been used before, and no name that has been looked up before.
    package var needsFreshConnection = false
    /// Uses no connection that has been idle for longer, in seconds; 0: none that has been used before; `nil`: as the engine likes.
    package var maximumIdleSeconds: Int?
    /// Uses no name that was looked up longer ago, in seconds; `nil`: as the engine likes (CURLOPT_DNS_CACHE_TIMEOUT, 60).
    package var maximumLookupSeconds: Int?
    /// The receiver is asked before a connection is made or used: ``TransferReceiver/transferMayGo(from:)``.
    package var asksBeforeConnecting = false
    /// The way to the server is judged by the addresses that are tried, and a connection that was used before by where it goes:
    /// ``TransferReceiver/transferMayReuse(from:to:)``.
    package var watchesWay = false
    /// Whether anything is to be known of an address before there is a socket for it.
    package var looksAtAddresses: Bool { asksBeforeConnecting || watchesWay }
    /// Whether a proxy stands before the origin, as far as the session knows what libcurl will choose.
    package var usesProxy = false
    package var handlesCookies = true
    /// Ask for compressed content and decompress it.
    package var decompresses = true
    /// HTTP/1.1 even where the server offers HTTP/2.
    package var avoidsHTTP2 = false
    /// Room for received bytes, in bytes: larger where they go to a file. libcurl takes it anew for each attempt, and from 64 KiB on glibc tidies
    /// its heap whenever such a piece comes back (malloc.c: FASTBIN_CONSOLIDATION_THRESHOLD).
    package var bufferSize = 60 << 10

    /// Bytes a second that the body may be sent at; `nil`: as the session says.
    package var maximumSendRate: Int64?
    /// At most so many bytes of the body at once.
    package var packetSize = Int.max

    /// Whether there is a `Host` field of the caller's own.
    package var namesHost: Bool {
        headerLines.contains { ($0.utf8.first == 0x48 || $0.utf8.first == 0x68) && $0.prefix(5).lowercased() == "host:" }
    }

    package init(url: String, method: String) {
        self.url = url
        // It is one of http or of https.
        isSecure = url.utf8.dropFirst(4).first.map { $0 | 0x20 } == UInt8(ascii: "s")
        self.method = method
    }

    /// Without what is an attempt's own, and may be secret.
    package var withoutItsOwn: TransferPlan {
        var rest = self
        (rest.url, rest.headerLines, rest.preemptiveCredential) = ("", [], nil)
        return rest
    }

    /// Whether a handle that is set up for this attempt is so for the other, but for what every attempt says anew: address and fields, how old
    /// a connection or a look-up may be, where that matters at all; and but for logins and bodies, which no handle is kept for.
    package func isSetUpLike(_ other: TransferPlan) -> Bool {
        isSecure == other.isSecure && method == other.method && isolatesConnection == other.isolatesConnection
            && connectTimeoutMilliseconds == other.connectTimeoutMilliseconds
            && needsFreshConnection == other.needsFreshConnection
            && (maximumIdleSeconds == nil) == (other.maximumIdleSeconds == nil)
            && (maximumLookupSeconds == nil) == (other.maximumLookupSeconds == nil)
            && asksBeforeConnecting == other.asksBeforeConnecting && watchesWay == other.watchesWay
            && handlesCookies == other.handlesCookies && decompresses == other.decompresses && avoidsHTTP2 == other.avoidsHTTP2
            && bufferSize == other.bufferSize && maximumSendRate == other.maximumSendRate && packetSize == other.packetSize
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
    /// What it has that may be the user's, and may not end on the loop's thread.
    var remains: any Sendable { get }
    /// The look-up of the name is over: a connection is being made.
    func transferLookedUp()
    /// Whether a connection may be made or used from this address of the machine's, where ``TransferPlan/asksBeforeConnecting``.
    ///
    /// - Returns: why not.
    func transferMayGo(from local: String) -> HTTPSessionError?
    /// Whether a connection between these addresses, which was made before, still goes where the kernel would have it go, where
    /// ``TransferPlan/watchesWay``.
    func transferMayReuse(from local: String, to remote: String) -> Bool
    /// Whether the transfer may be made a second time, although the server may have received its request.
    func transferMayRepeat() -> Bool
    /// The connection stands and the request is about to be sent.
    func transferConnected()
    /// A final response's head (RFC 9110 section 15): status 200 and above, and of an authentication only the last.
    func transferReceived(head: ResponseHead) -> Intake
    /// The head of a response that the engine answers by itself, if it can.
    func transferReceived(challenge: ResponseHead)
    /// An interim response's head (1xx).
    func transferReceived(interim: ResponseHead)
    func transferReceived(bytes: UnsafeRawBufferPointer) -> Intake
    func transferProvides(into buffer: UnsafeMutableRawBufferPointer) -> Provision
    /// The body is wanted again from its beginning.
    func transferRewinds() -> Bool
    /// The end. `error`: why no response came.
    func transferFinished(_ error: HTTPSessionError?, facts: TransferFacts)
}
