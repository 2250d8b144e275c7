import Console
import Glibc
import Reachability

/// The report of transfers: a live display or lines on standard error, or records on standard output. Errors are always written
/// to standard error.
final class Report {
    enum Format {
        case live(TextStyle)
        case lines(isVerbose: Bool)
        case records
        case quiet
    }

    /// The number of bytes that may wait for the reader of standard output before records wait in the backlog.
    private static let leeway = 1 << 16

    /// Standard error; `nil` if it is closed.
    private var standardError: StandardOutput?
    let standardOutput: StandardOutput?
    private var display: LiveDisplay?
    private var lines: StatusLines?
    private var backlog = RecordBacklog()
    private var pacing = RecordPacing()
    private var drawnAt: Int64?
    private var isFresh = true

    /// - Throws: ``Failure`` with code 74 if records are requested and standard output is closed.
    init(_ format: Format) throws(Failure) {
        standardError = try? StandardOutput(descriptor: 2)
        let stateText = StateText(offset: Terminal.offset(at: Moment.now.wallClockNanoseconds))
        switch format {
        case .live(let style):
            let size = Terminal.size()
            display = LiveDisplay(style: style, stateText: stateText, columns: size.columns, rows: size.rows)
        case .lines(let isVerbose): lines = StatusLines(stateText: stateText, isVerbose: isVerbose)
        case .records, .quiet: break
        }
        if case .records = format { standardOutput = try StandardOutput() } else { standardOutput = nil }
    }

    // MARK: Reporting

    /// Reports the initial states.
    func begin(_ statuses: [TransferStatus], at now: Moment) {
        guard standardOutput != nil else { return }
        for (place, status) in statuses.enumerated() where pacing.isDue(status, of: place, at: now) {
            backlog.push(TransferRecord(status: status, moment: now), of: place)
        }
    }

    /// Reports an event of the transfer at this place.
    func publish(_ event: TransferEvent, _ statuses: [TransferStatus], _ place: Int, isOther: Bool, at now: Moment) {
        let status = statuses[place]
        if let line = lines?.line(event, status, isOther: isOther, at: now) { write(line) }
        if event == .finished, let line = display?.finished(status) { draw(statuses, permanent: [line], at: now) }
        if standardOutput != nil, pacing.isDue(status, of: place, at: now) {
            backlog.push(TransferRecord(status: status, moment: now), of: place)
        }
    }

    /// Writes a failure as a permanent line, in every format.
    func show(_ failure: Failure, _ statuses: [TransferStatus], at now: Moment) {
        if display != nil { draw(statuses, permanent: [failure.line], at: now) } else { write(failure.line) }
    }

    private func write(_ line: String) {
        for line in StandardError.lines(line) { standardError?.append(line: Array(line.utf8)) }
    }

    /// Redraws the display, and writes records of progress.
    func refresh(_ statuses: [TransferStatus], at now: Moment) {
        if standardOutput != nil {
            for (place, status) in statuses.enumerated() where status.phase == .moving {
                if pacing.isDue(status, of: place, at: now) {
                    backlog.push(TransferRecord(status: status, moment: now), of: place)
                }
            }
            while (standardOutput?.pendingCount ?? 0) < Self.leeway, let line = backlog.take() {
                standardOutput?.append(line: line)
            }
        }
        guard display != nil else { return }
        if let drawnAt, now.monotonicNanoseconds < drawnAt + LiveDisplay.interval, !isFresh { return }
        drawnAt = now.monotonicNanoseconds
        // A slow terminal receives fewer frames.
        guard standardError?.pendingCount == 0, !Terminal.isInBackground() else { return }
        draw(statuses, at: now)
    }

    private func draw(_ statuses: [TransferStatus], permanent: [String] = [], at now: Moment) {
        drawnAt = now.monotonicNanoseconds
        guard let text = display?.frame(statuses, permanent: permanent, isFresh: isFresh, at: now) else { return }
        isFresh = false
        standardError?.append(text)
    }

    /// Removes the display after the last transfer.
    func erase(_ statuses: [TransferStatus], at now: Moment) {
        if display != nil { draw(statuses, at: now) }
    }

    /// Updates the terminal's size.
    func resized() {
        let size = Terminal.size()
        display?.columns = size.columns
        display?.rows = size.rows
        drawnAt = nil
    }

    /// Handles SIGCONT: the screen may show the output of other programs now.
    func continued() { isFresh = true }

    /// Returns the time at which ``refresh(_:at:)`` is due, in nanoseconds.
    func deadline(_ statuses: [TransferStatus], at now: Moment) -> Int64? {
        let time = now.monotonicNanoseconds
        let isComing = statuses.contains { $0.phase == .moving || $0.phase == .connecting }
        if standardOutput != nil { return isComing ? time + RecordPacing.interval : nil }
        guard display != nil else { return nil }
        return (drawnAt ?? time) + (isComing ? LiveDisplay.interval : LiveDisplay.idleInterval)
    }

    // MARK: Writing

    /// The indexes of the outputs among the polled descriptors.
    struct Places {
        var output: Int?
        var error: Int?
    }

    func watch(_ polling: inout Polling) -> Places {
        Places(
            output: standardOutput?.watch(&polling),
            error: standardError.flatMap { $0.pendingCount > 0 ? $0.watch(&polling) : nil })
    }

    /// Writes as much as fits. - Returns: The reason why standard output accepts no more, else `nil`.
    func write(_ turn: MainLoop.Turn, _ places: Places) -> StandardOutput.Outcome? {
        // If the reader of standard error is gone, the transfers continue.
        if turn.write(standardError, at: places.error) != nil { standardError = nil }
        return turn.write(standardOutput, at: places.output)
    }

    /// Whether everything was written.
    var isDrained: Bool { (standardOutput?.pendingCount ?? 0) == 0 && backlog.isEmpty && (standardError?.pendingCount ?? 0) == 0 }
}
