internal import CCurl
internal import Certificates
internal import ContentCodings
internal import EventLoop
internal import Glibc
internal import Reachability

/// One attempt at one transaction, between libcurl and its receiver. It counts bytes and checks the framing; it makes no decisions of the task.
final class CurlTransfer {
    let plan: TransferPlan
    let receiver: any TransferReceiver
    let handle: EasyHandle
    // The engine ends every transfer before it ends.
    unowned let engine: CurlEngine
    private let lines: LineList
    private let proxyLines: LineList
    /// The evaluation of the server's certificate; `nil` without encryption.
    let trust: ServerTrust?
    /// The setup of the handle; `nil` if no other attempt can use the handle without a reset.
    let setup: HandleSetup?
    private(set) var secureFacts: TLSFacts?
    var ending = ResponseEnding()
    let started: Int64
    /// The times at which a request with a body was begun, and at which the first byte of its response arrived. libcurl 7.88 takes the first byte
    /// sent for the first byte received.
    private(set) var requested: Int64?
    private(set) var answered: Int64?
    /// The time at which the lookup of the name began.
    private(set) var lookupStarted: Int64?
    /// The bytes of the request's body that were provided since its beginning or last rewind.
    private(set) var providedBytes: Int64 = 0
    /// Whether the end of the request's body was provided. libcurl 7.88 asks for it when it has sent the bytes before it.
    private(set) var hasProvidedEnd = false
    private(set) var decodedBytes: Int64 = 0
    /// The decoder of the response's content; `nil` if it has no coding, or before its first byte.
    var decoder: ContentDecoder?
    var hasReadCodings = false

    // Unchecked: see SessionLoop.
    @exclusivity(unchecked) private var heads = HeadReader()
    private var hasDeliveredHead = false
    /// The last response of a proxy to CONNECT (RFC 9110 section 9.3.6).
    private var tunnelHead: ResponseHead?
    private(set) var requests = 0
    private var responses = 0
    /// The connection of the last request.
    private(set) var lastConnection: IdleSockets.Connection?
    /// The number of connections that libcurl had made for the attempt at its last request.
    private var connects = 0
    /// Whether a request was not sent because no server is at the other end of the connection.
    private var hasConnectionToItself = false
    /// The sockets that were made for this attempt. Those of addresses that did not answer may be closed, and their descriptors reused.
    private(set) var madeSockets: [curl_socket_t] = []
    var reused: ReusedConnection?
    var connectionInUse: (connection: IdleSockets.Connection, entry: IdleSockets.Entry)?
    var surplus: Surplus?
    /// The addresses that it connects to, the latest of each family: libcurl tries both families at a time, and the addresses of each in turn.
    private(set) var connectAttempts: [RouteTracker.ConnectAttempt] = []
    /// The error for addresses to which no connection may be made from this machine.
    var networkRefusal: HTTPSessionError?
    private(set) var wasResent = false
    /// Whether HSTS upgraded the request, and no connection was made for this reason.
    private var wasUpgradedUnexpectedly = false
    var refusal: HTTPSessionError?
    var pauses = PauseMachine()
    /// Whether the engine's list of transfers with changed pauses has this one.
    var isListedToSettle = false
    /// Whether the server has responded with a status of 300 or above, and so needs no more of the body.
    private var needsNoMoreBody = false
    /// Whether the request was not sent because the task was suspended.
    private var wasSuspendedBeforeSending = false
    /// Whether the request was not sent because the connection must not be reused.
    private var hasUnfitConnection = false
    /// Whether libcurl may answer a proxy's challenge, with the user and password of the proxy's URL.
    private let proxyHasUser: Bool

