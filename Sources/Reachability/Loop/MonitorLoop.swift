internal import CLinux
internal import EventLoop
internal import Glibc

/// The event loop of a monitor. Each turn waits, reads the clock once, reads the ready descriptors, passes the inputs to the
/// machine, and performs the effects. Only the monitor's thread uses the loop.
final class MonitorLoop {
    /// Receives the path after each change of links, addresses, routes or rules, even if the path is unchanged, and at once if a
    /// path exists. Returns false to unsubscribe.
    typealias PathSubscriber = @Sendable (NetworkPath) -> Bool

    /// A command from another thread to the loop.
    enum Command: Sendable {
        case add(TargetID, Endpoint, ProbeSettings)
        case remove(TargetID)
        /// Removes a target, and adds another one in its place.
        case replace(TargetID, by: TargetID, Endpoint, ProbeSettings)
        /// The answer of getaddrinfo(3).
        case lookup(LookupAnswer)
        case report(PassiveReport)
        case heartbeat(TargetID, HeartbeatReport)
        case heartbeats(@Sendable ([HeartbeatMemories.Job: HeartbeatMemory]) -> Void)
        case snapshot(@Sendable (KernelSnapshot?) -> Void)
        case inspect(RouteQuery, @Sendable (RouteInspection?) -> Void)
        case subscribeToPath(PathSubscriber)
        case state(@Sendable (MonitorState) -> Void)
        case stop
    }

    private enum Token {
        static let events: UInt64 = 1
        static let dumps: UInt64 = 2
        static let resolver: UInt64 = 3
        static let suspend: UInt64 = 4
        static let namespace: UInt64 = 5
    }

    /// The interval in nanoseconds at which all tables are dumped if no events arrive.
    private static let pollInterval: Int64 = 2_000_000_000

    private var loop: EventLoop
    private let mailbox: Mailbox<Command>
    private let kernel: any KernelSource
    private let evidence: InterfaceEvidenceReader
    private var resolver: ResolverWatcher?
    private let resolverFile: ResolverFile
    private var suspend: SuspendWatch?
    private var namespace: NamespaceWatch?
    private var prober = TCPProber()
    private var datagramProber = DatagramProber()
    private var echoProber = EchoProber()
    // The limit of sockets that the machine knows.
    private var lastLimit = 0
    private var hostProber = HostProber()
    private var hopSearcher = HopSearcher()
    private let names: NameService
    private let recording: RecordingWriter?
    private let recordingFailed: @Sendable (Int32) -> Void
    private let sink: @Sendable (MonitorEvent) -> Void

    private var machine: MonitorMachine
    private var messages: [NetlinkMessage] = []
    private var upcoming: [MonitorMachine.Effect] = []
    private var queries: [RouteQuery] = []
    private var isPerforming = false
    private var isRunning = true
    private var now = Moment.now
    /// The number of times in this turn that events are still read before a refusal is accepted.
    private var refusalChecks = MonitorLoop.refusalLimit
    private static let refusalLimit = 8
    private var pacing = EventPacing()
    private var subscribers: [PathSubscriber] = []
    // At this number of subscribers, those that have ended are removed.
    private var subscriberLimit = 64
    // Whether changes are pending that subscribers have not received.
    private var hasChanged = false
    private var stateHandlers: [@Sendable (MonitorState) -> Void] = []
    private var nextPoll: Int64?
    // If the system refuses inotify watches (fs.inotify.max_user_instances, max_user_watches), the files are polled.
    private var nextFileCheck: Int64?
    private var lastConfiguration = ResolverConfiguration()
    private let namespacePath: String?
    private let namespaceInode: UInt64
    private var hasRecordingFailed = false

