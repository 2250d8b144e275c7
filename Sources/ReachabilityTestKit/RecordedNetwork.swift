internal import EventLoop
public import FoundationEssentials
public import Reachability

/// A network that a recording of `netwatch record` plays: its path monitor and the monitors of its servers.
///
/// ```swift
/// let network = try RecordedNetwork(contentsOf: recording)
/// let model = NetworkModel(monitor: network.monitor)
/// while try network.advance(by: .seconds(1)) { … }     // manual time
/// try await network.play(speed: 10)                    // the remainder, ten times as fast as it was recorded
/// ```
/// The updates have the dates of the recording.
public final class RecordedNetwork: Sendable {
    /// A recording that cannot be read.
    public struct ReadError: Error, Sendable, CustomStringConvertible {
        /// The line, counted from 1.
        public let line: Int
        /// What is wrong with it.
        public let reason: String

        /// `line LINE REASON`.
        public var description: String { "line \(line) \(reason)" }
    }

    /// The path monitor of this network.
    public let monitor: PathMonitor
    /// The servers that the recording watches from its beginning. A `ServerMonitor` on ``monitor`` receives their updates.
    public let servers: [Endpoint]
    private let source: ScriptedSource
    private let player: Locked<Player>

    /// Reads a recording. Nothing is played before ``advance(by:)`` or ``play(speed:)``.
    ///
    /// - Throws: ``ReadError``, or what reading the file throws.
    public convenience init(contentsOf file: URL) throws {
        try self.init(String(decoding: Data(contentsOf: file), as: UTF8.self))
    }

    /// A network of a recording's text.
    ///
    /// - Throws: ``ReadError``.
    public init(_ recording: String) throws(ReadError) {
        let player = try Player(recording)
        servers = player.targets
        self.player = Locked(player)
        let source = ScriptedSource()
        self.source = source
        monitor = PathMonitor { sink in
            source.begin(sink)
            return source
        }
    }

    /// Plays what happened until `duration` after the present moment of the recording, which begins with its first event.
    ///
    /// - Returns: whether more follows.
    /// - Throws: ``ReadError`` at a damaged line.
    @discardableResult
    public func advance(by duration: Duration) throws(ReadError) -> Bool {
        let step = try player.withLock { (player) throws(ReadError) in try player.advance(by: duration) }
        for event in step.events { source.publish(event) }
        return !step.isLast
    }

    /// Plays the remainder at the pace at which it was recorded.
    ///
    /// - Parameter speed: how many times as fast; above 0.
    /// - Throws: ``ReadError`` at a damaged line, and `CancellationError` if the task is cancelled.
    public func play(speed: Double = 1) async throws {
        let speed = speed > 0 ? speed : 1
        while let wait = try player.withLock({ (player) throws(ReadError) in try player.timeToNext() }) {
            try await Task.sleep(for: wait / speed)
            try advance(by: wait)
        }
    }
}

/// The recording, its position, and the first event behind the position.
private struct Player: Sendable {
    struct Step: Sendable {
        var events: [MonitorEvent]
        var isLast: Bool
    }

    let targets: [Endpoint]
    private var events: ArraySlice<MonitorEvent>
    private var failure: RecordedNetwork.ReadError?
    /// `CLOCK_MONOTONIC` of the recording in nanoseconds.
    private var position: Moment?

    init(_ recording: String) throws(RecordedNetwork.ReadError) {
        var lines = recording.split(separator: "\n").makeIterator()
        var events: [MonitorEvent] = []
        do {
            var replay = try Replay { lines.next().map(String.init) }
            targets = replay.targets
            do {
                try replay.run { events.append($0) }
            } catch let damage as Replay.DamageError {
                failure = RecordedNetwork.ReadError(line: damage.line, reason: damage.why)
            }
        } catch let damage as Replay.DamageError {
            throw RecordedNetwork.ReadError(line: damage.line, reason: damage.why)
        } catch {
            throw RecordedNetwork.ReadError(line: 1, reason: "cannot be read: \(error)")
        }
        self.events = events[...]
        position = events.first?.moment
    }

    /// How long after the position the next event comes; `nil` at the end.
    mutating func timeToNext() throws(RecordedNetwork.ReadError) -> Duration? {
        guard let next = events.first?.moment, let position else {
            if let failure { throw failure }
            return nil
        }
        return max(.zero, next.elapsed(since: position))
    }

    mutating func advance(by duration: Duration) throws(RecordedNetwork.ReadError) -> Step {
        guard let start = position else {
            if let failure { throw failure }
            return Step(events: [], isLast: true)
        }
        let end = start.advanced(by: duration)
        position = end
        let due = events.prefix { $0.moment <= end }
        events = events.dropFirst(due.count)
        if due.isEmpty, events.isEmpty, let failure { throw failure }
        return Step(events: Array(due), isLast: events.isEmpty && failure == nil)
    }
}
