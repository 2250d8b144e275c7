internal import CLinux
internal import EventLoop
internal import Glibc

/// The turn: wait, read the clock once, read what is ready, ask the machine, do what it says. Lives on the monitor's thread.
final class MonitorLoop {
    private enum Token {
        static let events: UInt64 = 1
        static let dumps: UInt64 = 2
        static let resolver: UInt64 = 3
        static let suspend: UInt64 = 4
        static let namespace: UInt64 = 5
    }

    /// Where no events come, everything is looked at this often.
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
    private let names: NameResolver
    private let recording: RecordingWriter?
    private let recordingFailed: @Sendable (Int32) -> Void
    private let sink: @Sendable (MonitorEvent) -> Void

    // Unchecked: every mutation of these returns before anything is called that could come back to the loop; the checks of exclusive
    // access at run time took 5,000 instructions a change.
    @exclusivity(unchecked) private var machine: MonitorMachine
    @exclusivity(unchecked) private var messages: [NetlinkMessage] = []
    @exclusivity(unchecked) private var upcoming: [MonitorMachine.Effect] = []
    @exclusivity(unchecked) private var questions: [RouteQuery] = []
    @exclusivity(unchecked) private var isPerforming = false
    @exclusivity(unchecked) private var isRunning = true
    private var now = Moment.now
    /// How often in this turn events are still read before a refusal is believed.
    private var refusalChecks = MonitorLoop.refusalLimit
    private static let refusalLimit = 8
    private var attempts: [TargetID: Set<UInt64>] = [:]
    private var followers: [Follower] = []
    // Followers that came before the first tables were complete.
    private var early: [Follower] = []
    private var pathFollowers: [PathFollower] = []
    // When there are so many, those that have ended are looked for.
    private var followerLimit = 64
    // What path followers have not heard of yet.
    private var hasChanged = false
    private var stateAskers: [@Sendable (MonitorState) -> Void] = []
    private var nextPoll: Int64?
    // Where the system refuses to tell of files (fs.inotify.max_user_instances, max_user_watches), they are looked at.
    private var nextLook: Int64?
    private var lastLook = ResolverConfiguration()
    private let namespacePath: String?
    private let namespaceInode: UInt64
    private var hasRecordingFailed = false