    /// Opens all sockets and files. Must be called inside the namespace, on the thread that will call ``run()``.
    init(
        _ configuration: MonitorConfiguration, identity: MonitorIdentity, usesSysfs: Bool, mailbox: Mailbox<Command>,
        recording: RecordingWriter?, recordingFailed: @escaping @Sendable (Int32) -> Void,
        sink: @escaping @Sendable (MonitorEvent) -> Void
    ) throws(LoopError) {
        let loop = try EventLoop()
        mailbox.attach(loop.waker)
        kernel = try Self.openKernel()
        evidence = InterfaceEvidenceReader(usesSysfs: usesSysfs, wirelessIndexes: WirelessInterfaces.indexes)
        resolverFile = ResolverFile(namespaceName: configuration.namespace?.name)
        resolver = try? ResolverWatcher(resolverFile)
        suspend = SuspendWatch()
        namespace = configuration.namespace.flatMap { NamespaceWatch($0.path, inode: identity.namespaceInode) }
        namespacePath = configuration.namespace?.path
        namespaceInode = identity.namespaceInode
        names = try NameService(namespace: configuration.namespace) { [mailbox] in mailbox.post(.lookup($0)) }
        machine = MonitorMachine(configuration)
        self.mailbox = mailbox
        self.recording = recording
        self.recordingFailed = recordingFailed
        self.sink = sink
        if let descriptor = kernel.eventDescriptor { try loop.add(descriptor, interest: .read, token: Token.events) }
        if let descriptor = kernel.dumpDescriptor { try loop.add(descriptor, interest: .read, token: Token.dumps) }
        if let descriptor = resolver?.descriptor { try loop.add(descriptor, interest: .read, token: Token.resolver) }
        if let descriptor = suspend?.descriptor { try loop.add(descriptor, interest: .read, token: Token.suspend) }
        if let descriptor = namespace?.descriptor { try loop.add(descriptor, interest: .read, token: Token.namespace) }
        self.loop = loop
    }

    private static func openKernel() throws(LoopError) -> any KernelSource {
        do { return try NetlinkSource() } catch {
            // Sandboxes and old containers may refuse the netlink family. /proc and /sys are then the only sources.
            guard let source = PollingSource(error) else { throw LoopError(call: error.call, errno: error.errno) }
            return source
        }
    }

    /// Whether the kernel delivers no events.
    var isPolling: Bool { kernel.eventDescriptor == nil }

    // MARK: The turn

    /// Runs until the loop is stopped or the namespace is removed.
    func run() {
        var generator = SystemRandomNumberGenerator()
        feed(.began(seed: generator.next(), isPolling: isPolling))
        reportProbeLimit()
        configure(resolverFile.read())
        if isPolling { nextPoll = now.monotonicNanoseconds + Self.pollInterval }
        checkFiles()
        handleCommands()
        endTurn()
        reportState()
        while isRunning {
            let ready = awaitInput()
            now = Moment.now
            refusalChecks = Self.refusalLimit
            for descriptor in ready where isRunning { handle(descriptor) }
            // Commands follow the kernel's events, which they must not delay.
            if isRunning { handleCommands() }
            if let due = nextPoll, due <= now.monotonicNanoseconds {
                nextPoll = now.monotonicNanoseconds + Self.pollInterval
                feed(.pollDue)
            }
            if let due = nextFileCheck, due <= now.monotonicNanoseconds { checkFiles() }
            for result in prober.expireLevels(on: loop, now: now) { feed(result) }
            for result in datagramProber.advance(on: loop, now: now) { feed(result) }
            for result in echoProber.advance(on: loop, now: now) { feed(result) }
            startWaiting()
            // Before the end of the turn, so that a probe whose deadline is reached receives the evidence of its lookup.
            deliver(names.tick(on: loop, now: now.monotonicNanoseconds))
            for (query, reply) in hostProber.tick(on: loop, now: now.monotonicNanoseconds) { feed(.hostReply(query, reply)) }
            for (hop, reply) in hopSearcher.tick(on: loop, now: now.monotonicNanoseconds) { feed(.searchReply(hop, reply)) }
            if isRunning { endTurn() }
            if pacing.endTurn(at: now.monotonicNanoseconds) { watchEvents([]) }
            // Attempts that the end of the turn canceled have freed sockets.
            startWaiting()
            reportState()
        }
        close()
    }

    // Also called once at the start: the namespace's file may have been removed before it was watched.
    private func checkFiles() {
        if let namespacePath, NamespaceWatch.inode(of: namespacePath) != namespaceInode { feed(.namespaceGone) }
        let (isNameUnwatched, isFileUnwatched) = (
            namespacePath != nil && namespace?.descriptor == nil, resolver?.isComplete != true
        )
        nextFileCheck = isNameUnwatched || isFileUnwatched ? now.monotonicNanoseconds + Self.pollInterval : nil
        guard isFileUnwatched else { return }
        let configuration = resolverFile.read()
        if configuration != lastConfiguration { configure(configuration) }
    }

