internal import CCurl
internal import Certificates
internal import EventLoop
internal import Reachability

/// One attempt at one transaction, between libcurl and its receiver. It counts and frames; it decides nothing of the task's.
final class CurlTransfer {
    let plan: TransferPlan
    let receiver: any TransferReceiver
    let handle: EasyHandle
    // The engine ends every transfer before it ends.
    unowned let engine: CurlEngine
    private let lines: LineList
    /// `nil` where nothing is encrypted.
    let trust: ServerTrust?
    /// What the handle is set up for; `nil` where nobody else can use it so.
    let setup: HandleSetup?
    private(set) var secureFacts: TLSFacts?
    var ending = ResponseEnding()
    let started: Int64
    /// When a request with a body went, and when its answer's first byte came: libcurl 7.88 takes the first byte sent for it.
    private(set) var requested: Int64?
    private(set) var answered: Int64?
    /// When the name was given to the resolver.
    private(set) var lookupStarted: Int64?
    /// Of the body, in its present course.
    private(set) var providedBytes: Int64 = 0
    private(set) var decodedBytes: Int64 = 0

    // Unchecked: see SessionLoop.
    @exclusivity(unchecked) private var heads = HeadReader()
    private var hasDeliveredHead = false
    /// The last answer of a proxy to CONNECT (RFC 9110 section 9.3.6).
    private var tunnelHead: ResponseHead?
    private(set) var requests = 0
    private var responses = 0
    /// Made for this attempt. Those of addresses that did not answer may be closed by now, and their numbers others'.
    private(set) var madeSockets: [curl_socket_t] = []
    var reused: ReusedConnection?
    var connectionInUse: (connection: IdleSockets.Connection, entry: IdleSockets.Entry)?
    var surplus: Surplus?
    /// What it asks for a connection, the latest of each family: libcurl tries both at a time, and of each one address after the other.
    private(set) var connectAttempts: [RouteTracker.ConnectAttempt] = []
    /// Why addresses were not tried: no connection to them may be made from here.
    var networkRefusal: HTTPSessionError?
    private(set) var wasResent = false
    var refusal: HTTPSessionError?
    var pauses = PauseMachine()
    /// Whether the engine sets libcurl's pause bits at the next place for that in its turn.
    var isListedToSettle = false
    /// The server has answered before it had the whole body, and did not say that it went well.
    private var needsNoMore = false
    /// The request would have gone while the task was held, and has not.
    private var wasSuspendedBeforeSending = false
    /// The connection that it would have gone on is not to be used again.
    private var hasUnfitConnection = false
    /// Whether libcurl may answer a proxy's challenge by itself, with what the proxy's own address says.
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
        lines = try LineList(plan.headerLines)
        switch network.proxy {
        case .explicit(let url, _): proxyHasUser = url.contains("@")
        case .environment: proxyHasUser = true
        case .none: proxyHasUser = false
        }
    }

    /// Sets what a ``HandleSetup`` stands for on the handle, which has nothing of an earlier attempt.
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

    /// Sets what is this attempt's own on the handle.
    func attach() throws(HTTPSessionError) {
        try handle.set(CURLOPT_URL, plan.url)
        if let lines = lines.raw { try handle.set(CURLOPT_HTTPHEADER, pointer: lines) }
        try plan.applyAges(to: handle)
        handle.errorText.pointee = 0
        handle.transfer = self
    }

    /// Leaves nothing of this attempt's own on the handle that libcurl might read when it is gone.
    func detach() {
        handle.transfer = nil
        leaveConnection()
        if lines.raw != nil { try? handle.set(CURLOPT_HTTPHEADER, pointer: nil) }
    }

    // MARK: Called by libcurl

    /// `CURLOPT_PREREQFUNCTION`. Without it libcurl sends a request again, whatever its method, when a reused connection dies before
    /// an answer; another request is right only in answer to a response, which is how authentication goes on.
    func mayRequest(on connection: IdleSockets.Connection, from local: UnsafePointer<CChar>?) -> Bool {
        if pauses.isSuspended {
            wasSuspendedBeforeSending = true
            return false
        }
        if requests == 0, handle.long(CURLINFO_NUM_CONNECTS) == 0 {
            guard mayUse(connection, from: local) else {
                hasUnfitConnection = true
                return false
            }
        }
        requests += 1
        noteConnection(connection)
        if requests > responses + 1 {
            wasResent = true
            return false
        }
        if plan.body != .none { (requested, answered) = (MonotonicClock.now(), nil) }
        if requests == 1 {
            let isSecure = plan.isSecure || isUpgraded
            // Nobody would have judged the server: the attempt is made again, with somebody who does.
            if isSecure {
                guard let trust else { return false }
                guard let ssl = handle.tlsPointer, trust.admits(ssl) else {
                    refusal = HTTPSessionError(.certificateUntrusted, "the connection was not made under this session's policy")
                    return false
                }
                secureFacts = TLSFacts(ssl: ssl)
            }
            receiver.transferConnected()
        }
        noteUse(of: connection)
        return true
    }

    /// Strict-Transport-Security (RFC 6797) has made https of http, inside of libcurl.
    var isUpgraded: Bool { !plan.isSecure && handle.isSecure }

    /// One header line, or several: those that libcurl 7.88 reads while receiving is paused come in one piece when the pause ends.
    func receiveHeader(_ piece: UnsafeRawBufferPointer) -> Int {
        var start = 0
        while start < piece.count {
            let end = piece[start...].firstIndex(of: 0x0A).map { $0 + 1 } ?? piece.count
            guard receiveHeaderLine(UnsafeRawBufferPointer(rebasing: piece[start..<end])) else { return 0 }
            start = end
        }
        return piece.count
    }

    /// - Returns: whether the transfer may continue.
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
        guard requests > 0 else {
            tunnelHead = complete
            return mayAnswer(complete)
        }
        if complete.statusCode >= 200, !readFraming(complete) || !mayAnswer(complete) { return false }
        switch complete.statusCode {
        case 101:
            // libcurl takes it for the last head, and what follows for a body.
            refusal = HTTPSessionError(
                .badServerResponse, "the server switched to another protocol unasked", context: .init(statusCode: 101))
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

    /// After such a response libcurl sends nothing more, or what there is until the server closes; 7.88 would wait for the end of a pause.
    private func stopWaitingToSend() {
        needsNoMore = true
        change { $0.sourceReady() }
    }

    private func deliver(_ complete: ResponseHead) -> Bool {
        _ = pauses.takePendingHead()
        hasDeliveredHead = true
        switch receiver.transferReceived(head: complete) {
        case .taken, .pause:
            noteAnswer()
            return true
        case .abort(let error):
            refusal = error
            return false
        }
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard case .accepted(let head) = pauses.receivedBytes() else { return Int(CURL_WRITEFUNC_PAUSE) }
        if let head, !deliver(head) { return 0 }
        switch receiver.transferReceived(bytes: bytes) {
        case .taken:
            decodedBytes += Int64(bytes.count)
            noteAnswer()
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
        case .end: return 0
        case .pause where needsNoMore: return 0
        case .pause:
            pauses.readPaused(isEmpty: true)
            return Int(CURL_READFUNC_PAUSE)
        case .abort(let error):
            refusal = error
            return Int(CURL_READFUNC_ABORT)
        }
    }

    func note(_ attempt: RouteTracker.ConnectAttempt) {
        connectAttempts.removeAll { $0.remote.family == attempt.remote.family }
        connectAttempts.append(attempt)
    }

    /// The address is known: also of a name that libcurl knew already, and of a proxy's.
    func isAboutToConnect(_ socket: curl_socket_t) {
        madeSockets.append(socket)
        receiver.transferLookedUp()
    }

    func rewind() -> Bool {
        providedBytes = 0
        return receiver.transferRewinds()
    }

    /// `CURLOPT_RESOLVER_START_FUNCTION`: nobody has asked for the name yet, or its answer is too old.
    func isAboutToLookUp() { lookupStarted = lookupStarted ?? MonotonicClock.now() }

    /// `CURLOPT_SSL_CTX_FUNCTION`: for the server and for a proxy that speaks TLS.
    func prepare(secureContext: UnsafeMutableRawPointer) -> Bool { trust?.install(on: secureContext) ?? false }

    /// What the engine is to end the attempt with.
    func refuse(with error: HTTPSessionError) { refusal = error }

    private func refuse(_ error: HTTPSessionError) -> Int {
        refusal = error
        return 0
    }

    // MARK: Called by the engine, outside of libcurl

    /// The end: what came of it, and what was measured.
    func finish(_ code: CURLcode) {
        var facts = facts
        facts.isMultiplexed = facts.networkProtocol == "h2" && usesHTTP2 != false
        facts.wasResent = wasResent
        facts.hadUnfitConnection = hasUnfitConnection
        facts.hadSurplus = surplus != nil
        // Nobody would have judged the server; or the proxy of the environment was judged as that of http.
        facts.wasUpgraded = isUpgraded && (trust == nil || requests == 0)
        // Nor did the time for connecting pass for a task that was held.
        facts.wasSuspendedBeforeSending =
            wasSuspendedBeforeSending || (pauses.isSuspended && requests == 0 && code == CURLE_OPERATION_TIMEDOUT)
        receiver.transferFinished(failure(code), facts: facts)
    }

    /// Why there is no response; `nil` where there is one.
    private func failure(_ code: CURLcode) -> HTTPSessionError? {
        do throws(HTTPSessionError) {
            if code != CURLE_OK, requests == 0, let tunnelHead, tunnelHead.statusCode >= 300 {
                // The request never left: the proxy's refusal is the answer.
                guard tunnelHead.statusCode == 407 else {
                    throw HTTPSessionError(
                        .proxyFailed, "the proxy refused the connection: \(tunnelHead.statusCode) \(tunnelHead.reasonPhrase)",
                        context: .init(statusCode: tunnelHead.statusCode))
                }
                _ = deliver(tunnelHead)
                return nil
            }
            // Where another address was tried, its end is the attempt's.
            let isUnconnected = [CURLE_COULDNT_CONNECT, CURLE_ABORTED_BY_CALLBACK].contains(code) && madeSockets.isEmpty
            if isUnconnected, let networkRefusal { throw networkRefusal }
            if !isWhole(despite: code) { try CurlFailure.check(code, evidence()) }
            if let head = pauses.takePendingHead() { _ = deliver(head) }
            if let refusal { return refusal }
            if let error = surplusFailure() { return error }
            if hasDeliveredHead { try ending.check() }
            return hasDeliveredHead ? nil : HTTPSessionError(.badServerResponse, "the server sent no HTTP response")
        } catch {
            return error
        }
    }

    /// Whether all of the response had come before its stream or connection ended as `code` says: a server need not read the rest of
    /// a request that it has answered (RFC 9113 section 8.1).
    private func isWhole(despite code: CURLcode) -> Bool {
        // Without a length: libcurl 7.88 has seen the stream's clean end, and has nothing more to say than that it cannot send. What came
        // before that has been handed over, unless somebody had it wait (lib/http2.c, cf_h2_send).
        if code == CURLE_HTTP2_STREAM, plan.body != .none, hasDeliveredHead, refusal == nil, handle.errorText.pointee == 0,
            !pauses.hasDelayedBytes,
            handle.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T) < 0
        {
            return true
        }
        return [CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_SEND_ERROR, CURLE_RECV_ERROR].contains(code) && isAnswered
    }

    /// Whether the response is whole by its length, and its receiver has it.
    var isAnswered: Bool {
        guard hasDeliveredHead, refusal == nil, !pauses.hasRefusedBytes else { return false }
        let status = handle.long(CURLINFO_RESPONSE_CODE)
        if plan.method == "HEAD" || status == 204 || status == 304 { return true }
        let length = handle.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
        return length >= 0 && length == receivedBodyBytes
    }

    private func noteAnswer() {
        guard plan.body != .none, handle.long(CURLINFO_HTTP_VERSION) == Int(CURL_HTTP_VERSION_2_0), isAnswered else { return }
        engine.noteAnswered(self)
    }
}
