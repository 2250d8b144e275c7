import Console
import EventLoop
import FoundationEssentials
import Glibc
import Reachability

/// The history of a service that starts: its store, what it remembers, and the numbers of the targets.
final class OpenedHistory: Sendable {
    let store: HistoryStore
    /// The name of this machine.
    let instance: String
    let timeZone: String
    let offset: TimeZoneOffset
    private let recovered: HistoryStore.Recovered
    private let numbers: [Int]
    private let bars: [Int: TargetBars]
    private let frame: BarFrame
    private let recorder: HistoryRecorder
    private let incidents: [Incident]
    private let gap: Range<Int64>?
    private let follower: Locked<Follower>

    /// The receiver of changes of the recording; the keeper starts after the history.
    private struct Follower: Sendable {
        var receive: (@Sendable (RecordingStatus) -> Void)?
    }

    /// The time limit for the numbers of the targets and the bars.
    private static let startLimit = Duration.seconds(30)

    /// Opens the history of the configuration's directory.
    init(_ configuration: Configuration, _ environment: [String: String]) throws(Failure) {
        let zone = configuration.timeZone.flatMap { TimeZone(identifier: $0) } ?? TimeZone.current
        let offset = zone.offset
        (timeZone, self.offset) = (zone.identifier, offset)
        instance = Self.hostName
        let path = try StateDirectory.path(configured: configuration.state, environment)
        var settings = HistoryStore.Settings(directory: path)
        settings.retention = configuration.retention
        let now = ClockReading(Clock.now)
        let follower = Locked(Follower())
        self.follower = follower
        do throws(StoreError) {
            (store, recovered) = try HistoryStore.open(settings, calendar: DayCalendar(offset: offset), now: now) { status in
                follower.withLock { $0.receive }?(status)
            }
        } catch { throw Failure(error) }
        for note in recovered.notes { StandardError.note(note) }
        let last = recovered.lastAlive?.wall
        recorder = HistoryRecorder(now, last: last)
        gap = last.flatMap { $0 < now.wall ? $0..<now.wall : nil }
        var calendar = DayCalendar(offset: offset)
        let frame = BarFrame(at: recorder.now, in: &calendar)
        self.frame = frame
        numbers = try Self.numbers(of: configuration, store)
        do throws(StoreError) {
            (bars, incidents) = try Self.read(StateDirectory(path: path), frame)
        } catch { throw Failure(error) }
    }

    /// Passes changes of the recording to `body`.
    func follow(_ body: @escaping @Sendable (RecordingStatus) -> Void) { follower.withLock { $0.receive = body } }

    /// Returns the parts of a keeper.
    func parts(
        _ loaded: ConfigurationSources.Loaded, session: MonitorSession, intake: Intake, canary: TargetID?,
        watchdogInterval: Duration?, started: Moment
    ) -> Keeper.Parts {
        let targets = loaded.configuration.targets.enumerated().map { place, target in
            KeeperState.NewTarget(
                configured: target, monitor: TargetID(place), number: numbers[place],
                bars: bars[numbers[place]] ?? TargetBars(frame))
        }
        var state = KeeperState(
            loaded.configuration, targets: targets, canary: canary, ledgers: recovered.ledgers, recorder: recorder, frame: frame,
            offset: offset, at: started)
        state.restore(incidents)
        return Keeper.Parts(
            state: state, session: session, intake: intake, store: store, watchdogInterval: watchdogInterval, instance: instance,
            timeZone: timeZone, offset: offset, started: started, gap: gap,
            loaded: .init(configuration: loaded.configuration, settings: loaded.settings))
    }

    private static var hostName: String {
        var buffer = [CChar](repeating: 0, count: 256)
        guard gethostname(&buffer, buffer.count - 1) == 0 else { return "localhost" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private static func numbers(of configuration: Configuration, _ store: HistoryStore) throws(Failure) -> [Int] {
        try wait("the history of the targets") { done in
            store.register(configuration.targets.map(HistoryStore.TargetNames.init)) { done($0) }
        }
    }

    /// Reads what the page shows of the past. The start is not bound to the time limit of the page's questions.
    private static func read(_ directory: StateDirectory, _ frame: BarFrame) throws(StoreError) -> ([Int: TargetBars], [Incident])
    {
        let reader = try HistoryReader(directory)
        defer { reader.close() }
        return (try bars(reader, frame), try reader.incidents(.min..<(.max), limit: Board.recentIncidents).elements)
    }

    private static func bars(_ reader: HistoryReader, _ frame: BarFrame) throws(StoreError) -> [Int: TargetBars] {
        let hours = try reader.bars(frame.cells.day, .hour)
        let quarters = try reader.bars(frame.cells.week, .hour)
        let days = try reader.bars(frame.cells.quarter, .day)
        let numbers = try reader.targets().map(\.number)
        return Dictionary(
            numbers.map { number in
                let cells = SpanValues(
                    day: Array(hours[number]), week: Array(quarters[number]), quarter: Array(days[number]))
                return (number, TargetBars(cells))
            }, uniquingKeysWith: { first, _ in first })
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
        let deadline = Clock.now.advanced(by: startLimit).monotonicNanoseconds
        while Clock.nanoseconds < deadline {
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
            case .inputOutput, .timedOut, .closed: ExitCode.inputOutput
            }
        self.init(code, error.reason)
    }
}

extension HistoryStore.TargetNames {
    /// Creates the names of a target of the configuration.
    init(_ target: ConfiguredTarget) { self.init(id: target.id, text: target.endpoint.text, title: target.title) }
}