    private func handle(_ ready: EventLoop.Ready) {
        switch ready.token {
        case Token.events:
            // The first datagram of a change is handled while the kernel sends the others. In a storm, that would cost a second
            // system call for each event.
            if pacing.begin(at: now.monotonicNanoseconds) || readEvents(atMost: 1) { readEvents() }
        case Token.dumps: readDump()
        case Token.resolver:
            if resolver?.drain() == true {
                configure(resolverFile.read())
                // The watches on the path to the file are new, and may be incomplete.
                checkFiles()
            }
        case Token.suspend:
            if let asleep = suspend?.takeSuspendedTime() {
                names.forget()
                feed(.resumed(nanosecondsAsleep: asleep))
            }
        case Token.namespace:
            if namespace?.isGone() == true { feed(.namespaceGone) }
        case let token where NameService.owns(token): deliver(names.ready(ready, on: loop, now: now.monotonicNanoseconds))
        case let token where HostProber.owns(token):
            if let (query, reply) = hostProber.ready(ready, on: loop) { feed(.hostReply(query, reply)) }
        case let token where HopSearcher.owns(token):
            if let (hop, reply) = hopSearcher.ready(ready, on: loop, now: now.monotonicNanoseconds) {
                feed(.searchReply(hop, reply))
            }
        case let token where DatagramProber.owns(token):
            if let result = datagramProber.ready(ready, on: loop, now: now) { feed(result) }
        case let token where EchoProber.owns(token):
            for result in echoProber.ready(ready, on: loop, now: now) { feed(result) }
        default:
            if let result = prober.ready(ready, on: loop, now: now) { feed(result) }
        }
    }

    /// - Returns: whether more events may be queued.
    @discardableResult
    private func readEvents(atMost limit: Int = .max) -> Bool {
        messages.removeAll(keepingCapacity: true)
        let result = kernel.readEvents(atMost: limit) { bytes in
            // A datagram is copied only for a recording.
            if recording != nil { record(.datagram([UInt8](bytes))) }
            NetlinkDecoder.decode(bytes, into: &messages)
        }
        // The messages of all datagrams are handled together, because their effects follow only at the turn's end.
        if !messages.isEmpty {
            let effects = machine.handle(.path(.messages(messages)), at: now)
            // Messages alone have no effect but the loss of the path.
            if !effects.isEmpty {
                perform(effects)
                // The thread that receives the loss may wait for this processor, and goes first.
                sched_yield()
                machine.applyDelayedMessages()
            }
        }
        switch result {
        case .read, .more: break
        case .overrun: feed(.overrun)
        case .failed:
            // Not observed so far. A socket that only fails would keep the loop busy, so it is removed and the tables are dumped
            // again.
            if let descriptor = kernel.eventDescriptor { loop.remove(descriptor) }
            nextPoll = now.monotonicNanoseconds + Self.pollInterval
            feed(.overrun)
        }
        return result == .more
    }

    private func readDump() {
        let failure = kernel.readDump { bytes in
            // The slice may contain the changes of queued events. Events that are read before the slice are in the dump's log.
            // The loop is bounded because a storm may bring more and more events.
            for _ in 0..<64 where !readEvents() { break }
            if recording != nil { record(.dump([UInt8](bytes))) }
            messages.removeAll(keepingCapacity: true)
            NetlinkDecoder.decode(bytes, into: &messages)
            perform(machine.handle(.path(.dump(messages)), at: now))
        }
        if failure != 0 { feed(.dumpFailed(errno: failure)) }
    }

    private func endTurn() {
        // Routes, neighbors and evidence are answered at once, and may cause further queries.
        defer { notifySubscribers() }
        // The bound is for targets that are due again and again; the next turn then starts at once.
        for _ in 0..<64 where isRunning {
            if feed(.turnEnded).isEmpty { return }
        }
    }

    private func handleCommands() {
        for command in mailbox.takeAll() {
            switch command {
            case .add(let id, let endpoint, let settings): feed(.targetAdded(id, endpoint, settings))
            case .remove(let id): feed(.targetRemoved(id))
            case .replace(let id, let other, let endpoint, let settings):
                feed(.targetReplaced(id, by: other))
                feed(.targetRemoved(id))
                feed(.targetAdded(other, endpoint, settings))
            case .lookup(let answer): deliver(names.libcAnswered(answer, on: loop, now: now.monotonicNanoseconds))
            case .report(let report): feed(.passiveReport(report))
            case .heartbeat(let id, let report): feed(.heartbeat(id, report))
            case .heartbeats(let body): body(machine.takeHeartbeats(at: now))
            case .snapshot(let body): body(machine.path.snapshot)
            case .inspect(let query, let body): body(inspect(query))
            case .state(let body): stateHandlers.append(body)
            case .subscribeToPath(let subscriber):
                if machine.path.path.map(subscriber) != false { subscribers.append(subscriber) }
                if subscribers.count >= subscriberLimit, let path = machine.path.path {
                    notifySubscribers(path)
                    subscriberLimit = max(64, 2 * subscribers.count)
                }
            case .stop: isRunning = false
            }
        }
    }

