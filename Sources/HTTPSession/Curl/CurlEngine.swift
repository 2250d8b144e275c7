internal import CCurl
internal import Certificates
internal import EventLoop
internal import Glibc

/// One multi handle on one loop (libcurl-multi(3), the socket interface). Everything here belongs to the loop's thread.
///
/// A session has an engine of its own, and with it its connections, its TLS sessions, its easy handles and its cookies: nothing of
/// them is ever used under another session's policy. (Measured on libcurl 7.88: an easy handle that has been reset resumes its TLS
/// session in another multi handle, and the verification does not run again.)
final class CurlEngine {
    /// Idle easy handles kept for the next transfers.
    static let maximumIdleHandles = 128
    // Unchecked: see SessionLoop.
    @exclusivity(unchecked) private var loop: EventLoop
    private let multi: UnsafeMutableRawPointer
    /// Cookies and HSTS of the session, and a share without the cookies.
    let share: UnsafeMutableRawPointer
    let cookielessShare: UnsafeMutableRawPointer
    /// Never transfers: the door to the share's cookies, and what writes the HSTS file in the end.
    let storeHandle: EasyHandle
    let network: NetworkOptions
    let overrides: LineList
    // Unchecked, as below: every mutation of these returns before libcurl or a receiver is called, which may come back to the engine.
    @exclusivity(unchecked) private var idleHandles: [(handle: EasyHandle, setup: HandleSetup?)] = []
    let sockets = IdleSockets()
    // Unchecked: as above.
    @exclusivity(unchecked) var surplus = SurplusRecord()
    /// Those that have, or are about to have, all of their answer while they still send.
    private var answered: [CurlTransfer] = []
    /// Those whose socket nobody watches.
    private var unwatched: [CurlTransfer] = []
    /// Those whose pauses have changed.
    private var unsettled: [CurlTransfer] = []
    private var leavesOneMore = false
    private var isClosed = false
    // Unchecked: as above.
    @exclusivity(unchecked) private var transfers: [ObjectIdentifier: CurlTransfer] = [:]
    /// When libcurl wants to be called without a socket being ready, on the monotonic clock.
    private var curlDeadline: Int64?

    var waker: Waker { loop.waker }

    /// An engine on the calling thread; `cookieLines` are of a former session, in Netscape's format.
    init(_ network: NetworkOptions, cookieLines: [CookieLine]) throws(HTTPSessionError) {
        guard CurlLibrary.version >= CurlLibrary.minimumVersion else {
            throw HTTPSessionError(.invalidConfiguration, "libcurl \(CurlLibrary.versionText) is too old: 7.88 is needed")
        }
        do { loop = try EventLoop() } catch {
            throw HTTPSessionError(.transferFailed, "\(error.call) failed", context: .init(systemError: error.errno))
        }
        overrides = try LineList(network.overrideLines)
        storeHandle = try EasyHandle()
        guard let multi = curl_multi_init(), let share = curl_share_init(), let cookieless = curl_share_init() else {
            throw HTTPSessionError(.transferFailed, "curl_multi_init: no memory")
        }
        self.multi = multi
        self.share = share
        cookielessShare = cookieless
        self.network = network
        try CurlTrampolines.install(on: multi, for: self)
        try setLimits()
        try openStores(cookieLines)
    }