    init(
        _ plan: TransferPlan, _ network: NetworkOptions, receiver: any TransferReceiver, handle: EasyHandle, engine: CurlEngine,
        trust: ServerTrust?, setup: HandleSetup?, now: Int64
    ) throws(HTTPSessionError) {
        self.plan = plan
        self.receiver = receiver
        self.handle = handle
        self.engine = engine
        self.trust = trust
        self.setup = setup
        started = now
        try plan.checkHead()
        let codings = plan.decompresses && plan.requestsCompression ? engine.codingLines.raw : nil
        lines = try LineList(plan.headerLines, latin1: plan.latin1Lines, followedBy: codings)
        proxyLines = try LineList(plan.proxyHeaderLines, latin1: plan.proxyLatin1Lines)
        proxyHasUser = plan.proxy?.utf8.contains(UInt8(ascii: "@")) == true
    }

    /// Sets the options of a ``HandleSetup`` on a handle that has no options of an earlier attempt.
    func setUp(_ network: NetworkOptions) throws(HTTPSessionError) {
        try network.apply(to: handle)
        try network.applyWaiting(to: handle, isSecure: plan.isSecure)
        try plan.apply(to: handle)
        if network.needsConnectionAlone(isSecure: plan.isSecure) {
            try handle.set(CURLOPT_FRESH_CONNECT, true)
            try handle.set(CURLOPT_FORBID_REUSE, true)
        }
        try trust?.apply(to: handle)
        try handle.set(CURLOPT_ERRORBUFFER, pointer: handle.errorText)
        try CurlTrampolines.install(on: handle, for: self)
    }

    /// Sets the options of this attempt alone on the handle.
    func attach() throws(HTTPSessionError) {
        try handle.set(url: plan.url)
        if let lines = lines.raw { try handle.set(CURLOPT_HTTPHEADER, pointer: lines) }
        if let lines = proxyLines.raw { try handle.set(CURLOPT_PROXYHEADER, pointer: lines) }
        try plan.applyAges(to: handle, isAlone: engine.network.needsConnectionAlone(isSecure: plan.isSecure))
        try engine.applyOverrides(to: handle)
        handle.errorText.pointee = 0
        handle.transfer = self
    }

    /// Removes the references to this attempt from the handle, which libcurl might read after the attempt is released.
    func detach() {
        handle.transfer = nil
        handle.transferEnded()
        leaveConnection()
        if lines.raw != nil { try? handle.set(CURLOPT_HTTPHEADER, pointer: nil) }
        if proxyLines.raw != nil { try? handle.set(CURLOPT_PROXYHEADER, pointer: nil) }
    }

    // MARK: Called by libcurl

    /// `CURLOPT_PREREQFUNCTION`, called before each request of the attempt: the first one, and those of a login that follow a challenge. Each of them
    /// may be on another connection, so each is checked. Without this function libcurl repeats a request of any method when a reused connection is
    /// closed before a response. A further request is permitted only after a response, as authentication needs it.
    func mayRequest(on connection: IdleSockets.Connection, from local: UnsafePointer<CChar>?) -> Bool {
        if requests > responses {
            // First, because the server may have received the last request: it is repeated only if that does no harm.
            (requests, wasResent) = (requests + 1, true)
            recordConnection(connection)
            return false
        }
        if pauses.isSuspended {
            wasSuspendedBeforeSending = true
            return false
        }
        // No server receives the request: failure(_:) has the error.
        if connection.localPort == connection.remotePort, isConnectedToItself {
            hasConnectionToItself = true
            return false
        }
        let connects = handle.long(CURLINFO_NUM_CONNECTS)
        guard connects > self.connects || maySend(on: connection, from: local) else {
            hasUnfitConnection = true
            if refusal == nil { refusal = networkRefusal ?? Self.unfitConnection }
            return false
        }
        self.connects = connects
        requests += 1
        recordConnection(connection)
        if plan.body != .none { (requested, answered) = (MonotonicClock.now(), nil) }
        if requests == 1 || connection != lastConnection, plan.isSecure || isUpgraded {
            // HSTS has upgraded the request, so neither the evaluation of the certificate nor the proxy was prepared: the attempt is repeated.
            guard let trust, plan.isSecure || plan.expectsUpgrade else { return false }
            guard let ssl = handle.tlsPointer, trust.admits(ssl) else {
                refusal = HTTPSessionError(.certificateUntrusted, "the connection was not made under this session's policy")
                return false
            }
            secureFacts = HandshakeWatch.facts(of: ssl)
        }
        if requests == 1 { receiver.transferConnected() }
        guard setCookies() else { return false }
        lastConnection = connection
        recordUse(of: connection)
        return true
    }

