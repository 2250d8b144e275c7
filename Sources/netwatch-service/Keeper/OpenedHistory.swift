import Console
import EventLoop
import FoundationEssentials
import Glibc
import Pacing
import Reachability

/// The history of a service that starts: its store, what it remembers, and the numbers of the targets.
final class OpenedHistory: Sendable {
    let store: HistoryStore
    /// This machine, and the directory.
    let source: HistorySource
    let timeZone: String
    let offset: TimeZoneOffset
    /// The state with which the keeper begins; `nil` once it has taken it, so that the memory is released.
    private let beginning: Locked<Beginning?>
    private let receiver: Locked<Receiver>
    /// The incidents that the former run left open, with the targets of the configuration, which have their places as numbers.
    let openIncidents: [OpenIncident]
    /// What the former run knew of jobs that report in.
    let heartbeats: HeartbeatMemories

    /// The state of the history at the start of the service.
    private struct Beginning: Sendable {
        var ledgers: [Int: TargetLedger]
        /// The numbers of the targets of the configuration.
        var numbers: [Int]
        var bars: [Int: TargetBars]
        var frame: BarFrame
        var recorder: HistoryRecorder
        var incidents: [BoardIncident]
        var gap: Range<Int64>?
    }

    /// The receiver of changes of the recording; the keeper starts after the history.
    private struct Receiver: Sendable {
        var receive: (@Sendable (RecordingStatus) -> Void)?
    }

    /// The time limit for the numbers of the targets and the bars.
    private static let startLimit = Duration.seconds(30)

    /// Opens the history of the configuration's directory.
    init(_ configuration: Configuration, _ environment: [String: String]) throws(Failure) {
        let zone = configuration.timeZone.flatMap { TimeZone(identifier: $0) } ?? TimeZone.current
        let offset = zone.offset
        (timeZone, self.offset) = (zone.identifier, offset)
        let path = try StateDirectory.path(configured: configuration.state, environment)
        source = HistorySource(instance: HostName.current, state: path, isService: true)
        var settings = HistoryStore.Settings(directory: path)
        settings.retention = configuration.retention
        settings.timeZone = zone.identifier
        let now = ClockReading(Moment.now)
        let receiver = Locked(Receiver())
        self.receiver = receiver
        let recovered: HistoryStore.Recovered
        do throws(StoreError) {
            (store, recovered) = try HistoryStore.open(settings, calendar: DayCalendar(offset: offset), now: now) { status in
                StandardError.note(status.reason.map { "nothing is recorded: \($0)" } ?? "the history is recorded again")
                receiver.withLock { $0.receive }?(status)
            }
        } catch { throw Failure(error) }
        for note in recovered.notes { StandardError.note(note) }
        let last = recovered.lastAlive?.wall
        let recorder = HistoryRecorder(now, last: last, unrecordedUntil: recovered.unrecordedUntil)
        let stop = recovered.unrecordedUntil ?? last
        let gap = stop.flatMap { $0 < now.wall ? $0..<now.wall : nil }
        var calendar = DayCalendar(offset: offset)
        let frame = BarFrame(at: recorder.now, in: &calendar)
        let numbers = try Self.numbers(of: configuration, store)
        let past: Past
        do throws(StoreError) {
            let reader = try Self.reader(StateDirectory(path: path), calendar, store)
            defer { reader.close() }
            past = try reader.run(until: nil) { try Self.read($0, frame) }
        } catch { throw Failure(error) }
        let open = recovered.interrupted
        openIncidents = Self.openIncidents(open, past.members, numbers: numbers)
        heartbeats = HeartbeatMemories(
            recovered.heartbeats, absentSince: gap.map { $0.lowerBound.multipliedSaturated(by: 1_000_000) })
        let known = Set(open.map(\.id))
        let incidents = open.map { BoardIncident(incident: $0, isRecorded: true, targets: past.members[$0.id] ?? TargetSet()) }
            .joined(with: past.incidents.filter { !known.contains($0.id) })
        beginning = Locked(
            Beginning(
                ledgers: recovered.ledgers, numbers: numbers, bars: past.bars, frame: frame, recorder: recorder,
                incidents: incidents, gap: gap))
    }

    /// Checks that no other service has the directory of the configuration, which may not exist yet.
    ///
    /// - Throws: ``Failure`` with code 71 if another one has it.
    static func checkLock(_ configuration: Configuration, _ environment: [String: String]) throws(Failure) {
        let directory = StateDirectory(path: try StateDirectory.path(configured: configuration.state, environment))
        guard StateFile(directory.path).kind != .missing else { return }
        do throws(StoreError) { try StateLock(directory).unlock() } catch {
            // The opening of the history reports everything else.
            if error.code == .inUse { throw Failure(error) }
        }
    }

    /// Passes changes of the recording to `body`.
    func reportRecording(to body: @escaping @Sendable (RecordingStatus) -> Void) {
        receiver.withLock { receiver in
            receiver.receive = body
            // It may have failed since the start. A change that follows waits for the lock.
            if !store.status.isRecording { body(store.status) }
        }
    }

