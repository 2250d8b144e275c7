internal import EventLoop
public import FoundationEssentials
public import Reachability

/// A network that plays a recording of `netwatch record`: its path monitor, and the monitors of its servers.
///
/// ```swift
/// let network = try RecordedNetwork(contentsOf: recording)
/// let model = NetworkModel(monitor: network.monitor)
/// while try network.advance(by: .seconds(1)) { … }     // manual time
/// try await network.play(speed: 10)                    // the remainder, ten times as fast as it was recorded
/// ```
/// The updates have the dates of the recording.
public final class RecordedNetwork: Sendable {
    /// The error of a recording that cannot be read.
    public struct ReadError: Error, Sendable, CustomStringConvertible {
        /// The number of the line, from 1.
        public let line: Int
        /// The reason why the line cannot be read.
        public let reason: String

        /// The line and the reason: `line LINE REASON`.
        public var description: String { "line \(line) \(reason)" }
    }

    /// The path monitor of this network.
    public let monitor: PathMonitor
    /// The endpoints that are monitored from the beginning of the recording. A `ServerMonitor` on ``monitor`` receives their
    /// updates.
    public let endpoints: [Endpoint]
    private let source: ScriptedSource
    private let player: Locked<Player>

    /// Creates a network from the file of a recording. Nothing is played before ``advance(by:)`` or ``play(speed:)``.
    ///
    /// - Parameter file: the file's URL.
    /// - Throws: ``ReadError``, or the error of reading the file.
    public convenience init(contentsOf file: URL) throws {
        try self.init(String(decoding: Data(contentsOf: file), as: UTF8.self))
    }

    /// Creates a network from the text of a recording.
    ///
    /// - Parameter recording: the contents of the recording's file.
    /// - Throws: ``ReadError``.
    public init(_ recording: String) throws(ReadError) {
        let player = try Player(recording)
        endpoints = player.endpoints
        self.player = Locked(player)
        let source = ScriptedSource()
        self.source = source
        monitor = PathMonitor { sink in
            source.begin(sink)
            return source
        }
    }

    /// Plays the events until `duration` after the present position. The position begins at the recording's first event.
    ///
    /// - Parameter duration: the duration in the recording's time.
    /// - Returns: whether further events follow.
    /// - Throws: ``ReadError`` at a damaged line.
    @discardableResult
    public func advance(by duration: Duration) throws(ReadError) -> Bool {
        let step = try player.withLock { (player) throws(ReadError) in try player.advance(by: duration) }
        for event in step.events { source.publish(event) }
        return !step.isLast
    }

    /// Plays the remaining events at the speed at which they were recorded, or a multiple of it.
    ///
    /// - Parameter speed: the factor of the recorded speed, above 0; default 1. Other values mean 1.
    /// - Throws: ``ReadError`` at a damaged line, or `CancellationError` if the task is canceled.
    public func play(speed: Double = 1) async throws {
        let speed = speed > 0 ? speed : 1
        while let wait = try player.withLock({ (player) throws(ReadError) in try player.timeToNext() }) {
            try await Task.sleep(for: wait / speed)
            try advance(by: wait)
        }
    }
}

/// The recording, the position in it, and the events after the position.
private struct Player: Sendable {
    struct Step: Sendable {
        var events: [MonitorEvent]
        var isLast: Bool
    }

    let endpoints: [Endpoint]
    private var events: ArraySlice<MonitorEvent>
    private var failure: RecordedNetwork.ReadError?
    /// The position, by the recording's clocks; `nil` if the recording has no events.
    private var position: Moment?

    init(_ recording: String) throws(RecordedNetwork.ReadError) {
        var lines = recording.split(separator: "\n").makeIterator()
        var events: [MonitorEvent] = []
        do {
            var replay = try Replay { lines.next().map(String.init) }
            endpoints = replay.targets
            do {
                try replay.run { events.append($0) }
            } catch let damage as Replay.DamageError {
                failure = RecordedNetwork.ReadError(line: damage.line, reason: damage.reason)
            }
        } catch let damage as Replay.DamageError {
            throw RecordedNetwork.ReadError(line: damage.line, reason: damage.reason)
        } catch {
            throw RecordedNetwork.ReadError(line: 1, reason: "cannot be read: \(error)")
        }
        self.events = events[...]
        position = events.first?.moment
    }

    /// Returns the time from the position to the next event; `nil` at the end.
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