    /// Sets the only `Cookie` field of the next request (RFC 6265 section 5.4): the request's own cookies, then those of the store. Each request of a
    /// login asks again, because the challenge may have set cookies, and only here it is known whether HSTS has upgraded the request.
    private func setCookies() -> Bool {
        var value = plan.handlesCookies ? receiver.transferNeedsCookies(isSecure: plan.isSecure || isUpgraded) : []
        if !plan.cookies.isEmpty { value = CookieField.joined(own: plan.cookies, stored: value) }
        guard !value.isEmpty || handle.hasCookies else { return true }
        do throws(HTTPSessionError) { try handle.set(cookies: value) } catch {
            refusal = error
            return false
        }
        return true
    }

    private static var unfitConnection: HTTPSessionError {
        HTTPSessionError(.connectionLost, "the connection could not carry another request")
    }

    /// Whether libcurl has upgraded the request from http to https (Strict-Transport-Security, RFC 6797).
    var isUpgraded: Bool { !plan.isSecure && handle.isSecure }

    /// Receives one header line, or several: libcurl 7.88 delivers the lines that it reads during a pause in one piece when the pause ends.
    func receiveHeader(_ piece: UnsafeRawBufferPointer) -> Int {
        guard let base = piece.baseAddress else { return 0 }
        if handle.firstField.isNeeded { handle.receivedLines(piece) }
        var start = 0
        while start < piece.count {
            let first = base + start
            let count = memchr(first, 0x0A, piece.count - start).map { first.distance(to: $0) + 1 } ?? piece.count - start
            guard receiveHeaderLine(UnsafeRawBufferPointer(start: first, count: count)) else { return 0 }
            start += count
        }
        return piece.count
    }

    /// - Returns: Whether the transfer may continue.
    private func receiveHeaderLine(_ line: UnsafeRawBufferPointer) -> Bool {
        do throws(HTTPSessionError) {
            if hasDeliveredHead {
                try heads.skipTrailer(line)
                return true
            }
            if heads.begins(with: line), !mayBeResponse() { return false }
            if answered == nil, requested != nil { answered = MonotonicClock.now() }
            guard let head = try heads.add(line) else { return true }
            return received(head)
        } catch {
            refusal = error
            return false
        }
    }

    private func received(_ complete: ResponseHead) -> Bool {
        guard refusal == nil else { return false }
        guard requests > 0 else {
            tunnelHead = complete
            return mayAnswer(complete)
        }
        if complete.statusCode >= 200, !readFraming(complete) || !mayAnswer(complete) { return false }
        switch complete.statusCode {
        case 101:
            // libcurl takes this head for the final one, and the following bytes for its body.
            refusal = HTTPSessionError(
                .badServerResponse, "the server switched protocols without a request for it", context: .init(statusCode: 101))
            return false
        case 100..<200:
            receiver.transferReceived(interim: complete)
            return true
        case 401 where plan.login != nil, 407 where plan.proxyLogin != nil || proxyHasUser:
            responses += 1
            pauses.receivedChallenge(complete)
            receiver.transferReceived(challenge: complete)
            return true
        default:
            responses += 1
            guard deliver(complete) else { return false }
            if complete.statusCode >= 300 { stopWaitingToSend() }
            return true
        }
    }

    /// After a response of 300 or above libcurl sends nothing more, or only until the server closes the connection. 7.88 would first wait for the end
    /// of a pause, so the pause is ended here.
    private func stopWaitingToSend() {
        needsNoMoreBody = true
        change { $0.sourceReady() }
    }