    /// Returns the parts of the keeper. It is called once.
    func takeParts(
        _ loaded: ConfigurationSources.Loaded, session: MonitorSession, intake: Intake, canary: TargetID?,
        watchdogInterval: Duration?, started: Moment
    ) -> Keeper.Parts {
        let beginning = beginning.withLock { beginning in
            defer { beginning = nil }
            return beginning
        }
        guard let beginning else { preconditionFailure("the history has a keeper already") }
        let numbers = beginning.numbers
        let targets = loaded.configuration.targets.enumerated().map { place, target in
            KeeperMachine.NewTarget(
                configured: target, monitor: TargetID(place), number: numbers[place],
                bars: beginning.bars[numbers[place]] ?? TargetBars(beginning.frame))
        }
        var machine = KeeperMachine(
            loaded.configuration, targets: targets, canary: canary, ledgers: beginning.ledgers, recorder: beginning.recorder,
            frame: beginning.frame, offset: offset, at: started)
        machine.restore(beginning.incidents)
        return Keeper.Parts(
            machine: machine, session: session, intake: intake, store: store, watchdogInterval: watchdogInterval,
            instance: source.instance,
            timeZone: timeZone, offset: offset, started: started, gap: beginning.gap,
            loaded: .init(configuration: loaded.configuration, settings: loaded.settings))
    }

    private static func numbers(of configuration: Configuration, _ store: HistoryStore) throws(Failure) -> [Int] {
        try wait("the history of the targets") { done in
            store.register(configuration.targets.map(HistoryStore.TargetNames.init)) { done($0) }
        }
    }

    /// Returns a reader of the past. The turns in the logs are read only if the start could not move them into the database.
    private static func reader(
        _ directory: StateDirectory, _ calendar: DayCalendar, _ store: HistoryStore
    ) throws(StoreError) -> HistoryReader {
        store.status.isRecording
            ? try HistoryReader(directory) : try HistoryReader(following: directory, calendar: calendar)
    }

    /// What the page shows of the past, and the targets of open incidents.
    private struct Past: Sendable {
        var bars: [Int: TargetBars]
        var incidents: [Incident]
        var members: [String: TargetSet]
    }

    /// Reads the past. The start is not bound to the time limit of the page's questions.
    private static func read(_ reader: HistoryReader, _ frame: BarFrame) throws(StoreError) -> Past {
        Past(
            bars: try bars(reader, frame),
            incidents: try reader.incidents(.min..<(.max), limit: IncidentDesk.recentLimit).elements,
            // An incident that has ended is earlier than this.
            members: try reader.members(.max - 1..<(.max)))
    }

    private static func openIncidents(_ open: [Incident], _ members: [String: TargetSet], numbers: [Int]) -> [OpenIncident] {
        let places = Dictionary(zip(numbers, numbers.indices)) { first, _ in first }
        return open.map { incident in
            let targets = (members[incident.id] ?? TargetSet()).numbers.compactMap { places[$0] }.sorted()
            return OpenIncident(incident, targets: targets, waits: numbers.isEmpty)
        }
    }

    private static func bars(_ reader: HistoryReader, _ frame: BarFrame) throws(StoreError) -> [Int: TargetBars] {
        let numbers = try reader.targets().map(\.number)
        var bars: [Int: SpanValues<Bar>] = [:]
        // The cells of one span of all targets are in memory at a time.
        for span in BarSpan.allCases {
            let table = try reader.bars(frame.cells[span], span == .quarter ? .day : .hour)
            for number in numbers { bars[number, default: SpanValues(repeating: Bar())][span] = Bar(table[number]) }
        }
        return bars.mapValues { TargetBars($0) }
    }

    /// Waits for an answer of the store's threads.
    private static func wait<Value: Sendable>(
        _ what: String, _ start: (@escaping @Sendable (Result<Value, StoreError>) -> Void) -> Void
    ) throws(Failure) -> Value {
        let waker = try MainLoop.makeWaker()
        let answer = Locked<Result<Value, StoreError>?>(nil)
        start { result in
            answer.withLock { $0 = result }
            waker.wake()
        }
        let loop = MainLoop(waker)
        let deadline = Moment.now.advanced(by: startLimit).monotonicNanoseconds
        while MonotonicClock.now() < deadline {
            switch answer.withLock({ $0 }) {
            case .success(let value): return value
            case .failure(let error): throw Failure(error)
            case nil: _ = loop.wait(until: deadline)
            }
        }
        throw Failure(ExitCode.inputOutput, "\(what): the disk did not answer within \(startLimit.components.seconds) s")
    }
}

extension Failure {
    /// Creates the failure of a program whose history cannot be used.
    init(_ error: StoreError) {
        let code =
            switch error.code {
            case .inUse: ExitCode.system
            case .newer: ExitCode.configuration
            case .missing, .unknownTarget: ExitCode.noInput
            case .invalid: ExitCode.usage
            case .refused: ExitCode.cannotCreate
            case .notPermitted: ExitCode.notPermitted
            case .inputOutput, .timedOut, .closed: ExitCode.inputOutput
            }
        self.init(code, error.reason)
    }
}

extension HistoryStore.TargetNames {
    /// Creates the names of a target of the configuration.
    init(_ target: ConfiguredTarget) {
        self.init(
            id: target.id, text: target.endpoint.text, title: target.title, group: target.group, labels: target.labels)
    }
}

/// The name of this machine, by which documents and pages name it.
enum HostName {
    static var current: String {
        var buffer = [CChar](repeating: 0, count: 256)
        guard gethostname(&buffer, buffer.count - 1) == 0 else { return "localhost" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
