import Console
import EventLoop
import FoundationEssentials
import Glibc
import HTTPSession
import Reachability

/// Stores the reports of one heartbeat, and delivers them after those of earlier runs that wait.
///
/// Two threads do the work: one stores, so that a report is safe while the other one still waits for the service with an earlier one. The main
/// thread, which passes on the output of a command, waits for neither.
final class ReportCourier: Sendable {
    struct Settings: Sendable {
        var name: String
        var service: HeartbeatService
        /// The directory of reports that wait; `nil` if the environment names none.
        var directory: String?
        /// The environment of the program.
        var environment: [String: String]
        /// Reads the token; `nil` for none. It may wait for a pipe.
        var token: @Sendable () throws(Failure) -> String?
        /// Makes the configuration of the session. It may read files.
        var session: @Sendable () throws(Failure) -> SessionConfiguration
    }

    /// A session that is ready to send, with the token.
    private struct Sender: Sendable {
        var session: HTTPSessionManager
        var token: String?
        /// The service for people.
        var place: String
    }

    /// A report of this run.
    private struct Own: Sendable {
        enum Fate { case delivered, refused }

        var report: HeartbeatReport
        /// Its file; `nil` if it could not be stored.
        var stored: SpooledReport?
        var happened: Moment
        /// What has become of it; `nil` until it is delivered or refused.
        var fate: Fate?
    }

    /// A report that is to be sent.
    private struct Entry {
        var report: HeartbeatReport
        /// Its file; `nil` if it could not be stored.
        var stored: SpooledReport?
        /// Its index among the reports of this run; `nil` for one of another run.
        var own: Int?
    }

    private struct State: Sendable {
        var own: [Own] = []
        var spool: ReportSpool?
        /// Why reports could not be stored.
        var storeFailure: Failure?
        var sender: Sender?
        /// Reports whose file could not be removed after they were sent.
        var sent: [SpooledReport] = []
        var summary = DeliverySummary()
        /// The number of reports that are being stored or delivered.
        var openCount = 0
        var isCancelled = false
    }

    /// A report that is sent within this time after it has happened has no time of its own, so that a wrong clock of this machine does no harm.
    private static let punctuality = Duration.seconds(1)
    /// The time between two attempts to take the lock that another run has, in nanoseconds.
    private static let lockInterval: Int64 = 50_000_000
    private static let interruption = "interrupted"
    /// The longest time for a connection within one attempt.
    private static let connectTimeout = Duration.seconds(5)

    private let settings: Settings
    private let service: (identity: String, key: String)
    private let state = Locked(State())
    private let storer: Worker
    private let deliverer: Worker
    /// Wakes the thread that delivers: a response has arrived, or nothing more is to be sent.
    private let waker: Waker
    /// Wakes the main thread when ``isIdle`` may have become true.
    private let main: Waker

    /// Starts the threads. They wake `main` when a report has been handled.
    ///
    /// - Throws: ``Failure`` with code 71 if the system has no descriptor or thread left.
    init(_ settings: Settings, waking main: Waker) throws(Failure) {
        self.settings = settings
        self.main = main
        let identity = settings.service.identity
        // Without OpenSSL's digest, reports to all services have the same key.
        let digest = ContentDigest.sha256(of: Data(identity.utf8))?.hexadecimal ?? String(repeating: "0", count: 16)
        service = (identity, String(digest.prefix(16)))
        waker = try MainLoop.makeWaker()
        do throws(LoopThread.StartError) {
            storer = try Worker(name: "netwatch-store")
            deliverer = try Worker(name: "netwatch-send")
        } catch {
            guard case .system(let error) = error else { throw Failure(ExitCode.system, "no thread can be started: \(error)") }
            throw Failure(systemCall: error.call, error.errno)
        }
    }

    // MARK: Called by the main thread

    /// Stores a report, and then delivers it with all that wait, until the deadline in nanoseconds on the monotonic clock.
    func submit(_ report: HeartbeatReport, happened: Moment, until deadline: Int64) {
        state.withLock { $0.openCount += 1 }
        storer.run { [self] in
            let index = store(report, happened)
            deliverer.run { [self] in
                deliver(index, until: deadline)
                state.withLock { $0.openCount -= 1 }
                main.wake()
            }
        }
    }

    /// Whether all reports that were submitted are handled.
    var isIdle: Bool { state.withLock { $0.openCount == 0 } }

    /// What has become of the reports so far.
    var summary: DeliverySummary { state.withLock { $0.summary } }

    /// Ends the present delivery and all later ones. Reports that are stored wait for the next run.
    func cancel() {
        state.withLock { $0.isCancelled = true }
        waker.wake()
    }