    // MARK: The wait

    /// Waits for the next input or deadline. In the first idle millisecond after a change, the machine prepares for the loss of the
    /// path; a storm leaves no such time. The events of a storm wait meanwhile, but nothing else does (``EventPacing``).
    private func awaitInput() -> [EventLoop.Ready] {
        if let end = pacing.pauseEnd {
            let ready = loop.wait(until: min(deadline ?? end, end))
            guard MonotonicClock.now() >= end else { return ready }
            pacing.resume()
            watchEvents(.read)
            guard ready.isEmpty, mailbox.isEmpty else { return ready }
        }
        if machine.isForesightDue() {
            let idle = MonotonicClock.now() + 1_000_000
            let ready = loop.wait(until: min(deadline ?? idle, idle))
            guard ready.isEmpty, mailbox.isEmpty else { return ready }
            machine.foresee()
        }
        return loop.wait(until: deadline)
    }

    /// Watches for the kernel's events, or only for their overrun, which is an error of the socket. If the socket has failed, nothing is watched.
    private func watchEvents(_ interest: EventLoop.Interest) {
        guard let descriptor = kernel.eventDescriptor else { return }
        try? loop.change(descriptor, interest: interest, token: Token.events)
    }

    private var deadline: Int64? {
        var due = machine.nextDeadline()
        if let nextPoll { due = min(due ?? nextPoll, nextPoll) }
        if let nextFileCheck { due = min(due ?? nextFileCheck, nextFileCheck) }
        if let next = names.deadline { due = min(due ?? next, next) }
        if let next = hostProber.deadline { due = min(due ?? next, next) }
        if let next = hopSearcher.deadline { due = min(due ?? next, next) }
        if let next = prober.levelDeadline { due = min(due ?? next, next) }
        if let next = datagramProber.deadline { due = min(due ?? next, next) }
        if let next = echoProber.deadline { due = min(due ?? next, next) }
        return due
    }

    // MARK: Inputs

    @discardableResult
    private func feed(_ input: MonitorInput) -> [MonitorMachine.Effect] {
        record(input)
        let effects = machine.handle(input.event, at: now)
        perform(effects)
        return effects
    }

    private func feed(_ result: ProbeResult) { feed(.probe(result)) }

    private func record(_ input: MonitorInput) {
        guard let recording, !hasRecordingFailed else { return }
        if let errno = recording.append(RecordedInput(moment: now, input: input)) {
            hasRecordingFailed = true
            recordingFailed(errno)
        }
    }

    // MARK: Names

    /// Handles the contents of resolv.conf. Lookups continue with the new name servers.
    private func configure(_ configuration: ResolverConfiguration) {
        lastConfiguration = configuration
        feed(.resolver(configuration))
        deliver(names.configure(configuration, on: loop, now: now.monotonicNanoseconds))
    }

    private func deliver(_ answers: [LookupAnswer]) {
        for answer in answers { feed(.lookup(answer)) }
    }

    // MARK: Effects

    // Effects are performed in order. An answer within the turn may cause further effects, and events that the machine emitted
    // before the query must not be delivered after them. A replay, which handles input by input, emits its events in this order
    // too.
    private func perform(_ effects: [MonitorMachine.Effect]) {
        guard !effects.isEmpty else { return }
        upcoming += effects
        guard !isPerforming else { return }
        isPerforming = true
        defer { isPerforming = false }
        var next = 0
        while next < upcoming.count {
            if case .askRoute(let query) = upcoming[next] {
                next += 1
                queries.append(query)
                // Consecutive queries are sent in one datagram.
                if next < upcoming.count, case .askRoute = upcoming[next] { continue }
                askRoutes()
            } else {
                perform(upcoming[next])
                next += 1
            }
        }
        upcoming.removeAll(keepingCapacity: true)
    }