    private func setLimits() throws(HTTPSessionError) {
        let limits: [(CURLMoption, Int)] = [
            (CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX)),
            (CURLMOPT_MAX_HOST_CONNECTIONS, network.maximumConnectionsPerHost ?? 0),
            (CURLMOPT_MAX_TOTAL_CONNECTIONS, network.maximumConnections),
            (CURLMOPT_MAXCONNECTS, network.maximumConnections),
        ]
        for (option, value) in limits { try set(option, value) }
    }

    private func set(_ option: CURLMoption, _ value: Int) throws(HTTPSessionError) {
        try CurlFailure.check(netwatch_curl_multi_set_long(multi, Int32(bitPattern: option.rawValue), value))
    }

    /// A host speaks HTTP/2: the queue admits its requests beside transfers that have a connection each. What would wait here has a place in
    /// the queue already, and its time runs; so there is one connection more.
    func multiplexes() {
        guard !leavesOneMore, let limit = network.maximumConnectionsPerHost else { return }
        leavesOneMore = (try? set(CURLMOPT_MAX_HOST_CONNECTIONS, limit + 1)) != nil
    }

    /// Connections that are idle may be dead now. An older libcurl cannot be told: each is looked at before it is used again.
    func networkChanged() {
        sockets.doubt()
        guard CurlLibrary.hasNetworkChanged else { return }
        try? set(CurlLibrary.networkChangedOption, CurlLibrary.clearsConnectionsAndNames)
    }

    deinit { _ = close() }

    /// On the loop's thread: the end. Whatever is still under way ends without a word; the HSTS file is written, which libcurl does when
    /// the handle goes that names it.
    ///
    /// - Returns: what its transfers had that may be the user's.
    func close() -> [any Sendable] {
        guard !isClosed else { return [] }
        isClosed = true
        for transfer in transfers.values {
            curl_multi_remove_handle(multi, transfer.handle.raw)
            transfer.detach()
            transfer.handle.cleanUp()
        }
        for idle in idleHandles { idle.handle.cleanUp() }
        curl_multi_cleanup(multi)
        storeHandle.cleanUp()
        curl_share_cleanup(share)
        curl_share_cleanup(cookielessShare)
        defer { (transfers, answered, unwatched, unsettled, surplus.waiting) = ([:], [], [], [], []) }
        let left = transfers.values + answered + unwatched + unsettled + surplus.waiting.map(\.transfer)
        return left.flatMap { [$0.receiver.remains, $0.trust as any Sendable] }
    }

    // MARK: Transfers

    /// Begins an attempt. Its receiver hears nothing before ``advance()``.
    func start(
        _ plan: TransferPlan, for receiver: any TransferReceiver, trust: ServerTrust?, now: Int64
    ) throws(HTTPSessionError) -> any Transfer {
        let (handle, setup, isSetUp) = try takeHandle(for: plan, trust)
        let transfer: CurlTransfer
        do throws(HTTPSessionError) {
            transfer = try CurlTransfer(
                plan, network, receiver: receiver, handle: handle, engine: self, trust: trust, setup: setup, now: now)
            if !isSetUp {
                try transfer.setUp(network)
                try attachStores(to: handle, handlesCookies: plan.handlesCookies)
            }
            try transfer.attach()
            if !waitsForQuiet(transfer, now: now) { try CurlFailure.check(curl_multi_add_handle(multi, handle.raw)) }
        } catch {
            handle.transfer = nil
            handle.cleanUp()
            throw error
        }
        transfers[ObjectIdentifier(transfer)] = transfer
        return transfer
    }

    /// A handle for an attempt, what it is set up for, and whether it is that already, as its last attempt has left it.
    private func takeHandle(
        for plan: TransferPlan, _ trust: ServerTrust?
    ) throws(HTTPSessionError) -> (handle: EasyHandle, setup: HandleSetup?, isSetUp: Bool) {
        if let index = idleHandles.lastIndex(where: { $0.setup?.fits(plan, trust: trust) == true }) {
            let idle = idleHandles.remove(at: index)
            return (idle.handle, idle.setup, true)
        }
        let setup = HandleSetup(plan, trust: trust)
        guard let idle = idleHandles.popLast() else { return (try EasyHandle(), setup, false) }
        if idle.setup != nil { reset(idle.handle) }
        return (idle.handle, setup, false)
    }

    /// Ends an attempt without a word to its receiver. Not from inside a callback.
    func cancel(_ transfer: CurlTransfer) {
        guard transfers.removeValue(forKey: ObjectIdentifier(transfer)) != nil else { return }
        curl_multi_remove_handle(multi, transfer.handle.raw)
        retire(transfer, isWhole: false)
    }

    /// Ends an attempt whose receiver has refused what came outside of libcurl's own turn. Not from inside a callback.
    func endRefused(_ transfer: CurlTransfer) {
        guard transfers.removeValue(forKey: ObjectIdentifier(transfer)) != nil else { return }
        curl_multi_remove_handle(multi, transfer.handle.raw)
        transfer.finish(CURLE_WRITE_ERROR)
        retire(transfer, isWhole: false)
    }

    /// Keeps a handle for another transfer, unless libcurl would refuse that one its buffer: 7.88 leaves the last one's behind after a
    /// look-up that failed, and where other streams of its connection go on. Nor is one kept that was given a `Host` field: 7.88 goes on
    /// to choose cookies by it, whatever host comes next. `isWhole`: the attempt went as it should, so that nothing of it needs to be
    /// undone before the next of its kind.
    private func retire(_ transfer: CurlTransfer, isWhole: Bool) {
        let handle = transfer.handle
        transfer.detach()
        // Else it would hold its task until then, and let go of it on this thread.
        if !surplus.waiting.isEmpty { surplus.waiting.removeAll { $0.transfer === transfer } }
        guard idleHandles.count < CurlEngine.maximumIdleHandles, !transfer.plan.namesHost,
            (try? handle.set(CURLOPT_BUFFERSIZE, transfer.plan.bufferSize)) != nil
        else {
            return handle.cleanUp()
        }
        let setup = isWhole && !transfer.ending.forbidsReuse ? transfer.setup : nil
        if setup == nil { reset(handle) }
        idleHandles.append((handle, setup))
    }

    /// The connections, cookies and looked-up names belong to the multi handle and the share; options and callbacks end here.
    private func reset(_ handle: EasyHandle) {
        // libcurl 7.88 forgets the list of cookie files in a reset, without freeing it.
        try? handle.set(CURLOPT_COOKIEFILE, nil)
        curl_easy_reset(handle.raw)
    }

    // MARK: The turn

    /// Waits until a socket is ready, libcurl's own time has come, `deadline` has passed or the waker was woken; lets libcurl read
    /// and write what is ready. `awake` is called between.
    func wait(until deadline: Int64?, idleness: () -> SessionIdleness, awake: () -> Void) {
        // What deadlines and the queue have changed since the turn's own time for that.
        let hasSettled = settlePauses()
        let everyReady = loop.wait(until: hasSettled ? 0 : min(deadline ?? .max, curlDeadline ?? .max, surplus.deadline))
        awake()
        for ready in everyReady {
            let socket = curl_socket_t(truncatingIfNeeded: ready.token)
            var mask: Int32 = 0
            if ready.isReadable { mask |= CURL_CSELECT_IN }
            if ready.isWritable { mask |= CURL_CSELECT_OUT }
            if ready.isBroken { mask |= CURL_CSELECT_ERR }
            drive(socket, mask)
        }
    }

    /// Lets libcurl do what is due, and tells the receivers of the transfers that have ended.
    func advance() {
        if !surplus.waiting.isEmpty { addQuiet() }
        // A receiver that hears of an end may begin another transfer, which is due at once.
        while true {
            if let due = curlDeadline, due == 0 || due <= MonotonicClock.now() {
                curlDeadline = nil
                drive(netwatch_CURL_SOCKET_TIMEOUT, 0)
            }
            let hasSettled = settlePauses()
            guard finishTransfers() || hasSettled else { return }
        }
    }

    private func addQuiet() {
        for transfer in takeQuiet(now: MonotonicClock.now()) where transfers[ObjectIdentifier(transfer)] != nil {
            do throws(HTTPSessionError) { try CurlFailure.check(curl_multi_add_handle(multi, transfer.handle.raw)) } catch {
                transfer.refuse(with: error)
                endRefused(transfer)
            }
        }
    }

    /// Its pauses have changed: libcurl is told when it has read and written what the last change made due.
    func settlesLater(_ transfer: CurlTransfer) { unsettled.append(transfer) }

    /// - Returns: whether libcurl was told anything.
    private func settlePauses() -> Bool {
        guard !unsettled.isEmpty else { return false }
        var changed: [CurlTransfer] = []
        swap(&changed, &unsettled)
        for transfer in changed where transfers[ObjectIdentifier(transfer)] != nil {
            if !transfer.settlePauses() { endRefused(transfer) }
        }
        return true
    }

    private func drive(_ socket: curl_socket_t, _ mask: Int32) {
        var running: Int32 = 0
        TLSReading.begins()
        let code = curl_multi_socket_action(multi, socket, mask, &running)
        TLSReading.ends()
        // A socket that was closed since it was ready is none of libcurl's any more.
        guard code != CURLM_BAD_SOCKET else { return }
        do throws(HTTPSessionError) { try CurlFailure.check(code) } catch { endAll(with: error) }
    }

    /// libcurl does not say which transfer it cannot drive any more; none would hear of it but by its timeout.
    private func endAll(with error: HTTPSessionError) {
        for transfer in Array(transfers.values) {
            transfer.refuse(with: error)
            endRefused(transfer)
        }
    }

    /// - Returns: whether one has ended.
    private func finishTransfers() -> Bool {
        var hasEnded = false
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let raw = message.pointee.easy_handle,
                let transfer = CurlTrampolines.transfer(of: raw)
            else { continue }
            let code = netwatch_curl_message_result(message)
            transfers.removeValue(forKey: ObjectIdentifier(transfer))
            if code == CURLE_OK { noteConnection(of: transfer) }
            curl_multi_remove_handle(multi, raw)
            transfer.finish(code)
            retire(transfer, isWhole: code == CURLE_OK)
            hasEnded = true
        }
        for transfer in answered where transfers[ObjectIdentifier(transfer)] != nil && transfer.isAnswered {
            transfers.removeValue(forKey: ObjectIdentifier(transfer))
            curl_multi_remove_handle(multi, transfer.handle.raw)
            transfer.finish(CURLE_OK)
            retire(transfer, isWhole: false)
            hasEnded = true
        }
        answered.removeAll()
        for transfer in unwatched where transfers[ObjectIdentifier(transfer)] != nil {
            endRefused(transfer)
            hasEnded = true
        }
        unwatched.removeAll()
        return hasEnded
    }

    /// libcurl 7.88 reads nothing more of an HTTP/2 stream whose answer is whole by its length, neither that the server takes more nor
    /// that it wants no more, and goes round without a pause until the request is out. What is not out when its turn is over does not go.
    func noteAnswered(_ transfer: CurlTransfer) { answered.append(transfer) }

    // MARK: Called by libcurl

    func watch(_ socket: curl_socket_t, for what: Int32, isKnown: Bool, by transfer: () -> CurlTransfer?) {
        let interest: EventLoop.Interest
        switch what {
        case CURL_POLL_IN: interest = .read
        case CURL_POLL_OUT: interest = .write
        case CURL_POLL_INOUT: interest = [.read, .write]
        case CURL_POLL_REMOVE: return loop.remove(socket)
        default: return
        }
        let token = UInt64(UInt32(bitPattern: socket))
        // Any pointer but null: it comes back with the next call for this socket.
        if !isKnown { curl_multi_assign(multi, socket, share) }
        do {
            if isKnown {
                try loop.change(socket, interest: interest, token: token)
            } else {
                try loop.add(socket, interest: interest, token: token)
            }
        } catch {
            // Out of memory, or of what the kernel lets be watched (epoll_ctl(2)).
            guard let transfer = transfer() else { return }
            transfer.refuse(
                with: HTTPSessionError(
                    .transferFailed, "\(error.call) failed", context: .init(systemError: error.errno)))
            unwatched.append(transfer)
        }
    }

    func setTimer(milliseconds: Int) {
        // 0 is long ago: most of what libcurl asks for is due at once.
        curlDeadline = milliseconds < 0 ? nil : milliseconds == 0 ? 0 : MonotonicClock.now() + Int64(milliseconds) * 1_000_000
    }
}
