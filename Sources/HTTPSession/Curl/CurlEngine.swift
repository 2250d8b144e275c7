internal import CCurl
internal import Certificates
internal import ContentCodings
internal import EventLoop
internal import Glibc

/// The engine of libcurl: one multi handle on one loop (libcurl-multi(3), the socket interface). Everything here belongs to the loop's thread.
///
/// Each session has its own engine, with its own connections, TLS sessions and easy handles. None of them is ever used under another
/// session's policy. (Measured on libcurl 7.88: an easy handle that has been reset resumes its TLS session in another multi handle, without
/// another verification.)
final class CurlEngine: TransferEngine {
    /// The number of idle easy handles that are kept for later transfers.
    static let maximumIdleHandles = 128

    /// An easy handle without a transfer.
    private struct IdleHandle {
        let handle: EasyHandle
        /// The options that are set; `nil` after a reset.
        let setup: HandleSetup?
        /// Whether libcurl keeps the handle's receive buffer. It then refuses to set the size, as every other setup does.
        let hasBuffer: Bool
    }
    /// The event loop. libcurl's connections reference it, so the multi handle is cleaned up first (``close()``).
    let watched: WatchedSockets
    let multi: UnsafeMutableRawPointer
    /// The share of HSTS.
    private let share: UnsafeMutableRawPointer
    /// A handle that makes no transfers. It writes the HSTS file when it is cleaned up.
    private let storeHandle: EasyHandle
    let network: EngineConfiguration
    private let overrides: LineList
    /// The number of changes of the network, after each of which a handle sets the host overrides again.
    private var overridesVersion = 0
    /// The header line that requests compressed content.
    let codingLines: LineList
    // Unchecked, as below: every mutation of these returns before a call to libcurl or a receiver, which could reenter the engine.
    @exclusivity(unchecked) private var idleHandles: [IdleHandle] = []
    let sockets = IdleSockets()
    // Unchecked: as above.
    @exclusivity(unchecked) private var surplus = SurplusRecord()
    /// The transfers that have, or are about to have, a complete response while they still send.
    private var answered: [CurlTransfer] = []
    /// The transfers whose socket could not be added to the loop.
    private var unwatched: [CurlTransfer] = []
    /// The transfers whose pauses have changed.
    private var unsettled: [CurlTransfer] = []
    /// The number of connections beyond a host's limit.
    private var (multiplexedConnections, yieldedConnections) = (0, 0)
    private var isClosed = false
    // Unchecked: as above.
    @exclusivity(unchecked) private var transfers: [ObjectIdentifier: CurlTransfer] = [:]
    /// The time at which libcurl wants to be called although no socket is ready, on the monotonic clock.
    private var curlDeadline: Int64?

    var waker: Waker { watched.waker }

