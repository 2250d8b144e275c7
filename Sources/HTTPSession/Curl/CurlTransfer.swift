internal import CCurl
internal import Certificates
internal import ContentCodings
internal import EventLoop
internal import Glibc
internal import Reachability

/// One attempt at one transaction, between libcurl and its receiver. It counts bytes and checks the framing; it makes no decisions of the task.
final class CurlTransfer: Transfer {
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
    private var secureFacts: TLSFacts?
    private(set) var ending = ResponseEnding()
    let started: Int64
    /// The times at which a request with a body was begun, and at which the first byte of its response arrived. libcurl 7.88 takes the first byte
    /// sent for the first byte received.
    private var requested: Int64?
    private var answered: Int64?
    /// The time at which the lookup of the name began.
    private var lookupStarted: Int64?
    /// The bytes of the request's body that were provided since its beginning or last rewind.
    private var providedBytes: Int64 = 0
    /// Whether the end of the request's body was provided. libcurl 7.88 asks for it when it has sent the bytes before it.
    private var hasProvidedEnd = false
    private var decodedBytes: Int64 = 0
    /// The decoder of the response's content; `nil` if it has no coding, or before its first byte.
    private var decoder: ContentDecoder?
    private var hasReadCodings = false

    // Unchecked: see SessionLoop.
    @exclusivity(unchecked) private var heads = HeadAssembler()
    private var hasDeliveredHead = false
    /// The last response of a proxy to CONNECT (RFC 9110 section 9.3.6).
    private var tunnelHead: ResponseHead?
    private var requests = 0
    private var responses = 0
    /// The connection of the last request.
    private var lastConnection: IdleSockets.Connection?
    /// The number of connections that libcurl had made for the attempt at its last request.
    private var connects = 0
    /// Whether a request was not sent because no server is at the other end of the connection.
    private var hasConnectionToItself = false
    /// The sockets that were made for this attempt. Those of addresses that did not answer may be closed, and their descriptors reused.
    private(set) var madeSockets: [curl_socket_t] = []
    private(set) var reused: ReusedConnection?
    private(set) var connectionInUse: (connection: IdleSockets.Connection, entry: IdleSockets.Entry)?
    private var surplus: Surplus?
    /// The addresses that it connects to, the latest of each family: libcurl tries both families at a time, and the addresses of each in turn.
    private(set) var connectAttempts: [RouteTracker.ConnectAttempt] = []
    /// The error for addresses to which no connection may be made from this machine.
    var networkRefusal: HTTPSessionError?
    private var wasResent = false
    /// Whether HSTS upgraded the request, and no connection was made for this reason.
    private var wasUpgradedUnexpectedly = false
    private(set) var refusal: HTTPSessionError?
    private(set) var pauses = PauseMachine()
    /// Whether the engine's list of transfers with changed pauses has this one.
    private var isListedToSettle = false
    /// Whether the server has responded with a status of 300 or above, and so needs no more of the body.
    private var needsNoMoreBody = false
    /// Whether the request was not sent because the task was suspended.
    private var wasSuspendedBeforeSending = false
    /// Whether the request was not sent because the connection must not be reused.
    private var hasUnfitConnection = false
    /// Whether libcurl may answer a proxy's challenge, with the user and password of the proxy's URL.
    private let proxyHasUser: Bool