    private func deliver(_ complete: ResponseHead) -> Bool {
        _ = pauses.takePendingHead()
        hasDeliveredHead = true
        switch receiver.transferReceived(head: complete) {
        case .taken, .pause:
            checkForCompleteResponse()
            return true
        case .abort(let error):
            refusal = error
            return false
        }
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard case .accepted(let head) = pauses.receivedBytes() else { return Int(CURL_WRITEFUNC_PAUSE) }
        if let head, !deliver(head) { return 0 }
        return plan.decompresses ? receiveContent(bytes) : deliver(bytes)
    }

    /// Delivers bytes of the body. - Returns: Their number, or the value with which the callback pauses or ends the transfer.
    func deliver(_ bytes: UnsafeRawBufferPointer) -> Int {
        switch receiver.transferReceived(bytes: bytes) {
        case .taken:
            decodedBytes += Int64(bytes.count)
            if decoder == nil { checkForCompleteResponse() }
            return bytes.count
        case .pause:
            pauses.receiverBecameFull()
            return Int(CURL_WRITEFUNC_PAUSE)
        case .abort(let error): return refuse(error)
        }
    }

    func provide(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        if pauses.isSuspended {
            pauses.readPaused(isEmpty: false)
            return Int(CURL_READFUNC_PAUSE)
        }
        switch receiver.transferProvides(into: buffer) {
        case .bytes(let count):
            providedBytes += Int64(count)
            return count
        case .end:
            hasProvidedEnd = true
            return 0
        case .pause where needsNoMoreBody: return 0
        case .pause:
            pauses.readPaused(isEmpty: true)
            return Int(CURL_READFUNC_PAUSE)
        case .abort(let error):
            refusal = error
            return Int(CURL_READFUNC_ABORT)
        }
    }

    func record(_ attempt: RouteTracker.ConnectAttempt) {
        connectAttempts.removeAll { $0.remote.family == attempt.remote.family }
        connectAttempts.append(attempt)
    }

    /// `CURLOPT_SOCKOPTFUNCTION`: the address is known, also if libcurl had it in its cache, and if it is a proxy's.
    ///
    /// - Returns: Whether the connection is made. It is not if HSTS has upgraded a request whose proxy was chosen for http: the attempt is repeated.
    func mayConnect(_ socket: curl_socket_t) -> Bool {
        madeSockets.append(socket)
        receiver.transferLookedUp()
        guard !plan.isSecure, !plan.expectsUpgrade, handle.string(CURLINFO_EFFECTIVE_URL)?.hasPrefix("https:") == true else {
            return true
        }
        wasUpgradedUnexpectedly = true
        return false
    }

    func rewind() -> Bool {
        (providedBytes, hasProvidedEnd) = (0, false)
        return receiver.transferRewinds()
    }

    /// `CURLOPT_RESOLVER_START_FUNCTION`: the name is not in libcurl's cache, or its addresses are too old.
    func isAboutToLookUp() { lookupStarted = lookupStarted ?? MonotonicClock.now() }

    /// `CURLOPT_SSL_CTX_FUNCTION`: for the server and for a proxy that speaks TLS.
    func prepare(secureContext: UnsafeMutableRawPointer) -> Bool {
        trust?.install(on: secureContext, socket: madeSockets.last(where: IdleSockets.isConnected)) ?? false
    }

    /// Sets the error with which the engine ends the attempt.
    func refuse(with error: HTTPSessionError) { refusal = error }

    private func refuse(_ error: HTTPSessionError) -> Int {
        refusal = error
        return 0
    }

    // MARK: Called by the engine, outside of libcurl

    /// Reports the result and the measurements to the receiver.
    func finish(_ code: CURLcode) {
        var facts = facts
        facts.isMultiplexed = facts.networkProtocol == "h2" && usesHTTP2 != false
        facts.wasResent = wasResent
        facts.hadUnfitConnection = hasUnfitConnection
        facts.hadSurplus = surplus != nil
        facts.isRequestBodyCut = hasDeliveredHead && !isRequestBodySent(facts.requestBodyBytes)
        // Without a prepared evaluation of the certificate, or with the environment's proxy for http, the attempt has to be repeated.
        facts.wasUpgraded = wasUpgradedUnexpectedly || isUpgraded && (trust == nil || requests == 0 || !plan.expectsUpgrade)
        // The connect timeout does not count for a suspended task either.
        facts.wasSuspendedBeforeSending =
            wasSuspendedBeforeSending || (pauses.isSuspended && requests == 0 && code == CURLE_OPERATION_TIMEDOUT)
        receiver.transferFinished(failure(code), facts: facts)
    }