    /// An engine on the calling thread.
    init(_ network: EngineConfiguration) throws(HTTPSessionError) {
        guard CurlLibrary.version >= CurlLibrary.minimumVersion else {
            throw HTTPSessionError(.invalidConfiguration, "libcurl \(CurlLibrary.versionText) is too old: 7.88 is needed")
        }
        do { watched = try WatchedSockets() } catch {
            throw CurlEngine.refusal(error)
        }
        overrides = try LineList(network.overrideLines)
        codingLines = try LineList(["Accept-Encoding: \(ContentDecoder.supported.joined(separator: ", "))"])
        storeHandle = try EasyHandle()
        guard let multi = curl_multi_init(), let share = curl_share_init() else {
            throw HTTPSessionError(.transferFailed, "curl_multi_init: no memory")
        }
        self.multi = multi
        self.share = share
        self.network = network
        try CurlTrampolines.install(on: multi, for: self)
        try setLimits()
        try openStore()
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

    /// Adds one connection per host, once a host speaks HTTP/2. The queue then admits its requests beside transfers that use a connection each.
    /// Without the additional connection, an admitted request could wait in libcurl while its timeout runs.
    func allowMultiplexing() {
        guard multiplexedConnections == 0 else { return }
        multiplexedConnections = 1
        raiseLimit()
    }

    func allowConnections(beyondLimit count: Int) {
        yieldedConnections = count
        raiseLimit()
    }

    private func raiseLimit() {
        guard let limit = network.maximumConnectionsPerHost else { return }
        try? set(CURLMOPT_MAX_HOST_CONNECTIONS, limit + multiplexedConnections + yieldedConnections)
    }

    /// Marks idle connections as stale, because they may be dead after a change of the network. libcurl before 8.16 cannot be notified, so each
    /// connection is also checked before reuse.
    func networkChanged() {
        sockets.markAllStale()
        overridesVersion += 1
        guard CurlLibrary.hasNetworkChanged else { return }
        try? set(CurlLibrary.networkChangedOption, CurlLibrary.clearsConnectionsAndNames)
    }

    deinit { _ = close() }

    /// Ends every transfer without a call to its receiver, and frees libcurl's handles. libcurl writes the HSTS file when the handle with its name is
    /// cleaned up. Called on the loop's thread.
    ///
    /// - Returns: The objects of the transfers that may be the user's.
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
        defer { (transfers, answered, unwatched, unsettled, surplus.waiting) = ([:], [], [], [], []) }
        let left = transfers.values + answered + unwatched + unsettled + surplus.waiting.map(\.transfer)
        return left.flatMap { [$0.receiver.userObjects, $0.trust as any Sendable] }
    }

    // MARK: Transfers

