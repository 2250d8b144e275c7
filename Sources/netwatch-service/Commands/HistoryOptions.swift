import ArgumentParser
import Console
import FoundationEssentials
import Glibc
import Reachability
import Records
import Wire

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

    private var format: HistoryFormat { json ? .json : csv ? .csv : .text }

    /// Reads the history, and writes the answer.
    func run(
        _ command: String, time: TimeText? = nil,
        _ answer: (HistoryAnswers, HistoryAnswers.Question, HistoryReader, Moment) throws -> some HistoryText
    ) throws {
        guard state != "" else { throw Failure.usage("--state ''", "names no directory") }
        guard !(json && csv) else { throw Failure.usage("--json --csv", "choose one of them") }
        let environment = ProcessInfo.processInfo.environment
        if state == nil, let bytes = try answerOfService(command, environment) { return try show(bytes, command, time) }
        guard connect == nil else { throw Failure.usage("--connect --state", "choose one of them") }
        let now = Moment.now
        let path = try StateDirectory.path(configured: state, environment)
        let (reader, zone): (HistoryReader, TimeZone)
        do throws(StoreError) {
            // Days are those of the service, also for a reader in another zone.
            let name = try HistoryReader.timeZone(of: StateDirectory(path: path))
            zone = name.flatMap { TimeZone(identifier: $0) } ?? TimeZone.current
            reader = try HistoryReader.open(directory: path, calendar: DayCalendar(offset: zone.offset))
        } catch { throw Failure(error) }
        defer { reader.close() }
        let period: HistoryPeriod
        do throws(HistoryPeriod.Invalid) {
            period = try HistoryPeriod(since: since, until: until, now: now.milliseconds, offset: zone.offset)
        } catch { throw Failure.usage("--\(error.parameter)", error.reason) }
        do {
            let question = HistoryAnswers.Question(period: period, target: target, hasPages: format == .json)
            let answers = HistoryAnswers(
                source: HistorySource(instance: HostName.current, state: path, isService: false), timeZone: zone.identifier)
            try show(format.bytes(try answer(answers, question, reader, now)), command, time)
        } catch let error as StoreError {
            throw Failure(error)
        }
    }

    private func show(_ bytes: [UInt8], _ command: String, _ time: TimeText?) throws {
        let output = try StandardOutput()
        let bytes = time.map { Array(Self.retimed(String(decoding: bytes, as: UTF8.self), $0, now: Moment.now).utf8) } ?? bytes
        if format == .text, isatty(output.descriptor) == 1 {
            let columns = TerminalSize.columns(of: output.descriptor)
            for line in Self.wrapped(String(decoding: bytes, as: UTF8.self), columns, command) {
                output.append(line: Array(line.utf8))
            }
            return try output.flush()
        }
        output.append(piece: bytes)
        if bytes.last != UInt8(ascii: "\n") { output.append("\n") }
        try output.flush()
    }

    /// Returns the text with other times in place of the UTC times with which its lines begin.
    static func retimed(_ text: String, _ time: TimeText, now: Moment) -> String {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map {
            line -> (time: String?, text: Substring) in
            guard let moment = moment(line.prefix(24)) else { return (nil, line) }
            return (time.past(moment, now: now), line.dropFirst(24))
        }
        let width = lines.compactMap(\.time?.count).max() ?? 0
        return lines.map { ($0.time.map { TextStyle.pad($0, width) } ?? "") + $0.text }.joined(separator: "\n")
    }

    private static func moment(_ text: Substring) -> Moment? {
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        guard text.utf8.count == 24, let date = try? Date(String(text), strategy: style) else { return nil }
        return Moment(
            monotonicNanoseconds: 0, wallClockNanoseconds: Int64((date.timeIntervalSince1970 * 1_000).rounded()) * 1_000_000)
    }

    /// Returns the lines of a text in as many lines as they need on a terminal. A line of `history` continues behind its time.
    static func wrapped(_ text: String, _ columns: Int, _ command: String) -> [String] {
        text.split(separator: "\n", omittingEmptySubsequences: false).flatMap { line in
            WrappedText.lines(String(line), columns: max(1, columns - 1), indentation: command == "history" ? 26 : 4)
        }
    }

    /// Returns the answer of the running service; `nil` if none runs and none was named.
    private func answerOfService(_ command: String, _ environment: [String: String]) throws(Failure) -> [UInt8]? {
        let connection: ServiceConnection
        do throws(Failure) {
            connection = try ServiceConnection(connect.flatMap { $0.isEmpty ? nil : $0 }, environment)
        } catch {
            if connect == nil, error.code == ExitCode.unavailable { return nil }
            throw error
        }
        var query = ["format=\(format.rawValue)"]
        if command == "report" { query.append("report=1") }
        for (name, value) in [("since", since), ("until", until), ("target", target)] {
            if let value { query.append("\(name)=\(PercentEncoding.encode(value))") }
        }
        do throws(Failure) { return try connection.document("/api/v1/history?\(query.joined(separator: "&"))") } catch {
            // The service names the parameter; the user has given an option.
            let isOption = ["since", "until"].contains { error.message.hasPrefix("\($0): ") }
            throw error.code == ExitCode.usage && isOption ? Failure(error.code, "--\(error.message)") : error
        }
    }
}