    private func perform(_ effect: MonitorMachine.Effect) {
        switch effect {
        case .dump(let table, let interface, let sequence): dump(table, interface, sequence)
        case .askRoute: break
        case .askNeighbor(let key): feed(.neighborReply(key, kernel.ask(key)))
        case .askHost(let query):
            if let reply = hostProber.start(query, on: loop, now: now.monotonicNanoseconds) { feed(.hostReply(query, reply)) }
        case .search(let search):
            if let reply = hopSearcher.start(search, on: loop, now: now.monotonicNanoseconds) {
                feed(.searchReply(search.hop, reply))
            }
        case .readCounters(let interface): feed(.counters(interface, kernel.counters(of: interface)))
        case .readEvidence(let link): feed(.evidence(link.index, evidence.read(link) ?? InterfaceEvidence()))
        case .resolve(let request): deliver(names.resolve(request, on: loop, now: now.monotonicNanoseconds))
        case .connect(let attempt): start(attempt)
        case .cancel(let id):
            prober.cancel(id, on: loop)
            datagramProber.cancel(id, on: loop)
            echoProber.cancel(id, on: loop)
        case .cancelLookup(let id): names.cancel(id)
        case .emit(let event):
            // Subscribers come first: a session reads the routes before tasks proceed with the published path.
            if case .path(let update) = event {
                pacing.noteUpdate()
                if !update.isInitial { names.forget() }
                notifySubscribers(update.path)
            }
            sink(event)
            if case .ended = event { isRunning = false }
        case .changed: hasChanged = true
        }
    }

    private func start(_ attempt: ProbeAttempt) {
        switch attempt.plan?.plan.transport {
        case .stream, nil:
            if let result = prober.start(attempt, on: loop, now: now) { feed(result) }
            reportProbeLimit()
        case .datagrams(let plan):
            if let result = datagramProber.start(attempt, plan, on: loop, now: now) { feed(result) }
        case .echo(let burst):
            if let result = echoProber.start(attempt, burst, on: loop, now: now) { feed(result) }
        }
    }

    private func askRoutes() {
        let asked = queries
        queries.removeAll(keepingCapacity: true)
        let replies = zip(asked, kernel.ask(asked[...])).map { MonitorInput.routeReply($0, $1) }
        let answers = replies.map(\.event)
        // A refusal may come from a filter that a queued event announces, and that filter changes the query. Therefore events are
        // read first. The number of such reads per turn is limited, because a storm would delay the path.
        if refusalChecks > 0, answers.contains(where: \.isRefusal) {
            refusalChecks -= 1
            readEvents()
        }
        for (reply, answer) in zip(replies, answers) {
            record(reply)
            perform(machine.handle(answer, at: now))
        }
    }

    private func dump(_ table: KernelTable, _ interface: UInt32?, _ sequence: UInt32) {
        let failure = kernel.startDump(table, over: interface, sequence: sequence)
        if failure != 0 { return _ = feed(.dumpFailed(errno: failure)) }
        if kernel.dumpDescriptor == nil { readDump() }
    }

    /// Passes a changed limit of sockets to the machine.
    private func reportProbeLimit() {
        guard prober.limit != lastLimit else { return }
        lastLimit = prober.limit
        feed(.probeLimit(lastLimit))
    }

    private func startWaiting() {
        guard isRunning else { return }
        for result in prober.startWaiting(on: loop, now: now) { feed(result) }
        reportProbeLimit()
    }

    /// Asks the kernel for a route, and for the neighbor to which it leads.
    private func inspect(_ query: RouteQuery) -> RouteInspection {
        var inspection = RouteInspection(query)
        let bytes = kernel.ask([query][...]).first ?? []
        inspection.route = RouteAnswer(NetlinkDecoder.decode(bytes), to: query) ?? .unanswered
        if let key = inspection.nextHop { inspection.neighbor = NeighborAnswer(NetlinkDecoder.decode(kernel.ask(key))) }
        return inspection
    }

    // MARK: Subscribers

    private func notifySubscribers() {
        if hasChanged, !subscribers.isEmpty, let path = machine.path.path { notifySubscribers(path) }
    }

    private func notifySubscribers(_ path: NetworkPath) {
        hasChanged = false
        if !subscribers.isEmpty { subscribers.removeAll { !$0(path) } }
    }

    private func reportState() {
        guard !stateHandlers.isEmpty else { return }
        let state = MonitorState(snapshot: machine.path.snapshot, isIdle: machine.path.isIdle, deadline: machine.deadline)
        for body in stateHandlers { body(state) }
        stateHandlers = []
    }

    // MARK: The end

    private func close() {
        for command in mailbox.close() {
            switch command {
            case .snapshot(let body): body(nil)
            case .inspect(_, let body): body(nil)
            case .heartbeats(let body): body(machine.takeHeartbeats(at: now))
            case .add, .remove, .replace, .lookup, .report, .heartbeat, .subscribeToPath, .state, .stop: break
            }
        }
        prober.closeAll()
        datagramProber.closeAll()
        echoProber.closeAll()
        hostProber.closeAll()
        hopSearcher.closeAll()
        names.stop(on: loop)
        if let errno = recording?.finish(), !hasRecordingFailed { recordingFailed(errno) }
    }
}