    /// Ends the session, and calls `done` when it has ended. Its thread must not run while the process exits.
    func close(_ done: @escaping @Sendable () -> Void) {
        deliverer.run { [self] in
            guard let session = state.withLock({ $0.sender?.session }) else { return done() }
            session.cancel()
            Task {
                await session.waitUntilEnded()
                done()
            }
        }
    }

    // MARK: Storing

    /// Stores a report. - Returns: Its index among those of this run.
    private func store(_ report: HeartbeatReport, _ happened: Moment) -> Int {
        let stored = stored(report)
        return state.withLock { state in
            state.own.append(Own(report: report, stored: stored, happened: happened))
            return state.own.count - 1
        }
    }

    private func stored(_ report: HeartbeatReport) -> SpooledReport? {
        do throws(Failure) {
            let spool = try openSpool()
            return try spool.store(report, for: service, number: .random(in: 0 ... .max), note: note)
        } catch {
            state.withLock { $0.storeFailure = error }
            // Somebody may have planted it: that is reported even if the service receives all reports.
            if error.code == ExitCode.notPermitted { note(error.message) }
            return nil
        }
    }

    private func openSpool() throws(Failure) -> ReportSpool {
        if let spool = state.withLock({ $0.spool }) { return spool }
        guard let directory = settings.directory else {
            throw Failure(ExitCode.cannotCreate, "neither XDG_STATE_HOME nor HOME names a directory; name one with --state")
        }
        let spool = try ReportSpool(directory)
        state.withLock { $0.spool = spool }
        return spool
    }

    @Sendable private func note(_ line: String) { state.withLock { $0.summary.note(line) } }

    // MARK: Delivering

    /// Delivers all reports that wait, and sums up what has become of this one.
    private func deliver(_ index: Int, until deadline: Int64) {
        let obstacle = obstacle(until: deadline)
        // There may be room on the disk again.
        for (index, own) in state.withLock({ Array($0.own.enumerated()) }) where own.stored == nil && own.fate == nil {
            let stored = stored(own.report)
            state.withLock { $0.own[index].stored = stored }
        }
        let waiting = state.withLock { $0.spool }?.waiting(settings.name, service.key) ?? []
        state.withLock { state in
            let own = state.own[index]
            // A report that neither waits nor was sent here was sent by another run.
            let isGone = own.stored.map { !waiting.contains($0) } ?? false
            state.summary.isDelivered = own.fate == .delivered || own.fate == nil && isGone
            state.summary.obstacle = obstacle
            state.summary.waitingCount = waiting.count { !state.sent.contains($0) }
            let lost = state.own.count { $0.stored == nil && $0.fate == nil }
            state.summary.lost = lost > 0 ? (lost, state.storeFailure?.message ?? "") : nil
        }
    }

    /// Sends all reports. - Returns: Why some could not be sent; `nil` if none is left.
    private func obstacle(until deadline: Int64) -> String? {
        var spool = state.withLock { $0.spool }
        var (lock, lockFailure): (ReportSpool.Lock?, Failure?)
        if let opened = spool {
            do throws(Failure) {
                lock = try takeLock(opened, until: deadline)
                if lock == nil { return isCancelled ? Self.interruption : "another run was delivering reports" }
            } catch {
                // Without the lock, another run may send what waits. Only what is not stored is sent.
                (spool, lockFailure) = (nil, error)
            }
        }
        defer { withExtendedLifetime(lock) {} }
        // Whoever has the lock also sends what other runs store meanwhile.
        while let entry = next(spool) {
            let sender: Sender
            do throws(Failure) { sender = try makeSender() } catch { return error.message }
            switch send(entry, sender, until: deadline) {
            case .delivered: end(entry, .delivered, spool)
            case .refused(let reason):
                state.withLock { $0.summary.refuse(reason) }
                end(entry, .refused, spool)
            case .undelivered(let reason): return reason
            }
        }
        return lockFailure?.message
    }

    /// Returns the oldest report that is not sent.
    private func next(_ spool: ReportSpool?) -> Entry? {
        let (own, sent) = state.withLock { ($0.own, $0.sent) }
        let unstored = own.indices.first { own[$0].stored == nil && own[$0].fate == nil }
        for stored in spool?.waiting(settings.name, service.key) ?? [] where !sent.contains(stored) {
            if let unstored, own[unstored].report.time < stored.time { break }
            guard let report = spool?.read(stored, note: note) else { continue }
            return Entry(report: report, stored: stored, own: own.firstIndex { $0.stored == stored })
        }
        return unstored.map { Entry(report: own[$0].report, stored: nil, own: $0) }
    }

    private func end(_ entry: Entry, _ fate: Own.Fate, _ spool: ReportSpool?) {
        let number = entry.stored.flatMap { spool?.remove($0) } ?? 0
        state.withLock { state in
            if let own = entry.own { state.own[own].fate = fate }
            if number != 0, let stored = entry.stored { state.sent.append(stored) }
        }
        if number != 0, let stored = entry.stored {
            note("'\(stored.file)' was sent, and cannot be removed: \(errorText(number)); the next run sends it again")
        }
    }

