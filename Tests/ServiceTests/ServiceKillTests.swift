import Expectations
import Foundation
import GRDB
import Glibc
import NetworkLab
import Testing

/// SIGKILL at random times while a thousand targets flap. `NETWATCH_KILLS` is the number of kills (`make abuse`: 50).
@Suite(.timeLimit(.minutes(20)), .requiresNamespaces) struct ServiceKillTests {
    private let scratch: ScratchDirectory
    private let host: LabHost

    init() throws {
        scratch = try ScratchDirectory()
        host = try Lab().host(loopback: true)
    }

    @Test func `no recorded incident is lost, each kill is an exact gap, and the seconds sum to the time`() throws {
        let number = ProcessInfo.processInfo.environment["NETWATCH_KILLS"].flatMap(Int.init)
        let (kills, lossLimit) = (number ?? 10, number == nil ? 15.0 : 2)
        let seed = UInt64.random(in: 0 ... .max)
        print("kills: \(kills), seed: \(seed)")
        var random = SeededGenerator(seed: seed)
        let servers = try FlappingServers(1_000, on: host, seed: seed)
        try Data(servers.configuration.utf8).write(to: URL(fileURLWithPath: scratch.file("netwatch.yaml")))
        var recorded: [String: String] = [:]
        var stops: [(last: Date, killed: Date)] = []
        var starts: [Date] = []
        var shown: [String: String] = [:]
        for _ in 0..<kills {
            let service = try start()
            let life = Duration.milliseconds(Int.random(in: 300...3_000, using: &random))
            let records = try Self.records(of: service.program, for: life)
            starts.append(try Date(record: #require(records.first).ts))
            let killed = Date()
            try service.program.signal(SIGKILL)
            _ = try? service.program.wait()
            // What the pipe still has was published, so it counts too. SIGKILL can cut off the last line, if the pipe was full.
            let lines = try service.program.remainingLines()
            let rest =
                try lines.dropLast().map { try ServiceRecord($0) }
                + [lines.last].compactMap { $0.flatMap { try? ServiceRecord($0) } }
            for record in records + rest where record.type == "gap" && record.reason == "stopped" {
                shown[record.from ?? ""] = record.to
            }
            for record in records + rest where record.type == "incident" && record.recorded == true {
                recorded[record.incident ?? ""] = record.state
            }
            stops.append((last: try Date(record: #require((records + rest).last).ts), killed: killed))
        }
        // A short life on a busy machine may have probed few targets before it was killed. The last one lasts until it has probed all of them.
        let last = try start()
        starts.append(try Date(record: #require(try Self.records(of: last.program, for: .zero).first).ts))
        try Self.awaitStatus(of: servers.count, from: last.program)
        try last.program.signal(SIGTERM)
        try expectEqual(last.program.wait(), 128 + SIGTERM, "\(last.program.ending)")

        #expect(!recorded.isEmpty)
        let history = try document(ServiceHistory.self, "history", "--since", "2h")
        // A document has at most 10,000 incidents, and 50 kills make more.
        let found = try DatabaseQueue(path: scratch.file("state/history.sqlite")).read { database in
            try Row.fetchAll(database, sql: "SELECT id, ended FROM incident").reduce(into: [String: Int64?]()) { found, row in
                found[row["id"]] = .some(row["ended"])
            }
        }
        #expect(found.count > 10_000 || (history.next == nil && history.incidents.count == found.count))
        let lost = recorded.filter { id, state in found[id] == nil || (state == "over" && found[id] == .some(nil)) }
        expectEmpty(lost, "\(lost.count) of \(recorded.count) recorded incidents are lost")
        // Each target belongs to one incident, which a kill does not end.
        #expect(history.incidents.filter { $0.to == nil }.count <= servers.count)

        let gaps = history.gaps.filter { $0.reason == "stopped" }
        // The last one is the time since the end.
        expectEqual(gaps.count, kills + 1)
        let (end, begin) = (try Date(record: #require(gaps.last).from), try #require(starts.last))
        #expect(end > begin)
        for (gap, (stop, begin)) in zip(gaps, zip(stops, starts.dropFirst())) {
            let (from, to) = (try Date(record: gap.from), try Date(record: gap.to))
            // At most 2 s of results are lost, if the service runs in time; on a machine that other tests use, a turn may be late.
            #expect(stop.killed.timeIntervalSince(from) < lossLimit, "\(gap) \(stop)")
            #expect(from <= stop.killed)
            // The history begins again before the path has settled, and the stream has the same gap.
            #expect(0..<15 ~= begin.timeIntervalSince(to), "\(gap) \(begin)")
            if let end = shown[gap.from] { expectEqual(end, gap.to) }
        }
        #expect(gaps.contains { shown[$0.from] != nil }, "no stream has a gap: \(shown)")
        try checkSums(gaps)
        let integrity = try DatabaseQueue(path: scratch.file("state/history.sqlite")).read { database in
            try String.fetchAll(database, sql: "PRAGMA integrity_check")
        }
        expectEqual(integrity, ["ok"])
    }

    /// Checks that the seconds of all states sum to the period, and that the unrecorded ones are the gaps.
    private func checkSums(_ gaps: [ServiceHistory.Gap]) throws {
        let report = try document(ServiceReport.self, "report", "--since", "48h")
        let period = try Date(record: report.until).timeIntervalSince(Date(record: report.since))
        expectEqual(report.targets.count, 1_000)
        for target in report.targets {
            let sum = target.seconds.values.reduce(0, +)
            #expect(abs(sum - period) < 0.01, "\(target.target): \(sum) of \(period)")
            #expect(target.probes > 0, "\(target.target)")
        }
    }

    private func start() throws -> ServiceProgram {
        try ServiceProgram(
            ["--json"], on: host, state: scratch.file("state"), configuration: scratch.file("netwatch.yaml"))
    }

    private func document<Value: Decodable>(_ type: Value.Type, _ command: String, _ arguments: String...) throws -> Value {
        let program = try Program(
            [try Programs.netwatch, command, "--json", "--state", scratch.file("state")] + arguments, on: host, output: .file)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        return try JSONDecoder().decode(type, from: Data(program.output.utf8))
    }

    /// Returns the first record of a program, and those of a duration after it.
    private static func records(of program: Program, for duration: Duration) throws -> [ServiceRecord] {
        var records = [try ServiceRecord(#require(try program.nextLine()))]
        let end = ContinuousClock.now + duration
        while ContinuousClock.now < end {
            guard let line = try program.lineIfAny(within: end - ContinuousClock.now) else { continue }
            records.append(try ServiceRecord(line))
        }
        return records
    }

    /// Waits until a number of targets have a status, which their first results give.
    private static func awaitStatus(of count: Int, from program: Program) throws {
        var targets: Set<String> = []
        while targets.count < count {
            let record = try ServiceRecord(#require(try program.nextLine()))
            if record.status != nil, record.status != "unknown", let target = record.target { targets.insert(target) }
        }
    }
}

/// A generator that repeats a run by its seed (SplitMix64).
private struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
        return value ^ (value >> 31)
    }
}