    /// Opens everything; to be called on the thread that will ``run()``, inside the namespace.
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
        names = try NameResolver(namespace: configuration.namespace) { [mailbox] in mailbox.post(.lookup($0)) }
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
            // Sandboxes and old containers may refuse the whole family; then what /proc and /sys show has to do.
            guard let source = PollingSource(error) else { throw LoopError(call: error.call, errno: error.errno) }
            return source
        }
    }

    /// Whether no events come.
    var isPolling: Bool { kernel.eventDescriptor == nil }

    // MARK: The turn

    /// Runs until it is stopped or the namespace is gone.
    func run() {
        var generator = SystemRandomNumberGenerator()
        feed(.began(seed: generator.next(), isPolling: isPolling))
        lastLook = resolverFile.read()
        feed(.resolver(lastLook))
        if isPolling { nextPoll = now.monotonicNanoseconds + Self.pollInterval }
        look()
        takeCommands()
        endTurn()
        tellState()
        while isRunning {
            let ready = loop.wait(until: deadline)
            now = Moment.now
            refusalChecks = Self.refusalLimit
            takeCommands()
            for descriptor in ready where isRunning { take(descriptor) }
            if let due = nextPoll, due <= now.monotonicNanoseconds {
                nextPoll = now.monotonicNanoseconds + Self.pollInterval
                feed(.pollDue)
            }
            if let due = nextLook, due <= now.monotonicNanoseconds { look() }
            startWaiting()
            if isRunning { endTurn() }
            // What the turn's end cancelled has freed sockets.
            startWaiting()
            tellState()
        }
        close()
    }

    private var deadline: Int64? {
        var due = machine.nextDeadline()
        if let nextPoll { due = min(due ?? nextPoll, nextPoll) }
        if let nextLook { due = min(due ?? nextLook, nextLook) }
        return due
    }

    // Also once at the start: the name may have gone before it was watched.
    private func look() {
        if let namespacePath, NamespaceWatch.inode(of: namespacePath) != namespaceInode { feed(.namespaceGone) }
        let (isNameUnwatched, isFileUnwatched) = (
            namespacePath != nil && namespace?.descriptor == nil, resolver?.isComplete != true
        )
        nextLook = isNameUnwatched || isFileUnwatched ? now.monotonicNanoseconds + Self.pollInterval : nil
        guard isFileUnwatched else { return }
        let configuration = resolverFile.read()
        guard configuration != lastLook else { return }
        lastLook = configuration
        names.configurationChanged()
        feed(.resolver(configuration))
    }

    private func take(_ ready: EventLoop.Ready) {
        switch ready.token {
        case Token.events: readEvents()
        case Token.dumps: readDump()
        case Token.resolver:
            if resolver?.drain() == true {
                lastLook = resolverFile.read()
                names.configurationChanged()
                feed(.resolver(lastLook))
                // The way to the file is watched anew, perhaps not all of it.
                look()
            }
        case Token.suspend:
            if let asleep = suspend?.wokeAfter() { feed(.resumed(nanosecondsAsleep: asleep)) }
        case Token.namespace:
            if namespace?.isGone() == true { feed(.namespaceGone) }
        default:
            if let result = prober.ready(ready, on: loop, now: now) { feed(result) }
        }
    }

    /// - Returns: whether more of them wait.
    @discardableResult
    private func readEvents() -> Bool {
        messages.removeAll(keepingCapacity: true)
        let result = kernel.readEvents { bytes in
            // A datagram is copied only for a recording.
            if recording != nil { record(.datagram([UInt8](bytes))) }
            NetlinkDecoder.decode(bytes, into: &messages)
        }
        // Those of all datagrams together: what is done about them is said at the turn's end only.
        if !messages.isEmpty { perform(machine.handle(.path(.messages(messages)), at: now)) }
        switch result {
        case .read, .more: break
        case .overrun: feed(.overrun)
        case .failed:
            // Never seen; a socket that only fails would keep the loop busy, so it is left alone and the tables are dumped anew.
            if let descriptor = kernel.eventDescriptor { loop.remove(descriptor) }
            nextPoll = now.monotonicNanoseconds + Self.pollInterval
            feed(.overrun)
        }
        return result == .more
    }

    private func readDump() {
        let failure = kernel.readDump { bytes in
            // The slice may show what waiting events tell: heard before it, they are in the dump's log. A storm may bring more and more.
            for _ in 0..<64 where !readEvents() { break }
            if recording != nil { record(.dump([UInt8](bytes))) }
            messages.removeAll(keepingCapacity: true)
            NetlinkDecoder.decode(bytes, into: &messages)
            perform(machine.handle(.path(.dump(messages)), at: now))
        }
        if failure != 0 { feed(.dumpFailed(errno: failure)) }
    }

    private func endTurn() {
        // Routes, neighbors and evidence are answered at once, and may lead to further questions.
        defer {
            tellPathFollowers()
            admitFollowers()
        }
        // The bound is for targets that are due again and again: the next turn comes at once then.
        for _ in 0..<64 where isRunning {
            if feed(.turnEnded).isEmpty { return }
        }
    }

    private func admitFollowers() {
        guard !early.isEmpty, machine.path.path != nil else { return }
        followers += early.filter { $0(machine.path.snapshot, []) }
        early = []
    }

    private func tellPathFollowers() {
        if hasChanged, !pathFollowers.isEmpty, let path = machine.path.path { tellPathFollowers(path) }
    }

    private func tellPathFollowers(_ path: NetworkPath) {
        hasChanged = false
        if !pathFollowers.isEmpty { pathFollowers.removeAll { !$0(path) } }
    }

    private func tellState() {
        guard !stateAskers.isEmpty else { return }
        let state = MonitorState(snapshot: machine.path.snapshot, isQuiet: machine.path.isQuiet, deadline: machine.deadline)
        for body in stateAskers { body(state) }
        stateAskers = []
    }

    private func takeCommands() {
        for command in mailbox.takeAll() {
            switch command {
            case .add(let id, let endpoint, let settings): feed(.targetAdded(id, endpoint, settings))
            case .remove(let id): feed(.targetRemoved(id))
            case .lookup(let answer): feed(.lookup(answer))
            case .snapshot(let body): body(machine.path.snapshot)
            case .state(let body): stateAskers.append(body)
            case .follow(let follower):
                if machine.path.path == nil {
                    early.append(follower)
                } else if follower(machine.path.snapshot, []) {
                    followers.append(follower)
                }
            case .followPath(let follower):
                if machine.path.path.map(follower) != false { pathFollowers.append(follower) }
                if pathFollowers.count >= followerLimit, let path = machine.path.path {
                    tellPathFollowers(path)
                    followerLimit = max(64, 2 * pathFollowers.count)
                }
            case .stop: isRunning = false
            }
        }
    }

    // MARK: Inputs

    @discardableResult
    private func feed(_ input: MonitorInput) -> [MonitorMachine.Effect] {
        record(input)
        let effects = machine.handle(input.event, at: now)
        perform(effects)
        return effects
    }

    private func feed(_ result: ProbeResult) {
        attempts[TargetID(owning: result.id)]?.remove(result.id)
        feed(.probe(result))
    }

    private func record(_ input: MonitorInput) {
        guard let recording, !hasRecordingFailed else { return }
        if let errno = recording.append(RecordedInput(moment: now, input: input)) {
            hasRecordingFailed = true
            recordingFailed(errno)
        }
    }

    // MARK: Effects

    // First come, first done: an answer within the turn may lead to further effects, and what the machine said before it asked
    // must not be told after them. A replay, which takes input by input, says everything in this order too.
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
                questions.append(query)
                // Those that follow each other are asked in one datagram.
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
        case .readEvidence(let link): feed(.evidence(link.index, evidence.read(link) ?? InterfaceEvidence()))
        case .resolve(let request): names.resolve(request)
        case .connect(let attempt): connect(attempt)
        case .cancel(let id):
            prober.cancel(id, on: loop)
            attempts[TargetID(owning: id)]?.remove(id)
        case .cancelAll(let id):
            attempts.removeValue(forKey: id)?.forEach { prober.cancel($0, on: loop) }
            names.cancel(id)
        case .emit(let event):
            sink(event)
            // Now: it is the monitor's path, and those who are called back because of it are not awake yet.
            if case .path(let update) = event { tellPathFollowers(update.path) }
            if case .ended = event { isRunning = false }
        case .changed(let changes):
            hasChanged = true
            if !followers.isEmpty { followers.removeAll { !$0(machine.path.snapshot, changes) } }
        }
    }

    private func askRoutes() {
        let asked = questions
        questions.removeAll(keepingCapacity: true)
        let replies = zip(asked, kernel.ask(asked[...])).map { MonitorInput.routeReply($0, $1) }
        let answers = replies.map(\.event)
        // A refusal may come of a filter that a waiting event tells of, with which the question is another one: that is heard first. Not
        // again and again in a turn: a storm would keep the path back.
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

    private func connect(_ attempt: ProbeAttempt) {
        attempts[TargetID(owning: attempt.id), default: []].insert(attempt.id)
        if let result = prober.start(attempt, on: loop, now: now) { feed(result) }
    }

    private func startWaiting() {
        guard isRunning else { return }
        for result in prober.startWaiting(on: loop, now: now) { feed(result) }
    }

    private func close() {
        for follower in followers + early { _ = follower(nil, []) }
        for command in mailbox.close() {
            switch command {
            case .snapshot(let body): body(nil)
            case .follow(let follower): _ = follower(nil, [])
            case .add, .remove, .lookup, .followPath, .state, .stop: break
            }
        }
        prober.closeAll()
        names.stop()
        if let errno = recording?.finish(), !hasRecordingFailed { recordingFailed(errno) }
    }
}