    private var isCancelled: Bool { state.withLock { $0.isCancelled } }

    private func takeLock(_ spool: ReportSpool, until deadline: Int64) throws(Failure) -> ReportSpool.Lock? {
        while true {
            if let lock = try spool.lock(settings.name, service.key) { return lock }
            guard !isCancelled, MonotonicClock.now() < deadline else { return nil }
            wait(until: min(deadline, MonotonicClock.now() + Self.lockInterval))
        }
    }

    private func wait(until deadline: Int64?) {
        var polling = Polling()
        _ = polling.add(waker.descriptor, Int32(POLLIN))
        polling.wait(until: deadline)
        waker.acknowledge()
    }

    // MARK: Sending

    /// Returns the sender. A failure is not kept: a token may be there when a long command has ended.
    private func makeSender() throws(Failure) -> Sender {
        if let sender = state.withLock({ $0.sender }) { return sender }
        let token = try settings.token()
        var configuration = try settings.session()
        configuration.unixSocketPath = socket
        let place = settings.service.place(configuration.unixSocketPath)
        configuration.insecureHTTP = settings.service.isPlain ? .allowed : .refused
        var handlers = TransferHandlers()
        // Most redirects turn the report into a GET without its body.
        handlers.redirect = { _ in .refuse }
        do throws(HTTPSessionError) {
            let sender = Sender(
                session: try HTTPSessionManager(configuration: configuration, handlers: handlers), token: token,
                place: place)
            state.withLock { $0.sender = sender }
            return sender
        } catch {
            throw Failure(ExitCode.system, error.reason)
        }
    }

    /// The socket to connect to; `nil` for a URL.
    private var socket: String? {
        let candidates = settings.service.sockets(settings.environment)
        // A missing socket says that the other one is meant. Any other failure is for the request to report.
        return candidates.first { access($0, F_OK) == 0 } ?? candidates.first
    }

    private func send(_ entry: Entry, _ sender: Sender, until deadline: Int64) -> DeliveryResult {
        let now = Moment.now
        let remaining = Duration.nanoseconds(deadline - now.monotonicNanoseconds)
        guard !isCancelled else { return .undelivered(Self.interruption) }
        guard remaining >= .milliseconds(1) else { return .undelivered("the time of --timeout is over") }
        let happened = state.withLock { state in entry.own.map { state.own[$0].happened } }
        let isLate = happened.map { now.elapsed(since: $0) >= Self.punctuality } ?? true
        guard let url = settings.service.url(of: entry.report.target(isLate: isLate)) else {
            return .undelivered("the address of the service is not valid")
        }
        var request = TransferRequest(url: url, method: .post, body: .data(Data(entry.report.body.utf8)))
        request.headerFields[.contentType] = "text/plain; charset=utf-8"
        if let token = sender.token { request.headerFields[.authorization] = "Bearer \(token)" }
        // The same for all attempts of a report, also in later runs: a POST is retried only with this field.
        if let name = HTTPField.Name("Idempotency-Key") {
            let number = entry.stored?.number ?? UInt64(bitPattern: entry.report.time)
            request.headerFields[name] = "\"\(String(number, radix: 16))\""
        }
        request.options.resourceTimeout = remaining
        request.options.requestTimeout = remaining
        request.options.connectTimeout = min(remaining, Self.connectTimeout)
        request.options.retryPolicy = RetryPolicy(
            maximumRetries: nil, maximumDelay: .seconds(3), maximumRetryAfter: remaining,
            statusCodes: DeliveryResult.retriedStatuses)
        request.options.maximumResponseSize = 64 << 10
        request.options.handlesCookies = false
        return result(of: sender.session.dataTask(for: request), sender)
    }

    /// Waits for the end of a task, which its resource timeout limits.
    private func result(of task: TransferTask, _ sender: Sender) -> DeliveryResult {
        let answer = Locked<DeliveryResult?>(nil)
        Task { [waker] in
            let result: DeliveryResult
            do throws(HTTPSessionError) {
                let response = try await task.response
                result = DeliveryResult(
                    status: response.statusCode, phrase: response.head.reasonPhrase,
                    location: response.headerFields[.location], body: response.data, hasToken: sender.token != nil)
            } catch {
                result = DeliveryResult(error, at: sender.place)
            }
            answer.withLock { $0 = result }
            waker.wake()
        }
        while true {
            let isCancelled = isCancelled
            if let result = answer.withLock({ $0 }) {
                if isCancelled, case .undelivered = result { return .undelivered(Self.interruption) }
                return result
            }
            if isCancelled { task.cancel() }
            wait(until: nil)
        }
    }
}
