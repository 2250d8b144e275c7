package import ByteComparison
internal import Reachability
internal import Wire

/// The plan of one attempt at one transaction, complete so that an engine can carry it out without further decisions.
package struct TransferPlan: Hashable, Sendable {
    /// The framing of a request's body.
    package enum BodyFraming: Hashable, Sendable {
        case none
        case length(Int64)
        /// Chunked over HTTP/1.1, the stream's end over HTTP/2.
        case untilEnd

        /// The longest body that is sent over HTTP/2 unless nothing else is permitted: sixteen at a time fit into the initial window of their
        /// connection, which they share (65,535 bytes, RFC 9113 section 6.9.2).
        static let longestMultiplexedBody: Int64 = 65_535 / 16

        /// Whether an HTTP/2 server may answer and reset the stream while the body is still being sent.
        ///
        /// With the bodies of other requests, the body may be longer than the initial window of the connection, so the server has to permit its end.
        /// libcurl 7.88 then loses responses that it receives together with the reset (section 8.1), or while the window is closed.
        package var mayExceedInitialWindow: Bool {
            switch self {
            case .none: false
            case .length(let length): length > Self.longestMultiplexedBody
            case .untilEnd: true
            }
        }
    }

    /// A user and password, and the schemes by which the engine may send them.
    package struct Login: Hashable, Sendable {
        @ExactString package var user: String
        @ExactString package var password: String
        package var schemes: AuthenticationScheme.Set

        package init(user: String, password: String, schemes: AuthenticationScheme.Set) {
            self.user = user
            self.password = password
            self.schemes = schemes
        }
    }

    /// The absolute URL, without user, password and fragment.
    @ExactString package private(set) var url: String
    /// Whether the connection to the server uses TLS.
    package let isSecure: Bool
    @ExactString package var method: String
    /// The header lines `Name: value`, as they are sent.
    package var headerLines: [String] = []
    /// The header lines for the proxy alone: of CONNECT if there is a tunnel, otherwise of the request.
    package var proxyHeaderLines: [String] = []
    /// Further lines of both kinds, each of whose characters is sent as one byte (ISO 8859-1).
    package var (latin1Lines, proxyLatin1Lines): ([String], [String]) = ([], [])
    /// The value of the request's own `Cookie` field, which is not among ``headerLines``; empty for none.
    @ExactString package var cookies = ""
    package var body = BodyFraming.none
    @BoxedOptional package var login: Login?
    @BoxedOptional package var proxyLogin: Login?
    /// The URL's user and password, if the request carries them before a server asks.
    @BoxedOptional package var preemptiveCredential: Credential?
    /// Whether the connection may carry no other request, before, beside or after this one. The server may authenticate the connection itself
    /// (Negotiate, RFC 4559 section 6).
    package var isolatesConnection = false
    package var connectTimeoutMilliseconds: Int64 = 60_000
    /// Whether a new connection and a new lookup are required.
    package var needsFreshConnection = false
    /// The longest idle time of a reused connection, in seconds; 0 permits no reuse; `nil` for the engine's default.
    package var maximumIdleSeconds: Int?
    /// The greatest age of a lookup, in seconds; `nil` for the engine's default (CURLOPT_DNS_CACHE_TIMEOUT, 60).
    package var maximumLookupSeconds: Int?
    /// Whether the receiver is asked before a connection is made or used (``TransferReceiver/transferRefusal(from:)``).
    package var asksBeforeConnecting = false
    /// Whether the route to the server is observed: by the addresses that are tried, and for a reused connection by
    /// ``TransferReceiver/transferMayReuse(from:to:)``.
    package var watchesRoute = false
    /// Whether addresses are checked before their sockets are made.
    package var checksAddresses: Bool { asksBeforeConnecting || watchesRoute }
    /// The URL of the proxy; `nil` for a direct connection. libcurl reads neither the environment nor a list of exceptions.
    package var proxy: String?
    /// Whether the request uses a proxy.
    package var usesProxy: Bool { proxy != nil }
    /// Whether Strict-Transport-Security is expected to upgrade the request from http to https: ``proxy`` is the one for https.
    package var expectsUpgrade = false
    /// Whether the receiver is asked for cookies before each request (``TransferReceiver/transferNeedsCookies(isSecure:)``).
    package var handlesCookies = true
    /// Whether the request waits for a 100 (Continue) before its body (RFC 9110 section 10.1.1).
    package var expectsContinue = false
    /// Whether compressed content is decompressed, and requested if ``requestsCompression`` is set too.
    package var decompresses = true
    /// Whether the engine requests compressed content; `false` if the header lines have their own `Accept-Encoding`.
    package var requestsCompression = true
    /// Whether HTTP/1.1 is used even if the server offers HTTP/2.
    package var avoidsHTTP2 = false
    /// The size of the receive buffer in bytes; larger for downloads to files. libcurl allocates it for most attempts, and glibc consolidates its heap
    /// whenever a piece of 64 KiB or more is freed (malloc.c: FASTBIN_CONSOLIDATION_THRESHOLD).
    package var bufferSize = 60 << 10

    /// The maximum rate at which the body is sent, in bytes per second; `nil` for the session's rate.
    package var maximumSendRate: Int64?
    /// The maximum number of bytes of the body that are provided at once.
    package var packetSize = Int.max

    /// Whether the caller has set a `Host` field.
    package var namesHost: Bool {
        headerLines.contains { ($0.utf8.first == 0x48 || $0.utf8.first == 0x68) && $0.prefix(5).lowercased() == "host:" }
    }

    /// Requests content without compression, unless the request has an `Accept-Encoding` of its own.
    package mutating func requestIdentity() {
        if !headerLines.contains(where: { $0.prefix(16).lowercased() == "accept-encoding:" }) {
            headerLines.append("Accept-Encoding: identity")
        }
    }

    /// The path and query as libcurl sends them: without dot segments (RFC 3986 section 5.2.4).
    package var target: String {
        let start = url.firstRange(of: "://")?.upperBound ?? url.startIndex
        let tail = url[start...].drop { !"/?#".contains($0) }.prefix { $0 != "#" }
        let path = tail.prefix { $0 != "?" }
        return URLReference.removingDotSegments(String(path)) + tail[path.endIndex...]
    }

    /// Adds header lines of the session. They replace lines with the same names, because these fields may occur only once.
    package mutating func replaceFields(by lines: [String]) {
        func name(_ line: String) -> String { line.prefix { $0 != ":" && $0 != ";" }.lowercased() }
        let names = lines.map(name)
        if !names.isEmpty { headerLines.removeAll { line in names.contains { $0.isExactly(name(line)) } } }
        headerLines += lines
    }

    package init(url: String, method: String) {
        self.url = url
        // The scheme is http or https.
        isSecure = url.utf8.dropFirst(4).first.map { $0 | 0x20 } == UInt8(ascii: "s")
        self.method = method
    }

    /// The plan without its URL, fields and credential, which differ between attempts and may be secret.
    package var withoutAttemptDetails: TransferPlan {
        var plan = self
        (plan.url, plan.headerLines, plan.proxyHeaderLines, plan.cookies, plan.preemptiveCredential) = ("", [], [], "", nil)
        (plan.latin1Lines, plan.proxyLatin1Lines) = ([], [])
        return plan
    }

    /// Whether a handle with the options of this plan can be used for the other plan. Every attempt sets the URL, the fields, and the ages of
    /// connections and lookups (if they are set at all). Logins and bodies are not compared, because handles of such attempts are not kept.
    package func isSetUpLike(_ other: TransferPlan) -> Bool {
        isSecure == other.isSecure && method.isExactly(other.method) && isolatesConnection == other.isolatesConnection
            && connectTimeoutMilliseconds == other.connectTimeoutMilliseconds
            && needsFreshConnection == other.needsFreshConnection
            && (maximumIdleSeconds == nil) == (other.maximumIdleSeconds == nil)
            && (maximumLookupSeconds == nil) == (other.maximumLookupSeconds == nil)
            && asksBeforeConnecting == other.asksBeforeConnecting && watchesRoute == other.watchesRoute
            && proxy.isExactly(other.proxy) && decompresses == other.decompresses && avoidsHTTP2 == other.avoidsHTTP2
            && bufferSize == other.bufferSize && maximumSendRate == other.maximumSendRate && packetSize == other.packetSize
    }
}

