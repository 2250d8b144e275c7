import Console
import Glibc
import Reachability

/// Tells of transfers: on standard error as a picture or in lines, or on standard output in records; errors always on standard error.
final class Report {
    enum Format {
        case live(TextStyle)
        case lines(isVerbose: Bool)
        case records
        case quiet
    }

    /// How much may wait for standard output's reader until records wait in the backlog.
    private static let leeway = 1 << 16

    /// `nil` where it is closed: then nobody is told.
    private var standardError: StandardOutput?
    let standardOutput: StandardOutput?
    private var picture: LivePicture?
    private var lines: StatusLines?
    private var backlog = RecordBacklog()
    private var pacing = RecordPacing()
    private var drawnAt: Int64?
    private var isFresh = true

    /// - Throws: ``Failure`` with code 74 where records are asked for and standard output is closed.
    init(_ format: Format) throws(Failure) {
        standardError = try? StandardOutput(descriptor: 2)
        let words = StateWords(offset: Terminal.offset(at: Clock.now.wallClockNanoseconds))
        switch format {
        case .live(let style):
            let size = Terminal.size
            picture = LivePicture(style: style, words: words, columns: size.columns, rows: size.rows)
        case .lines(let isVerbose): lines = StatusLines(words: words, isVerbose: isVerbose)
        case .records, .quiet: break
        }
        if case .records = format { standardOutput = try StandardOutput() } else { standardOutput = nil }
    }

    // MARK: What is told

    /// Nothing has begun.
    func begin(_ statuses: [TransferStatus], at now: Moment) {
        guard standardOutput != nil else { return }
        for (place, status) in statuses.enumerated() where pacing.isDue(status, of: place, at: now) {
            backlog.push(TransferRecord(status: status, moment: now), of: place)
        }
    }

    /// An event has been seen by the transfer at this place.
    func tell(_ event: TransferEvent, _ statuses: [TransferStatus], _ place: Int, isOther: Bool, at now: Moment) {
        let status = statuses[place]
        if let line = lines?.line(event, status, isOther: isOther, at: now) { write(line) }
        if event == .finished, let line = picture?.finished(status) { draw(statuses, permanent: [line], at: now) }
        if standardOutput != nil, pacing.isDue(status, of: place, at: now) {
            backlog.push(TransferRecord(status: status, moment: now), of: place)
        }
    }

    /// A line that stays, whatever else is told.
    func say(_ failure: Failure, _ statuses: [TransferStatus], at now: Moment) {
        if picture != nil { draw(statuses, permanent: [failure.line], at: now) } else { write(failure.line) }
    }

    private func write(_ line: String) { standardError?.append(line: Array(line.utf8)) }

    /// Time has passed: the picture is drawn anew, records of progress are made.
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
        guard picture != nil else { return }
        if let drawnAt, now.monotonicNanoseconds < drawnAt + LivePicture.interval, !isFresh { return }
        drawnAt = now.monotonicNanoseconds
        // A terminal that does not keep up gets fewer pictures.
        guard standardError?.pendingCount == 0, !Terminal.isInBackground else { return }
        draw(statuses, at: now)
    }

    private func draw(_ statuses: [TransferStatus], permanent: [String] = [], at now: Moment) {
        drawnAt = now.monotonicNanoseconds
        guard let text = picture?.frame(statuses, permanent: permanent, isFresh: isFresh, at: now) else { return }
        isFresh = false
        standardError?.append(text)
    }

    /// The picture has nothing left to show.
    func erase(_ statuses: [TransferStatus], at now: Moment) {
        if picture != nil { draw(statuses, at: now) }
    }

    /// The terminal has another size.
    func resized() {
        let size = Terminal.size
        picture?.columns = size.columns
        picture?.rows = size.rows
        drawnAt = nil
    }

    /// The program was stopped, and goes on: whatever is on the screen now is not ours.
    func continued() { isFresh = true }

    /// When ``refresh(_:at:)`` is due.
    func deadline(_ statuses: [TransferStatus], at now: Moment) -> Int64? {
        let time = now.monotonicNanoseconds
        let isComing = statuses.contains { $0.phase == .moving || $0.phase == .connecting }
        if standardOutput != nil { return isComing ? time + RecordPacing.interval : nil }
        guard picture != nil else { return nil }
        return (drawnAt ?? time) + (isComing ? LivePicture.interval : LivePicture.idleInterval)
    }

    // MARK: Writing

    /// Places among what is polled.
    struct Places {
        var output: Int?
        var error: Int?
    }

    func watch(_ polling: inout Polling) -> Places {
        Places(
            output: standardOutput?.watch(&polling),
            error: standardError.flatMap { $0.pendingCount > 0 ? $0.watch(&polling) : nil })
    }

    /// Writes what fits. - Returns: why standard output takes no more.
    func write(_ turn: MainLoop.Turn, _ places: Places) -> StandardOutput.Outcome? {
        // Nobody reads it any more: the transfers go on all the same.
        if turn.write(standardError, at: places.error) != nil { standardError = nil }
        return turn.write(standardOutput, at: places.output)
    }

    /// Whether all has been written.
    var isDrained: Bool { (standardOutput?.pendingCount ?? 0) == 0 && backlog.isEmpty && (standardError?.pendingCount ?? 0) == 0 }
}