    /// The error for which there is no response; `nil` if there is one.
    private func failure(_ code: CURLcode) -> HTTPSessionError? {
        do throws(HTTPSessionError) {
            if code != CURLE_OK, requests == 0, let tunnelHead, tunnelHead.statusCode >= 300 {
                // The request was not sent, and the proxy's refusal is the response.
                guard tunnelHead.statusCode == 407 else {
                    throw HTTPSessionError(
                        .proxyFailed, "the proxy refused the connection: \(tunnelHead.statusCode) \(tunnelHead.reasonPhrase)",
                        context: .init(statusCode: tunnelHead.statusCode))
                }
                _ = deliver(tunnelHead)
                return nil
            }
            if code != CURLE_OK, hasConnectionToItself || (requests == 0 && isConnectedToItself) {
                throw HTTPSessionError(
                    plan.usesProxy ? .proxyFailed : .cannotConnectToHost,
                    "no server listens at \(handle.string(CURLINFO_PRIMARY_IP) ?? "") port \(handle.long(CURLINFO_PRIMARY_PORT))",
                    context: .init(curlCode: Int32(bitPattern: CURLE_COULDNT_CONNECT.rawValue), systemError: ECONNREFUSED))
            }
            // If a connection to another address was tried, its error is reported instead.
            let isUnconnected = [CURLE_COULDNT_CONNECT, CURLE_ABORTED_BY_CALLBACK].contains(code) && madeSockets.isEmpty
            if isUnconnected, let networkRefusal { throw networkRefusal }
            if !isComplete(despite: code) { try CurlFailure.check(code, evidence()) }
            if let head = pauses.takePendingHead() { _ = deliver(head) }
            if let refusal { return refusal }
            if let error = surplusFailure() { return error }
            if hasDeliveredHead {
                try ending.check()
                try checkContent()
            }
            // For libcurl 7.88 the end of the connection completes a head of which a line has arrived.
            return hasDeliveredHead
                ? nil : HTTPSessionError(.connectionLost, "the connection ended within the head of the response")
        } catch {
            return error
        }
    }

    /// Whether the response was complete before its stream or connection ended with `code`. A server need not read the remaining body of a
    /// request after its response (RFC 9113 section 8.1).
    private func isComplete(despite code: CURLcode) -> Bool {
        // For a response without a length: libcurl 7.88 has received the end of the stream, and reports only that it cannot send. It has delivered
        // all bytes, unless a pause made them wait (lib/http2.c, cf_h2_send).
        if code == CURLE_HTTP2_STREAM, plan.body != .none, hasDeliveredHead, refusal == nil, handle.errorText.pointee == 0,
            !pauses.hasDelayedBytes,
            handle.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T) < 0
        {
            return true
        }
        return [CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_SEND_ERROR, CURLE_RECV_ERROR].contains(code) && isAnswered
    }

    /// Whether the response is complete by its length, and delivered to the receiver.
    var isAnswered: Bool {
        guard hasDeliveredHead, refusal == nil, !pauses.hasRefusedBytes else { return false }
        let status = handle.long(CURLINFO_RESPONSE_CODE)
        if plan.method == "HEAD" || status == 204 || status == 304 { return true }
        let length = handle.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
        return length >= 0 && length == receivedBodyBytes
    }

    func checkForCompleteResponse() {
        guard plan.body != .none, handle.long(CURLINFO_HTTP_VERSION) == Int(CURL_HTTP_VERSION_2_0), isAnswered else { return }
        engine.recordAnswered(self)
    }
}