    init(
        _ plan: TransferPlan, _ network: EngineConfiguration, receiver: any TransferReceiver, handle: EasyHandle,
        engine: CurlEngine,
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
    func setUp(_ network: EngineConfiguration) throws(HTTPSessionError) {
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

    /// `CURLOPT_DEBUGFUNCTION`: libcurl has read a line of a head, and is about to keep it.
    func isAboutToKeep(_ line: UnsafeMutableRawBufferPointer) {
        guard handle.firstField.isAboutToKeep(UnsafeRawBufferPointer(line)) else { return }
        // With a colon it is a line of its own for libcurl. The transfer ends when libcurl delivers it.
        line[0] = UInt8(ascii: ":")
        refuse(with: HeadAssembler.continuationOfNothing)
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
        case .accepted, .pause:
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
    private func deliver(_ bytes: UnsafeRawBufferPointer) -> Int {
        switch receiver.transferReceived(bytes: bytes) {
        case .accepted:
            decodedBytes += Int64(bytes.count)
            if decoder == nil { checkForCompleteResponse() }
            return bytes.count
        case .pause:
            pauses.receiverBecameFull()
            return Int(CURL_WRITEFUNC_PAUSE)
        case .abort(let error):
            refusal = error
            return 0
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

    private func record(_ attempt: RouteTracker.ConnectAttempt) {
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

    private func checkForCompleteResponse() {
        guard plan.body != .none, handle.long(CURLINFO_HTTP_VERSION) == Int(CURL_HTTP_VERSION_2_0), isAnswered else { return }
        engine.recordAnswered(self)
    }

    // MARK: - The framing of the response, and the connection that confirms its end

    /// Records the connection of the next request. A further request of an authentication may use another one.
    private func recordConnection(_ connection: IdleSockets.Connection) {
        ending.server = SurplusServers.Server(connection)
        ending.secureConnection = trust == nil ? nil : handle.tlsPointer.flatMap { HandshakeWatch.of(OpaquePointer($0)) }
    }

    /// Checks a challenge that libcurl answers. libcurl copies its realm, nonce and opaque byte for byte.
    ///
    /// - Returns: Whether these values may be part of a request.
    private func mayAnswer(_ head: ResponseHead) -> Bool {
        let isAnswered = plan.login != nil || plan.proxyLogin != nil || plan.usesProxy
        guard isAnswered, head.statusCode == 401 || head.statusCode == 407,
            head.hasControlByte(in: "www-authenticate") || head.hasControlByte(in: "proxy-authenticate")
        else { return true }
        refusal = HTTPSessionError(
            .badServerResponse, "the challenge contains a control character", context: .init(statusCode: head.statusCode))
        return false
    }

    /// Reads how the body of a final response ends.
    ///
    /// - Returns: Whether the transfer may continue.
    private func readFraming(_ head: ResponseHead) -> Bool {
        do throws(HTTPSessionError) { ending.framing = try ResponseFraming(head, method: plan.method) } catch {
            refusal = error
            return false
        }
        ending.head = head
        if head.hasAmbiguousFraming || ending.server.map(engine.isSurplusServer) == true {
            ending.forbidsReuse = (try? handle.set(CURLOPT_FORBID_REUSE, true)) != nil
        }
        return true
    }

    // MARK: - The content: libcurl's decoders do not say whether their data have ended, so that a cut response would be complete

    /// Receives bytes of the body that may be coded.
    private func receiveContent(_ bytes: UnsafeRawBufferPointer) -> Int {
        if !hasReadCodings {
            hasReadCodings = true
            let codings = ending.codings
            if !codings.isEmpty {
                do throws(ContentDecoder.Failure) {
                    decoder = try ContentDecoder(codings)
                } catch {
                    return refuse(content: error)
                }
            }
        }
        guard let decoder else { return deliver(bytes) }
        var answer = bytes.count
        do throws(ContentDecoder.Failure) {
            _ = try decoder.decode(bytes) { piece in
                let result = deliver(piece)
                guard result != piece.count else { return true }
                answer = result
                return false
            }
        } catch {
            return refuse(content: error)
        }
        if answer == bytes.count { checkForCompleteResponse() }
        return answer
    }

    /// Throws an error if the content ends within its coded data.
    private func checkContent() throws(HTTPSessionError) {
        guard let decoder, !decoder.isComplete else { return }
        // The connection may have been lost, as nothing else says where the body ends.
        guard !ending.isUntilClose else {
            throw HTTPSessionError(.connectionLost, "the connection ended within the compressed data of the response")
        }
        throw HTTPSessionError(.cannotDecodeContent, "the response cannot be decompressed: it ends within its compressed data")
    }

    private func refuse(content failure: ContentDecoder.Failure) -> Int {
        let reason =
            switch failure {
            case .unsupported(let name): "its coding is unknown: \(name)"
            case .damaged: "its compressed data are damaged"
            case .surplus: "bytes follow the end of its compressed data"
            }
        refuse(with: HTTPSessionError(.cannotDecodeContent, "the response cannot be decompressed: \(reason)"))
        return 0
    }

    // MARK: - Ends and pauses; called outside of libcurl

    // libcurl's transfers wait for their servers.
    var waitsForOthers: Bool { false }

    func cancel() { engine.cancel(self) }

    func end(with error: HTTPSessionError) {
        refuse(with: error)
        engine.endRefused(self)
    }

    /// Pauses both directions of a suspended task, or lets them continue as far as their buffers allow.
    func hold(_ isHeld: Bool) { change { $0.setSuspended(isHeld) } }

    /// The receiver has room again.
    func resumeReceiving() { change { $0.receiverReady() } }

    /// The receiver has something to send again.
    func resumeSending() { change { $0.sourceReady() } }

    private func change(_ body: (inout PauseMachine) -> Void) {
        body(&pauses)
        guard !pauses.isApplied, !isListedToSettle else { return }
        isListedToSettle = true
        engine.settleLater(self)
    }

    /// Sets libcurl's pause bits. curl_easy_pause(3) delivers the bytes that libcurl has kept, and reports only to its caller if they are refused.
    /// The transfer would continue without these bytes.
    ///
    /// - Returns: Whether the transfer may continue.
    func settlePauses() -> Bool {
        isListedToSettle = false
        guard let directions = pauses.applyChange() else { return refusal == nil }
        var mask = CURLPAUSE_CONT
        if directions.contains(.receiving) {
            mask |= CURLPAUSE_RECV
            // During the pause libcurl reads lines and does not deliver them.
            handle.watchFirstField()
        }
        if directions.contains(.sending) { mask |= CURLPAUSE_SEND }
        let code = curl_easy_pause(handle.raw, mask)
        guard code != CURLE_BAD_FUNCTION_ARGUMENT else {
            // Without a connection there is nothing to pause. A suspended request is not sent later either (mayRequest).
            pauses.connectionRemoved()
            return refusal == nil
        }
        do throws(HTTPSessionError) { try CurlFailure.check(code, evidence()) } catch { refuse(with: error) }
        return refusal == nil
    }

    // MARK: - The connection, and the check of its addresses

    /// The addresses of the connection in use.
    var ends: (local: String, remote: String)? {
        // Before that, libcurl returns the values of the handle's last attempt.
        guard !madeSockets.isEmpty || requests > 0 else { return nil }
        guard let local = handle.string(CURLINFO_LOCAL_IP), let remote = handle.string(CURLINFO_PRIMARY_IP) else { return nil }
        return (local, remote)
    }

    /// Whether the connection is one of a socket to itself: no server listens at the address, and the kernel chose the port of the destination for the
    /// socket too. The first bytes that arrive are those that were sent.
    private var isConnectedToItself: Bool {
        let port = handle.long(CURLINFO_LOCAL_PORT)
        guard port > 0, port == handle.long(CURLINFO_PRIMARY_PORT), let ends else { return false }
        return ends.local == ends.remote
    }

    /// Whether a connection to the address may be made. Called before its socket exists, so the kernel is asked which local address it would have.
    func mayConnect(to address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Bool {
        guard let remote = KernelRoutes.address(address) else { return true }
        // Without a route, the connection attempt fails with the system's error.
        var chosen: IPAddress?
        if case .from(let sources) = KernelRoutes.route(to: address, length, over: engine.network.interface) {
            chosen = sources.first
        }
        if let chosen, !mayUse(local: "\(chosen)") { return false }
        if plan.watchesRoute { record(RouteTracker.ConnectAttempt(remote: remote, chosen: chosen)) }
        return true
    }

    /// Whether a connection from this local address may be used. Always `true` without ``TransferPlan/asksBeforeConnecting``.
    private func mayUse(local: String) -> Bool {
        guard plan.asksBeforeConnecting, let refusal = receiver.transferRefusal(from: local) else { return true }
        networkRefusal = refusal
        return false
    }

    /// Prevents that closing the connection sends anything. Called before an attempt is ended because its route is lost: the packets would go
    /// nowhere. The kernel would continue to ask for the next hop's address on a dead link. A later connection on the restored link would wait up to
    /// a second for the next ARP request (`retrans_time_ms`, arp(7)). The server is informed when it sends something.
    ///
    /// Does nothing for HTTP/2, whose connection has other streams and returns to libcurl. Does nothing either for a request with a body: a server
    /// that only reads would never be informed.
    func silence() {
        guard usesHTTP2 == false, plan.body == .none else { return }
        for socket in sockets { IdleSockets.silence(socket) }
    }

    /// Whether the remote end has acknowledged everything that was sent.
    var isAcknowledged: Bool {
        // During the handshake, libcurl may not have the port yet.
        (sockets.isEmpty ? madeSockets : sockets).contains { socket in
            var info = tcp_info()
            var size = socklen_t(MemoryLayout<tcp_info>.size)
            return getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, &info, &size) == 0
                && Int(info.tcpi_state) == Int(TCP_ESTABLISHED) && info.tcpi_unacked == 0
        }
    }

    /// The sockets of the connection in use, which libcurl identifies by its local address and port.
    private var sockets: [curl_socket_t] {
        let port = Int32(truncatingIfNeeded: handle.long(CURLINFO_LOCAL_PORT))
        guard port > 0 else { return [] }
        let address = handle.string(CURLINFO_LOCAL_IP) ?? ""
        return (madeSockets + [connectionInUse?.entry.socket ?? -1]).filter { IdleSockets.isLocalEnd($0, address, port) }
    }

    // MARK: - The check of a connection that the attempt has not just made

    /// Whether the next request may be sent on a connection that has carried another request.
    ///
    /// A further request of a login usually uses the connection of the last one. If the server has closed that, libcurl uses any other
    /// connection of the session: it ignores CURLOPT_FRESH_CONNECT for further requests (`this_is_a_follow`, lib/url.c).
    private func maySend(on connection: IdleSockets.Connection, from local: UnsafePointer<CChar>?) -> Bool {
        if connection == lastConnection { return mayContinue(on: connection, from: local) }
        return !plan.needsFreshConnection && !plan.isolatesConnection && mayUse(connection, from: local)
    }

    /// Whether a further request may be sent on the connection of the last one.
    private func mayContinue(on connection: IdleSockets.Connection, from local: UnsafePointer<CChar>?) -> Bool {
        if let local, plan.asksBeforeConnecting, !mayUse(local: String(cString: local)) { return false }
        guard !hasSurplus(on: connection) else { return false }
        // The route of a fresh connection is the kernel's choice for this attempt.
        guard !plan.needsFreshConnection else { return true }
        if let local, plan.watchesRoute,
            !receiver.transferMayReuse(from: String(cString: local), to: connection.remoteAddress)
        {
            return false
        }
        return !engine.sockets.removeStale(connection)
    }

    /// Whether bytes follow the last response on its connection. Over TLS they may be session tickets, as the first response of a connection
    /// usually has them behind it, so they are not checked.
    private func hasSurplus(on connection: IdleSockets.Connection) -> Bool {
        guard !ending.isSecure, let entry = engine.sockets.entry(of: connection), entry.user === self,
            IdleSockets.hasSurplus(entry.socket, ssl: nil)
        else { return false }
        if !IdleSockets.isTimeoutNotice(entry.socket) { engine.recordSurplus(of: SurplusServers.Server(connection)) }
        return true
    }

    /// Whether the request may be sent on the connection. `local` is its local address as text.
    private func mayUse(_ connection: IdleSockets.Connection, from local: UnsafePointer<CChar>?) -> Bool {
        if let local, plan.asksBeforeConnecting || plan.watchesRoute {
            let address = String(cString: local)
            // The connection of another request may use a network that is forbidden for this one; with HTTP/2 it may still be in use.
            if plan.asksBeforeConnecting, !mayUse(local: address) { return false }
            if plan.watchesRoute, !receiver.transferMayReuse(from: address, to: connection.remoteAddress) { return false }
        }
        return mayReuse(connection)
    }

    // MARK: - Unsolicited responses
    //
    // In HTTP/1 only the order on a connection assigns a response to a request. Unsolicited bytes of a server therefore become the response
    // to the next request. A reused connection is checked three times:
    // 1. Before the request is sent (``IdleSockets/hasSurplus(_:ssl:)``): bytes in the socket belong to no request.
    // 2. At the response's first byte: every segment that a server sends after it has received the request acknowledges the request. If nothing of
    //    the request is acknowledged, the response was sent before. This covers the round trip.
    // 3. At the response's end: the server received one request. If there is more than one response, the first belongs to no request, and the
    //    following one is the right one.
    // Only the third check finds an unsolicited response that arrives between the request's arrival at the server and the server's response.

    /// Whether a request may be sent on this connection, which has carried another.
    private func mayReuse(_ connection: IdleSockets.Connection) -> Bool {
        let server = SurplusServers.Server(connection)
        guard let entry = engine.sockets.entry(of: connection) else { return true }
        // libcurl has reassigned the connection before it reported the end of its last exchange.
        if let user = entry.user, user !== self { user.lookBehindResponse() }
        let socket = entry.socket
        let ssl = plan.isSecure || isUpgraded ? handle.tlsPointer : nil
        guard !engine.sockets.removeStale(connection) else { return false }
        guard !engine.isSurplusServer(server) else { return false }
        if IdleSockets.hasSurplus(socket, ssl: ssl) {
            // Over TLS the bytes may be a session ticket, or close_notify.
            if ssl == nil, !IdleSockets.isTimeoutNotice(socket) { engine.recordSurplus(of: server) }
            return false
        }
        reused = ReusedConnection(
            socket: socket, server: server, counters: entry.counters ?? ReceiveCounters(socket),
            closedCount: engine.watched.closedCount)
        entry.counters = nil
        use(connection, entry)
        return true
    }

    /// Records that the next request is sent on this connection, which may be a new one.
    private func recordUse(of connection: IdleSockets.Connection) {
        guard connectionInUse?.connection != connection, usesHTTP2 == false,
            let entry = engine.sockets.insert(connection, made: madeSockets)
        else { return }
        use(connection, entry)
    }

    private func use(_ connection: IdleSockets.Connection, _ entry: IdleSockets.Entry) {
        leaveConnection()
        entry.user = self
        connectionInUse = (connection, entry)
    }

    /// Releases the connection, when the attempt has ended or continues on another one.
    private func leaveConnection() {
        if let entry = connectionInUse?.entry, entry.user === self { entry.user = nil }
        connectionInUse = nil
    }

    /// Checks the first byte of a response to the first request on a reused connection.
    ///
    /// - Returns: Whether the response was sent after the request arrived.
    private func mayBeResponse() -> Bool {
        guard let reused, requests == 1, let before = reused.counters, let now = ReceiveCounters(reused.socket) else {
            return true
        }
        self.reused?.countersAtResponse = now
        guard now.acknowledged == before.acknowledged else { return true }
        record(.beforeRequest, of: reused)
        refuse(with: CurlTransfer.surplusError)
        return false
    }

    /// Checks the bytes that follow the response of a successful exchange.
    func lookBehindResponse() {
        guard let reused, requests == 1, !ending.isSecure, let before = reused.counters else { return }
        self.reused = nil
        // libcurl has closed the other connections, and another socket may have their descriptor.
        guard ending.keepsConnection else { return }
        let isOpen = reused.closedCount == engine.watched.closedCount || isOpen(reused.socket)
        let consumed = UInt64(clamping: handle.long(CURLINFO_HEADER_SIZE)) + UInt64(clamping: receivedBodyBytes)
        let isCounted = ending.hasKnownSize
        // Small responses arrive at once: at their first byte the kernel had received all of them, and nothing else. Bytes that followed are unread.
        if isOpen, isCounted, plan.body == .none, let first = reused.countersAtResponse, first.isAcknowledged,
            first.received == before.received + consumed, !IdleSockets.hasSurplus(reused.socket, ssl: nil)
        {
            connectionInUse?.entry.counters = first
            return
        }
        guard isOpen, let now = ReceiveCounters(reused.socket), now.received >= before.received else {
            // libcurl has closed the connection although the response permits another request: its buffer had further bytes.
            record(.unknownBytes, of: reused)
            return
        }
        var text: (UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8) = (0, 0, 0, 0, 0, 0, 0, 0)
        let surplus = now.received - before.received
        // A FIN counts as one byte.
        if isCounted, surplus <= consumed + 1 {
            connectionInUse?.entry.counters = now
            return
        }
        let count = recv(reused.socket, &text, 8, Int32(MSG_PEEK | MSG_DONTWAIT))
        if count > 0 {
            let isResponse = withUnsafeBytes(of: text) { IdleSockets.isBeginningOfResponse($0.prefix(count)) }
            record(isResponse ? .anotherResponse : .unknownBytes, of: reused)
        } else if isCounted, surplus >= consumed + CurlTransfer.shortestResponse {
            // libcurl 7.88 discards bytes in its buffer after a response without a body.
            record(.unknownBytes, of: reused)
        } else {
            connectionInUse?.entry.counters = now
        }
    }

    /// Whether the descriptor still belongs to the connection in use.
    private func isOpen(_ socket: curl_socket_t) -> Bool {
        connectionInUse.map { IdleSockets.isLocalEnd(socket, of: $0.connection) } == true
    }

    private func record(_ surplus: Surplus, of reused: ReusedConnection) {
        self.surplus = surplus
        engine.recordSurplus(of: reused.server)
    }

    /// The error of an attempt that fails although its response is complete; `nil` if it does not fail.
    private func surplusFailure() -> HTTPSessionError? {
        switch surplus {
        case .beforeRequest, .anotherResponse: CurlTransfer.surplusError
        case .unknownBytes: receiver.transferMayRepeat() ? CurlTransfer.surplusError : nil
        case nil: nil
        }
    }

    /// The length of `HTTP/1.1 200 ` with an empty line, in bytes.
    private static let shortestResponse: UInt64 = 17
    private static var surplusError: HTTPSessionError {
        HTTPSessionError(.connectionLost, "the server sent an unsolicited response on a reused connection")
    }

    // MARK: - Measurements and evidence

    /// The bytes of the response's body so far, before decompression.
    var receivedBodyBytes: Int64 { handle.offset(CURLINFO_SIZE_DOWNLOAD_T) }

    /// Whether other transfers may share the connection; `nil` before the end of the handshake.
    var usesHTTP2: Bool? {
        switch engine.network.httpVersion {
        case _ where plan.avoidsHTTP2, .http1: false
        case .http2 where plan.isSecure || isUpgraded: secureFacts.map { $0.applicationProtocol != "http/1.1" }
        case .http2: !engine.network.needsConnectionAlone(isSecure: false)
        case .automatic where plan.isSecure || isUpgraded: secureFacts.map { $0.applicationProtocol == "h2" }
        case .automatic: false
        }
    }

    /// The measurements so far.
    var facts: TransferFacts {
        var facts = handle.facts()
        if let requested, let answered, let preTransfer = facts.preTransfer {
            facts.firstByte = min(facts.total, preTransfer + answered - requested)
        }
        if let lookupStarted, let end = facts.nameLookup { facts.lookupStart = min(max(0, lookupStarted - started), end) }
        // libcurl 7.88 reports a proxy only if it opened a tunnel.
        facts.usedProxy = facts.usedProxy || plan.usesProxy
        (facts.providedBodyBytes, facts.decodedBodyBytes) = (providedBytes, decodedBytes)
        (facts.tlsVersion, facts.tlsCipher) = (secureFacts?.version, secureFacts?.cipher)
        return facts
    }

    /// Whether the complete body of the request was sent. `count`: the bytes that were sent, as libcurl counts them (`CURLINFO_SIZE_UPLOAD_T`). For
    /// a body of unknown length over HTTP/1 this includes the framing of the chunks.
    private func isRequestBodySent(_ count: Int64) -> Bool {
        switch plan.body {
        case .none: true
        case .length(let length): count >= length
        case .untilEnd: hasProvidedEnd && count >= providedBytes
        }
    }

    /// The evidence that decides what an error code of libcurl means.
    private func evidence() -> CurlEvidence {
        CurlEvidence(
            text: String(cString: handle.errorText), systemError: Int32(truncatingIfNeeded: handle.long(CURLINFO_OS_ERRNO)),
            hasRequested: requests > 0, refusal: refusal, trust: trust?.error, wasResent: wasResent && refusal == nil,
            isMultiplexed: usesHTTP2 == true,
            usesProxy: plan.usesProxy || handle.long(CURLINFO_HTTP_CONNECTCODE) != 0)
    }
}

/// How a response ends, and the TLS connection that confirms its end.
struct ResponseEnding {
    fileprivate var framing = ResponseFraming.noBody
    /// The innermost TLS connection that carries the exchange: the server's, or that of an HTTPS proxy for an http URL.
    fileprivate var secureConnection: HandshakeWatch?
    /// Whether the connection is closed after this exchange: this changes the handle, which no other attempt uses then.
    fileprivate(set) var forbidsReuse = false
    /// The remote end of the connection.
    fileprivate var server: SurplusServers.Server?
    fileprivate var head: ResponseHead?

    /// Whether the response lets the connection carry another request (RFC 9112 section 9.3).
    var keepsConnection: Bool { !forbidsReuse && framing != .untilClose && head?.keepsConnection == true }
    /// Whether the exchange is encrypted as far as the server or proxy that the connection leads to.
    var isSecure: Bool { secureConnection != nil }
    var isUntilClose: Bool { framing == .untilClose }
    /// The values of Content-Encoding.
    var codings: [String] { head?.values(of: "content-encoding") ?? [] }
    /// Whether libcurl's counters say how many bytes the response took on the connection.
    var hasKnownSize: Bool {
        switch framing {
        case .noBody, .length: true
        case .chunked, .stream, .untilClose: false
        }
    }

    /// Throws ``HTTPSessionError/Code/connectionLost`` if the end of the body was the end of a TLS connection without close_notify: an
    /// attacker may have cut it there (RFC 9112 section 9.8).
    func check() throws(HTTPSessionError) {
        guard framing == .untilClose, let secureConnection, !secureConnection.hasReceivedCloseNotify else { return }
        throw HTTPSessionError(
            .connectionLost, "the connection ended without close_notify (TLS): the response may be incomplete")
    }
}

/// The reused HTTP/1 connection that carries an attempt.
struct ReusedConnection {
    var socket: curl_socket_t
    var server: SurplusServers.Server
    /// The counters before the request was sent.
    var counters: ReceiveCounters?
    /// The counters at the beginning of the response.
    var countersAtResponse: ReceiveCounters?
    /// The value of ``WatchedSockets/closedCount`` before the request was sent.
    var closedCount: Int
}

/// The evidence that a response on a reused connection does not belong to its request (RFC 9112 section 9.2).
enum Surplus: Hashable, Sendable {
    /// The response arrived before any byte of the request was acknowledged, so it was sent before the request arrived.
    case beforeRequest
    /// Another response follows, and one of the two belongs to no request.
    case anotherResponse
    /// Unknown bytes follow.
    case unknownBytes
}
