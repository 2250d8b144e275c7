import ArgumentParser
import Console
import FoundationEssentials
import Reachability

/// The options of `history` and `report`: the period, the target, the format and the source.
struct HistoryOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The start of the period: a duration ago, or a time (default 24h).", valueName: "time"))
    var since: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("The end of the period (default: now).", valueName: "time"))
    var until: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("Only this target: its id, name or text.", valueName: "name"))
    var target: String?

    @Flag(help: "Write JSON.")
    var json = false

    @Flag(help: "Write comma-separated values.")
    var csv = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Read the files of this directory instead of asking the running service.", valueName: "directory"))
    var state: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Ask the service at this Unix socket (default: that of the system or of the user).", valueName: "socket"))
    var connect: String?

    /// The parts of the answer in each format.
    struct Answer {
        var json: () -> [UInt8]
        var csv: () -> [UInt8]
        var lines: () -> [String]
    }

    /// Reads the history, and writes the answer.
    func run(
        _ command: String, _ answer: (HistoryAnswers, HistoryAnswers.Question, HistoryReader, Moment) throws -> Answer
    ) throws {
        guard !(json && csv) else { throw Failure.usage("--json --csv", "choose one of them") }
        let environment = ProcessInfo.processInfo.environment
        let zone = TimeZone.current
        let offset: TimeZoneOffset = {
            Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double($0) / 1_000))) * 1_000
        }
        let now = Clock.now
        let period: HistoryPeriod
        do throws(HistoryPeriod.Invalid) {
            period = try HistoryPeriod(since: since, until: until, now: now.milliseconds, offset: offset)
        } catch { throw Failure.usage("--\(error.parameter)", error.reason) }
        let path = try StateDirectory.path(configured: state, environment)
        let reader: HistoryReader
        do throws(StoreError) {
            reader = try HistoryReader.open(directory: path, calendar: DayCalendar(offset: offset))
        } catch { throw Failure(error) }
        defer { reader.close() }
        do {
            let question = HistoryAnswers.Question(period: period, target: target)
            let result = try answer(HistoryAnswers(timeZone: zone.identifier), question, reader, now)
            try write(result)
        } catch let error as StoreError {
            throw Failure(error)
        }
    }

    private func write(_ answer: Answer) throws {
        if csv {
            let output = try StandardOutput()
            output.append(piece: answer.csv())
            try output.flush()
        } else if json {
            try CommandProgram.show(String(decoding: answer.json(), as: UTF8.self))
        } else {
            try CommandProgram.show(answer.lines().joined(separator: "\n"))
        }
    }
}