    /// Begins an attempt. Its receiver is not called before ``advance()``.
    func start(
        _ plan: TransferPlan, for receiver: any TransferReceiver, trust: ServerTrust?, now: Int64
    ) throws(HTTPSessionError) -> any Transfer {
        let (handle, setup, isSetUp) = try acquireHandle(for: plan, trust)
        let transfer: CurlTransfer
        do throws(HTTPSessionError) {
            transfer = try CurlTransfer(
                plan, network, receiver: receiver, handle: handle, engine: self, trust: trust, setup: setup, now: now)
            if !isSetUp {
                try transfer.setUp(network)
                try attachStore(to: handle)
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

    /// A handle for an attempt, its setup, and whether the handle still has this setup from an earlier attempt.
    private func acquireHandle(
        for plan: TransferPlan, _ trust: ServerTrust?
    ) throws(HTTPSessionError) -> (handle: EasyHandle, setup: HandleSetup?, isSetUp: Bool) {
        if let index = idleHandles.lastIndex(where: { $0.setup?.fits(plan, trust: trust) == true }) {
            let idle = idleHandles.remove(at: index)
            return (idle.handle, idle.setup, true)
        }
        let setup = HandleSetup(plan, trust: trust)
        guard let index = idleHandles.lastIndex(where: { !$0.hasBuffer }) else { return (try EasyHandle(), setup, false) }
        let idle = idleHandles.remove(at: index)
        if idle.setup != nil { idle.handle.reset() }
        return (idle.handle, setup, false)
    }

    /// Ends an attempt without a call to its receiver. Must not be called inside a callback.
    func cancel(_ transfer: CurlTransfer) {
        guard transfers.removeValue(forKey: ObjectIdentifier(transfer)) != nil else { return }
        curl_multi_remove_handle(multi, transfer.handle.raw)
        retire(transfer, isComplete: false)
    }

    /// Ends an attempt with the error of its receiver or of the engine (``CurlTransfer/refusal``). Must not be called inside a callback.
    func endRefused(_ transfer: CurlTransfer) {
        guard transfers.removeValue(forKey: ObjectIdentifier(transfer)) != nil else { return }
        curl_multi_remove_handle(multi, transfer.handle.raw)
        transfer.finish(CURLE_WRITE_ERROR)
        retire(transfer, isComplete: false)
    }

    /// Keeps a handle for another transfer.
    ///
    /// libcurl 7.88 keeps the buffers of a handle after a failed lookup, and if other streams of the connection continue (lib/multi.c, `multi_done`). It
    /// then refuses to set their size. Such a handle is kept for the same setup if its receive buffer is small, and no bytes were delayed by a pause.
    ///
    /// - Parameters:
    ///   - transfer: The attempt.
    ///   - isComplete: Whether the attempt succeeded, so that the next attempt of its kind can use the handle without a reset.
    private func retire(_ transfer: CurlTransfer, isComplete: Bool) {
        let handle = transfer.handle
        transfer.detach()
        // Otherwise the entry would keep the task until the end of the wait, and release it on this thread.
        if !surplus.waiting.isEmpty { surplus.waiting.removeAll { $0.transfer === transfer } }
        let setup = isComplete && !transfer.ending.forbidsReuse ? transfer.setup : nil
        let hasBuffer = !handle.accepts(bufferSize: transfer.plan.bufferSize)
        if hasBuffer {
            guard setup != nil, transfer.refusal == nil, transfer.plan.bufferSize <= 64 << 10, !transfer.pauses.hasDelayedBytes
            else { return handle.cleanUp() }
        } else if setup == nil {
            handle.reset()
        }
        // The handle that has been idle for the longest time: its setup may no longer be used.
        if idleHandles.count == CurlEngine.maximumIdleHandles { idleHandles.removeFirst().handle.cleanUp() }
        idleHandles.append(IdleHandle(handle: handle, setup: setup, hasBuffer: hasBuffer))
    }

    // MARK: The turn

    /// Waits until a socket is ready, libcurl's timer or `deadline` has passed, or the waker was woken. Then calls `awake`, and lets libcurl read and
    /// write on the sockets that are ready.
    func wait(until deadline: Int64?, idleness: () -> SessionIdleness, hasCommands: () -> Bool, awake: () -> Void) {
        // Deadlines and the queue may have changed pauses since advance().
        let hasSettled = settlePauses()
        let everyReady = watched.wait(until: hasSettled ? 0 : min(deadline ?? .max, curlDeadline ?? .max, surplus.deadline))
        awake()
        for ready in everyReady {
            let socket = watched.socket(of: ready)
            guard watched.isInUse(socket) else { continue }
            var mask: Int32 = 0
            if ready.isReadable { mask |= CURL_CSELECT_IN }
            // libcurl reads before it writes. So it finds a response that has arrived since the socket was found ready, before a write to a connection
            // that the server has reset fails.
            if ready.isWritable { mask |= CURL_CSELECT_OUT | CURL_CSELECT_IN }
            if ready.isBroken { mask |= CURL_CSELECT_ERR }
            drive(socket, mask)
        }
    }

    /// Lets libcurl perform what is due, and reports the transfers that have ended to their receivers.
    func advance() {
        if !surplus.waiting.isEmpty { addQuiet() }
        // A receiver may begin another transfer when one has ended, which is due at once.
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
        for transfer in removeQuiet(now: MonotonicClock.now()) where transfers[ObjectIdentifier(transfer)] != nil {
            do throws(HTTPSessionError) { try CurlFailure.check(curl_multi_add_handle(multi, transfer.handle.raw)) } catch {
                transfer.refuse(with: error)
                endRefused(transfer)
            }
        }
    }

    /// Schedules a change of libcurl's pause bits, which waits until libcurl has read and written what the last change made possible.
    func settleLater(_ transfer: CurlTransfer) { unsettled.append(transfer) }

    /// - Returns: Whether any transfer's pauses had changed.
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
        // The socket was closed after it became ready.
        guard code != CURLM_BAD_SOCKET else { return }
        do throws(HTTPSessionError) { try CurlFailure.check(code) } catch { endAll(with: error) }
    }

    /// Ends all transfers, because libcurl does not say which one has failed. Otherwise each would end by its timeout only.
    private func endAll(with error: HTTPSessionError) {
        for transfer in Array(transfers.values) {
            transfer.refuse(with: error)
            endRefused(transfer)
        }
    }

    /// - Returns: Whether a transfer has ended.
    private func finishTransfers() -> Bool {
        var hasEnded = false
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let raw = message.pointee.easy_handle,
                let transfer = CurlTrampolines.transfer(of: raw)
            else { continue }
            let code = netwatch_curl_message_result(message)
            transfers.removeValue(forKey: ObjectIdentifier(transfer))
            if code == CURLE_OK { recordConnection(of: transfer) }
            curl_multi_remove_handle(multi, raw)
            transfer.finish(code)
            retire(transfer, isComplete: code == CURLE_OK)
            hasEnded = true
        }
        for transfer in answered where transfers[ObjectIdentifier(transfer)] != nil && transfer.isAnswered {
            transfers.removeValue(forKey: ObjectIdentifier(transfer))
            curl_multi_remove_handle(multi, transfer.handle.raw)
            transfer.finish(CURLE_OK)
            retire(transfer, isComplete: false)
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

    /// Ends a transfer with a complete response at the end of the turn, although its request may not be sent completely.
    ///
    /// libcurl 7.88 stops reading an HTTP/2 stream when the response is complete by its length. It sees neither window updates nor a reset any more,
    /// and loops without a pause until the request is sent.
    func recordAnswered(_ transfer: CurlTransfer) { answered.append(transfer) }

    // MARK: Called by libcurl

    func watch(_ socket: curl_socket_t, for what: Int32, by transfer: () -> CurlTransfer?) {
        let interest: EventLoop.Interest
        switch what {
        case CURL_POLL_IN: interest = .read
        case CURL_POLL_OUT: interest = .write
        case CURL_POLL_INOUT: interest = [.read, .write]
        case CURL_POLL_REMOVE: return watched.release(socket)
        default: return
        }
        do throws(LoopError) { try watched.watch(socket, for: interest) } catch {
            // Out of memory, or beyond the limit of watches per user (epoll_ctl(2)).
            guard let transfer = transfer() else { return }
            transfer.refuse(with: CurlEngine.refusal(error))
            unwatched.append(transfer)
        }
    }

    /// The error of a system call of the loop.
    static func refusal(_ error: LoopError) -> HTTPSessionError {
        HTTPSessionError(.transferFailed, "\(error.call) failed", context: .init(systemError: error.errno))
    }

    func setTimer(milliseconds: Int) {
        // 0 is a time in the past. Most timers of libcurl are due at once, and this avoids reading the clock.
        curlDeadline = milliseconds < 0 ? nil : milliseconds == 0 ? 0 : MonotonicClock.now() + Int64(milliseconds) * 1_000_000
    }

    // MARK: - Servers that send unsolicited bytes

    /// Records that a server has sent unsolicited bytes.
    func recordSurplus(of server: SurplusServers.Server) { surplus.servers.insert(server, now: MonotonicClock.now()) }

    func isSurplusServer(_ server: SurplusServers.Server) -> Bool {
        !surplus.servers.isEmpty && surplus.servers.contains(server, now: MonotonicClock.now())
    }

    /// Records the connection of a successful exchange, whose handle is still in the multi handle.
    private func recordConnection(of transfer: CurlTransfer) {
        guard let connection = transfer.connectionInUse?.connection else { return }
        sockets.recordEnd(on: connection)
        guard transfer.reused == nil else { return transfer.lookBehindResponse() }
        guard !transfer.ending.isSecure, !transfer.madeSockets.isEmpty, transfer.ending.keepsConnection else { return }
        surplus.quietPeriods.begin(
            with: SurplusServers.Server(connection), url: transfer.plan.url, now: MonotonicClock.now())
    }

    /// Whether an attempt waits for the end of its server's quiet period; it is added to the multi handle then.
    private func waitsForQuiet(_ transfer: CurlTransfer, now: Int64) -> Bool {
        guard !transfer.plan.needsFreshConnection, !transfer.plan.isSecure,
            let end = surplus.quietPeriods.end(for: transfer.plan.url, now: now)
        else { return false }
        surplus.waiting.append((transfer, end))
        return true
    }

    /// Removes and returns the attempts whose wait has ended.
    private func removeQuiet(now: Int64) -> [CurlTransfer] {
        guard !surplus.waiting.isEmpty, surplus.deadline <= now else { return [] }
        let due = surplus.waiting.filter { $0.end <= now }.map(\.transfer)
        surplus.waiting.removeAll { $0.end <= now }
        return due
    }

    // MARK: - Strict-Transport-Security (HSTS) and host overrides; the session's own store has the cookies

    private func openStore() throws(HTTPSessionError) {
        if network.enforcesHSTS {
            // One thread uses the share, so it needs no lock functions. Every transfer of a share with HSTS obeys HSTS.
            try CurlFailure.check(
                netwatch_curl_share_set_long(
                    share, Int32(bitPattern: CURLSHOPT_SHARE.rawValue), Int(CURL_LOCK_DATA_HSTS.rawValue)))
        }
        try attachStore(to: storeHandle)
        guard let path = network.hstsPath, network.enforcesHSTS else { return }
        try storeHandle.set(CURLOPT_HSTS, path)
        // libcurl reads the file when a transfer begins, but this handle makes no transfers. A transfer that fails before any network access is
        // enough.
        try storeHandle.set(CURLOPT_URL, "none://none/")
        let code = curl_easy_perform(storeHandle.raw)
        if code != CURLE_UNSUPPORTED_PROTOCOL { try CurlFailure.check(code) }
    }

    private func attachStore(to handle: EasyHandle) throws(HTTPSessionError) {
        try handle.set(CURLOPT_SHARE, pointer: share)
        if network.enforcesHSTS { try handle.set(CURLOPT_HSTS_CTRL, netwatch_CURLHSTS_ENABLE) }
    }

    /// Sets the host overrides on a handle that has not loaded them since the last change of the network.
    ///
    /// libcurl writes them into the multi handle's cache of names when the next transfer of the handle begins, once for each setting. libcurl 8.16 and
    /// newer remove them from there with all other names (CURLMOPT_NETWORK_CHANGED), so a kept handle sets them again.
    func applyOverrides(to handle: EasyHandle) throws(HTTPSessionError) {
        guard let lines = overrides.raw, handle.overridesVersion != overridesVersion else { return }
        try handle.set(CURLOPT_RESOLVE, pointer: lines)
        handle.overridesVersion = overridesVersion
    }
}

/// The record of servers that send unsolicited bytes, and of the attempts that wait because of them.
private struct SurplusRecord {
    var servers = SurplusServers()
    var quietPeriods = QuietPeriods()
    /// The attempts that have begun and wait for the end of a quiet period, outside of the multi handle.
    var waiting: [(transfer: CurlTransfer, end: Int64)] = []
    /// The end of the earliest wait.
    var deadline: Int64 { waiting.lazy.map(\.end).min() ?? .max }
}

/// The options of an easy handle that stay set between attempts. Every attempt sets the others: the URL, the fields, the ages of connections and
/// lookups, and its receiver.
///
/// Most attempts of a session have the same options as an earlier one, and use its handle unchanged. For others a handle is reset or made, so
/// that no option of an earlier attempt remains.
final class HandleSetup {
    private let plan: TransferPlan
    private let contexts: TrustParameters.SessionContexts?

    /// The setup of an attempt; `nil` if libcurl keeps more of it than options: the nonce of a login, or the position in a body.
    init?(_ plan: TransferPlan, trust: ServerTrust?) {
        guard Self.isLasting(plan) else { return nil }
        self.plan = plan.withoutAttemptDetails
        contexts = trust?.parameters.sessionContexts
    }

    private static func isLasting(_ plan: TransferPlan) -> Bool {
        plan.login == nil && plan.proxyLogin == nil && plan.body == .none
    }

    /// Whether the handle can be used for this attempt without a reset.
    func fits(_ other: TransferPlan, trust: ServerTrust?) -> Bool {
        Self.isLasting(other) && plan.isSetUpLike(other) && contexts == trust?.parameters.sessionContexts
    }
}
