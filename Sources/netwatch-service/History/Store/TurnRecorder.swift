import EventLoop
import Pacing

/// The writer of the logs. Its thread alone uses it.
///
/// After an error it drops turns, and tries again at most every few seconds. When the log can be written again, the time between is a gap.
// @unchecked: only the thread of the logs calls it.
final class TurnRecorder: @unchecked Sendable {
    private let directory: StateDirectory
    private let lock: StateLock
    private let database: UInt32
    private let limit: Int
    private let retryInterval: Int64
    /// The sizes of the complete logs that no checkpoint has removed.
    private let complete = Locked<[UInt64: Int]>([:])

    private var file: TurnLogFile?
    /// The generation of the current log, or of the next one.
    private(set) var generation: UInt64
    /// The time of the last turn that was written.
    private var time: ClockReading
    private var dropped: DroppedTurns?
    /// The turns of the current log, which are dropped if another program removes or changes it.
    private var logged: DroppedTurns?
    private var retryTime: Int64 = .min
    /// The time of the last sign of life in the directory, in milliseconds since 1970.
    private var lastLife: Int64 = 0

    private let lost = Locked(0)
    /// The number of samples that were lost by errors. It may be read on any thread.
    var lostSamples: Int { lost.withLock { $0 } }
    /// The last error; `nil` if the last turn was written.
    private(set) var failure: StoreError?

    /// - Parameters:
    ///   - directory: the directory of the logs.
    ///   - lock: the lock of the directory.
    ///   - database: the identifier of the database whose targets the logs number.
    ///   - generation: the number of the first log.
    ///   - time: the time of the last turn before.
    ///   - kept: the sizes of earlier logs that no checkpoint has removed.
    ///   - settings: the limits.
    init(
        _ directory: StateDirectory, _ lock: StateLock, database: UInt32, generation: UInt64, after time: ClockReading,
        kept: [UInt64: Int] = [:], _ settings: HistoryStore.Settings
    ) {
        (self.directory, self.database, self.generation, self.time) = (directory, database, generation, time)
        self.lock = lock
        (limit, retryInterval) = (settings.logLimit, settings.retryInterval)
        complete.withLock { $0 = kept }
    }

    /// Writes a turn, or drops it.
    func record(_ turn: HistoryTurn) {
        guard failure == nil || turn.time.monotonic >= retryTime else { return drop(turn) }
        do throws(StoreError) {
            if let loss = lock.loss() { throw loss }
            if let dropped { try append(dropped.replacement) }
            dropped = nil
            try append(turn)
            failure = nil
        } catch {
            (failure, retryTime) = (error, turn.time.monotonic.addingSaturated(retryInterval))
            if file?.isLost == true { dropLog() }
            drop(turn)
        }
    }

    /// Accounts turns that the queue has dropped.
    func record(_ lost: DroppedTurns) {
        if dropped == nil { dropped = lost } else { dropped?.add(lost) }
        // They are written with the next turn.
    }

    /// The time between two signs of life in milliseconds.
    private static let lifeInterval: Int64 = 1_000

    private func drop(_ turn: HistoryTurn) {
        if turn.time.wall.elapsed(since: lastLife) >= Self.lifeInterval {
            lastLife = turn.time.wall
            directory.noteLife(at: turn.time.wall)
        }
        let before = dropped?.samples ?? 0
        dropped.add(turn, after: time.wall)
        let count = (dropped?.samples ?? 0) - before
        if count > 0 { lost.withLock { $0 += count } }
    }

    /// Sets aside a log that is lost. The time since its start is a gap, and the next log begins with the states at the end of the gap.
    private func dropLog() {
        _ = try? directory.setAside(directory.log(generation), time: time.wall)
        if var all = logged {
            lost.withLock { $0 += all.samples }
            // Turns that were dropped before came after those of the log.
            if let dropped { all.add(dropped) }
            dropped = all
        }
        leaveFile()
    }

    private func append(_ turn: HistoryTurn) throws(StoreError) {
        let file: TurnLogFile
        if let current = self.file { file = current } else { file = try create() }
        let total = complete.withLock { $0.values.reduce(0, +) } + file.size
        guard total < limit else {
            throw StoreError(
                .inputOutput, "\(directory.path): the turns since the last checkpoint have \(total) bytes, which is the limit")
        }
        try file.append(turn)
        logged.add(turn, after: time.wall)
        time = turn.time
    }

    private func create() throws(StoreError) -> TurnLogFile {
        let header = TurnLog.Header(generation: generation, database: database, boot: BootIdentifier.current, time: time)
        let new = try TurnLogFile(creating: directory.log(generation), header)
        file = new
        return new
    }

    /// Completes the current log, so that a checkpoint can read it. - Returns: the generation of the next log.
    func complete(synchronizing: Bool = false) -> UInt64 {
        guard let file, file.size > TurnLog.headerSize else { return generation }
        do throws(StoreError) { try file.requireFile() } catch {
            failure = error
            dropLog()
            return generation
        }
        if synchronizing { file.sync() }
        leaveFile()
        return generation
    }

    /// Ends the current log. The next turn begins another one.
    private func leaveFile() {
        complete.withLock { $0[generation] = file?.size }
        (file, logged) = (nil, nil)
        generation += 1
    }

    /// Continues at an earlier time, after which the history was removed.
    func `continue`(at wall: Int64) { time.wall = wall }

    /// Frees the room of logs that a checkpoint has removed. It may be called on any thread.
    func didRemove(before next: UInt64) { complete.withLock { $0 = $0.filter { $0.key >= next } } }
}