/// The result of a delivery of received bytes.
package enum Intake: Sendable {
    case accepted
    /// Nothing was accepted. The same bytes are delivered again after the transfer is resumed.
    case pause
    case abort(HTTPSessionError)
}

/// The result of a request for bytes to send.
package enum Provision: Sendable {
    case bytes(Int)
    case end
    /// No bytes are available yet. The transfer is resumed when there are some.
    case pause
    case abort(HTTPSessionError)
}

/// The receiver of a transfer's events. The engine calls it on the loop's thread, and never inside a call of the receiver to the engine.
package protocol TransferReceiver: AnyObject {
    /// The objects that may be the user's, and must not be released on the loop's thread.
    var userObjects: any Sendable { get }
    /// The lookup of the name has ended, and a connection is being made.
    func transferLookedUp()
    /// Checks whether a connection from this local address may be made or used. Called if ``TransferPlan/asksBeforeConnecting`` is set.
    ///
    /// - Returns: The error if it may not; `nil` if it may.
    func transferRefusal(from local: String) -> HTTPSessionError?
    /// Whether an existing connection between these addresses still uses the route that the kernel would choose now. Called if
    /// ``TransferPlan/watchesRoute`` is set.
    func transferMayReuse(from local: String, to remote: String) -> Bool
    /// Whether the transfer may be made a second time, although the server may have received its request.
    func transferMayRepeat() -> Bool
    /// The connection is established, and the request is about to be sent.
    func transferConnected()
    /// Returns stored cookies for the request that is about to be sent, as the value of its `Cookie` field; empty for none. Called if
    /// ``TransferPlan/handlesCookies`` is set.
    func transferNeedsCookies(isSecure: Bool) -> [UInt8]
    /// The head of a final response (RFC 9110 section 15): status 200 and above, and during an authentication only the last one.
    func transferReceived(head: ResponseHead) -> Intake
    /// The head of a challenge that the engine itself answers, if it can.
    func transferReceived(challenge: ResponseHead)
    /// The head of an interim response (1xx).
    func transferReceived(interim: ResponseHead)
    func transferReceived(bytes: UnsafeRawBufferPointer) -> Intake
    func transferProvides(into buffer: UnsafeMutableRawBufferPointer) -> Provision
    /// Rewinds the body to its beginning. - Returns: Whether that is possible.
    func transferRewinds() -> Bool
    /// The transfer has ended. `error` is `nil` if there is a response.
    func transferFinished(_ error: HTTPSessionError?, facts: TransferFacts)
}

