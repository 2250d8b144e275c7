import Console
import EventLoop
import FoundationEssentials
import Glibc
import Reachability
import Records

/// The parts of the service, from its start to its end: sockets, history, monitor, keeper and page.
///
/// The directory's lock is checked first, and then the sockets are opened, so that a service whose port is in use does not touch the history.
final class Service {
    private let sources: ConfigurationSources
    private let loaded: ConfigurationSources.Loaded
    private let environment: [String: String]
    private let manager: ServiceManager
    private let sockets: ServiceSockets
    private let history: OpenedHistory
    private let boards = BoardSource()
    private let heartbeats = HeartbeatDesk()
    private let events = EventFeed(of: Moment.now.milliseconds)
    /// Loads configurations, one after another.
    private let worker: Worker
    private let renders: RenderQueue
    private var running: Running?

    private struct Running {
        var session: MonitorSession
        var keeper: Keeper
        var web: WebServer
    }

    /// Opens the sockets and the history.
    init(_ loaded: ConfigurationSources.Loaded, _ sources: ConfigurationSources, usesNextPort: Bool) throws(Failure) {
        (self.loaded, self.sources, environment) = (loaded, sources, sources.environment)
        manager = ServiceManager(environment)
        let openFiles = DescriptorUse.currentLimit
        guard openFiles >= WebLimits.leastOpenFiles else {
            throw Failure(
                ExitCode.system,
                "the limit of open files is \(openFiles), but the service needs \(WebLimits.leastOpenFiles); raise it with 'ulimit -n'"
            )
        }
        try OpenedHistory.checkLock(loaded.configuration, environment)
        sockets = try ServiceSockets(
            loaded.configuration.listen, socket: loaded.configuration.socket, environment, usesNextPort: usesNextPort)
        history = try OpenedHistory(loaded.configuration, environment)
        do {
            worker = try Worker(name: "netwatch-config")
            renders = try RenderQueue()
        } catch { throw Failure(ExitCode.system, "a thread cannot be started: \(error)") }
    }

    /// Starts the service. `sink` receives its records.
    func start(_ sink: @escaping @Sendable (Record) -> Void) throws -> RecordStream.Source {
        let configuration = loaded.configuration
        let started = Moment.now
        let canary = configuration.canary.map { canary -> (Endpoint, ProbeSettings) in
            var settings = configuration.probes
            settings.http = canary.settings
            return (canary.endpoint, settings)
        }
        let targets = zip(configuration.targets.map(\.endpoint), loaded.settings).map { ($0, $1) } + [canary].compactMap { $0 }
        let intake = Intake(targets: targets.count)
        let session: MonitorSession
        var monitored = MonitorConfiguration()
        monitored.publishesMembers = true
        monitored.openIncidents = history.openIncidents
        monitored.heartbeats = history.heartbeats
        do throws(MonitorError) {
            session = try MonitorSession(monitored, targets: targets, sink: intake.put)
        } catch { throw Failure(error) }
        if session.isPolling { StandardError.reportPolling() }

        let encoder = RecordEncoder(header: header(session.identity))
        let outputs = Keeper.Outputs(
            sink: sink, events: events, encoder: encoder, boards: boards, heartbeats: heartbeats, notify: manager.notify)
        let keeper = try Keeper(
            history.takeParts(
                loaded, session: session, intake: intake, canary: canary == nil ? nil : TargetID(targets.count - 1),
                watchdogInterval: manager.watchdogInterval, started: started),
            outputs)
        history.reportRecording { keeper.recordingChanged($0) }
        let names = sockets.hosts + configuration.allowedHosts
        let web = WebServer(
            content(session.identity, PresentEvidence(session, lastProbe: intake.lastProbe), keeper), names: names)
        try web.start(sockets.all)
        running = Running(session: session, keeper: keeper, web: web)
        StandardError.note("the page is at http://\(sockets.address)/")
        return RecordStream.Source(identity: session.identity) { [self] in stop() }
    }

    /// Loads the configuration again. Standard error receives the result.
    func reload() {
        guard let keeper = running?.keeper else { return }
        Self.reload(.signal, sources, keeper, manager, on: worker) { _ in }
    }

    private static func reload(
        _ request: ReloadGuard.Request, _ sources: ConfigurationSources, _ keeper: Keeper, _ manager: ServiceManager,
        on worker: Worker, _ done: @escaping @Sendable (ReloadOutcome) -> Void
    ) {
        let finish: @Sendable (ReloadOutcome) -> Void = { outcome in
            manager.notify(.ready(status: outcome.sentence))
            // Each attempt has its line, whether a signal or a request asked for it.
            StandardError.note(outcome.sentence)
            done(outcome)
        }
        worker.run {
            manager.notify(.reloading(monotonicMicroseconds: MonotonicClock.now() / 1_000))
            let loaded = sources.load()
            guard let problem = loaded.problems.first else {
                let next = KeeperLoop.Loaded(configuration: loaded.configuration, settings: loaded.settings)
                return keeper.reload(
                    .init(loaded: next, fingerprint: loaded.fingerprint, request: request), done: finish)
            }
            let further = loaded.problems.count + loaded.furtherProblems - 1
            let reason = "\(problem)" + (further > 0 ? ", and \(further) further errors" : "")
            keeper.reloadFailed(reason) { finish(.refused(Failure(keeping: reason, ExitCode.configuration))) }
        }
    }

    private func stop() {
        guard let running else { return }
        self.running = nil
        manager.notify(.stopping)
        // A report that is refused is repeated; one that is accepted must not be lost.
        heartbeats.close()
        running.session.withHeartbeats { [keeper = running.keeper] in keeper.keep($0) }
        running.session.stop()
        running.keeper.stop()
        events.end()
        running.web.stop()
        history.store.close()
        sockets.removeFiles()
    }

    // MARK: Readers

    private func header(_ identity: MonitorIdentity) -> StreamHeader {
        StreamHeader(
            version: CommandProgram.version, identity: identity, targets: loaded.configuration.targets.map(\.endpoint))
    }

    private func content(_ identity: MonitorIdentity, _ evidence: PresentEvidence, _ keeper: Keeper) -> WebContent {
        let (boards, events, renders) = (boards, events, renders)
        let (sources, manager, worker) = (sources, manager, worker)
        let pages = ServicePages(
            store: history.store, boards: boards, evidence: evidence, source: history.source, timeZone: history.timeZone,
            offset: history.offset)
        return WebContent(
            boards: boards, events: events, renders: renders,
            header: { board in
                StreamHeader(
                    version: CommandProgram.version, identity: identity, targets: board.targets.map(\.update.endpoint))
            },
            reload: { confirmed in
                await withCheckedContinuation { continuation in
                    Self.reload(.post(confirmed: confirmed), sources, keeper, manager, on: worker) {
                        continuation.resume(returning: $0)
                    }
                }
            },
            isHealthy: { boards.current().map { $0.isFresh(at: Moment.now) } ?? false }, pages: pages, heartbeats: heartbeats)
    }
}

extension Failure {
    /// Creates the failure of a reload.
    init(keeping reason: String, _ code: Int32) { self.init(code, "keeping the previous configuration: \(reason)") }
}