/// The last check of the text that becomes a request's head (RFC 9110 sections 5.5 and 9.1, RFC 9112 section 3).
///
/// Every attempt is checked before libcurl receives it, because libcurl copies lines unchanged. The text may come from a caller, an interceptor, a
/// server's `ETag` or `Location`, or a file such as a download's sidecar.
extension TransferPlan {
    /// Throws ``HTTPSessionError/Code/invalidRequest`` if the request line or a field contains a forbidden byte. The error names the
    /// field, never its value.
    package func checkHead() throws(HTTPSessionError) {
        guard HTTPGrammar.isToken(method.utf8) else { throw refusal("the method is not a token") }
        var address = url
        guard address.withUTF8({ $0.allSatisfy { $0 > 0x20 && $0 != 0x7F } }) else {
            throw refusal("the URL contains a space or a control character")
        }
        for line in headerLines { try check(line) }
        for line in proxyHeaderLines { try check(line) }
        for line in latin1Lines + proxyLatin1Lines { try check(line) }
        guard !cookies.hasControlCharacter else { throw refusal("the value of Cookie contains a control character") }
        for text in [login?.user, login?.password, proxyLogin?.user, proxyLogin?.password] {
            guard text?.hasControlCharacter != true else { throw refusal("the credential contains a control character") }
        }
    }

    /// `Name: value`, `Name;` for an empty value, or `Name:` for a field that libcurl leaves out.
    private func check(_ line: String) throws(HTTPSessionError) {
        let bytes = line.utf8
        guard let end = bytes.firstIndex(where: { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ";") }),
            HTTPGrammar.isToken(bytes[..<end])
        else { throw refusal("a header line has no field name") }
        // A tab is whitespace in a value (RFC 9110 section 5.5).
        guard bytes[end...].allSatisfy(HTTPGrammar.isValueByte) else {
            throw refusal("the value of \(line[..<end]) contains a line break, NUL or another control character")
        }
        // libcurl ignores text after `;`, and the session writes no such line.
        guard bytes[end] == UInt8(ascii: ":") || bytes.index(after: end) == bytes.endIndex else {
            throw refusal("a header line has no field name")
        }
    }

    private func refusal(_ reason: String) -> HTTPSessionError { HTTPSessionError(.invalidRequest, reason) }
}
