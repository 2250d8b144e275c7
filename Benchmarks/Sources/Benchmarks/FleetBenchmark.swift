import Foundation
import Glibc
import Hosts

/// Many TCP targets on one host, whose server and network cost next to nothing: the rate of connections, the processor time, the times of
/// the probes, and the memory. The limit is a program that only connects, with the same socket options.
struct FleetBenchmark {
    private static let port = 9000

    private let programs: Programs
    private let isQuick: Bool
    private let host: LabHost
    private let folder: URL
    private let server: Child

    static func run(_ programs: Programs, _ isQuick: Bool) throws -> [Row] {
        let benchmark = try FleetBenchmark(programs, isQuick)
        defer { benchmark.end() }
        return try benchmark.scale() + benchmark.connections() + benchmark.schedule()
    }

    private init(_ programs: Programs, _ isQuick: Bool) throws {
        (self.programs, self.isQuick) = (programs, isQuick)
        host = try LabHost()
        try host.ip("link set lo up")
        try host.ip("link add ifb0 type ifb")
        try host.ip("address add 198.51.100.2/24 dev ifb0")
        try host.ip("link set ifb0 up")
        try host.ip("route add default via 198.51.100.1")
        let script = """
            cd /proc/sys/net && echo 4096 > core/somaxconn && echo 4096 > ipv4/tcp_max_syn_backlog &&
            echo 2000 65000 > ipv4/ip_local_port_range
            """
        try Child.run(["sh", "-c", script], in: host)
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("netwatch-fleet-\(getpid())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        server = try Child([programs.tcpListener, "\(Self.port)"], in: host, output: .lines)
        _ = try server.await("the server") { $0 == "ready" }
    }

    private func end() {
        server.stop()
        try? FileManager.default.removeItem(at: folder)
    }

    /// Writes a file of targets. - Returns: its path.
    private func targets(_ count: Int) throws -> String {
        let file = folder.appendingPathComponent("targets-\(count)")
        let lines = (1...count).map { "127.\(1 + $0 >> 16).\($0 >> 8 & 255).\($0 & 255):\(Self.port)\n" }
        try Data(lines.joined().utf8).write(to: file)
        return file.path
    }

    /// The numbers that `Limits/tcp-connects.c` prints.
    private struct Connects {
        let time: Double
        let processorTime: Double
        let succeeded: Double
    }

    private func connects(_ arguments: [String]) throws -> Connects {
        let child = try Child([programs.tcpConnects] + arguments, in: host, output: .lines)
        child.wait()
        let numbers = child.output.first?.text.split(separator: " ").compactMap { Double($0) } ?? []
        guard numbers.count == 3 else { throw BenchmarkError("tcp-connects \(arguments): no result") }
        return Connects(time: numbers[0], processorTime: numbers[1], succeeded: numbers[2])
    }

    private func wait(_ seconds: Double) { usleep(UInt32(seconds * 1e6)) }

    // MARK: The rate of connections

    /// The interval asks for more connections than the processors can make.
    private func connections() throws -> [Row] {
        let file = try targets(2_000)
        let length = isQuick ? 1.0 : 4.0
        var (engine, limit) = ([Double](), [Double]())
        for _ in 0..<(isQuick ? 1 : 5) {
            let connects = try connects([isQuick ? "20000" : "100000", "\(Self.port)", "1000"])
            limit.append(connects.succeeded / connects.time * 1e9)
            let watch = try Child(
                [programs.netwatch, "watch", "--json", "--netns", host.path, "--interval", "10ms", "--targets", file],
                output: .lines)
            defer { watch.stop() }
            _ = try watch.await("the first record") { $0.contains("\"hello\"") }
            wait(2)
            let (before, start) = (try host.activeOpens(), Clock.now())
            wait(length)
            engine.append((try host.activeOpens() - before) / Double(Clock.now() - start) * 1e9)
        }
        return [
            .against(
                "TCP probes a second, 2,000 targets, as many as possible", Distribution(engine).median,
                Distribution(limit).median, count, "connect(2) in C", atLeast: 0.8)
        ]
    }

    // MARK: 10,000 targets at 10 s

    private func schedule() throws -> [Row] {
        let size = isQuick ? 1_000 : 10_000
        let file = try targets(size)
        let length = isQuick ? 5.0 : 20.0
        let watch = try Child(
            [programs.netwatch, "watch", "--json", "--netns", host.path, "--interval", "10s", "--targets", file], output: .lines)
        defer { watch.stop() }
        let figures = ProcessFigures(processID: watch.processID)
        // The first probes start together, and the second ones are spread over the interval.
        wait(13)
        let quiet = processorTime(of: figures, for: length)
        let limit = try connects(["\(size)", "\(Self.port)", "every", "10000", "for", "\(Int(length))"])
        let churn = try Child(["sh", "-c", Self.churn], in: host)
        wait(1)
        let busy = processorTime(of: figures, for: length)
        churn.stop()
        let name = "\(size) targets at 10 s: "
        let resident = Double(figures.residentKibibytes)
        let probes = Double(size) / 10
        return try [
            .against(
                name + "processor time a second", quiet, limit.processorTime / limit.time * 1e9, milliseconds, "connect(2) in C",
                atMost: 1.5),
            .bound(name + "more of it with 40 address changes a second", busy - quiet, milliseconds, atMost: 50e6),
            .bound(name + "resident memory of watch", resident, mebibytes),
            exporter(name, quiet / probes),
        ] + times(file, name)
    }

    private static let churn = """
        i=0
        while :; do
            i=$(((i + 1) % 200))
            ip address add 10.9.$i.1/32 dev ifb0; sleep 0.022; ip address del 10.9.$i.1/32 dev ifb0; sleep 0.022
        done
        """

    /// The processor time per second.
    private func processorTime(of figures: ProcessFigures, for length: Double) -> Double {
        let (before, start) = (figures.processorTime, Clock.now())
        wait(length)
        return Double(figures.processorTime - before) / Double(Clock.now() - start) * 1e9
    }

    private struct Probe: Decodable {
        struct Phases: Decodable { let connect: Double? }
        let type: String
        let target: String?
        let mono_ns: Int64
        let phases_ms: Phases?
    }

    /// The differences of the probes' starts from their grid, and the number of starts that are missing.
    private func times(_ file: String, _ name: String) throws -> [Row] {
        let watch = try Child(
            [
                programs.netwatch, "watch", "-v", "--json", "--netns", host.path, "--interval", "10s", "--targets", file, "--for",
                isQuick ? "25s" : "45s",
            ], output: .lines)
        watch.wait()
        var starts: [String: [Int64]] = [:]
        for line in watch.output where line.text.contains("\"type\":\"probe\"") {
            let probe = try JSONDecoder().decode(Probe.self, from: Data(line.text.utf8))
            guard let target = probe.target, let connect = probe.phases_ms?.connect else { continue }
            starts[target, default: []].append(probe.mono_ns - Int64(connect * 1e6))
        }
        let interval = 10e9
        var (errors, missed) = ([Double](), 0.0)
        for times in starts.values {
            // The first probe begins the grid, shifted by the target's phase.
            for (former, next) in zip(times.dropFirst(), times.dropFirst(2)) {
                let passed = (Double(next - former) / interval).rounded()
                missed += max(0, passed - 1)
                errors.append(abs(Double(next - former) - max(1, passed) * interval))
            }
        }
        return [
            .bound(name + "missing probes of \(errors.count)", missed, count, atMost: 0),
            .bound(name + "difference from the schedule, 99th percentile", Distribution(errors).p99, milliseconds, atMost: 100e6),
        ]
    }

    /// The processor time of one probe beside that of prometheus-blackbox-exporter, if it is installed.
    private func exporter(_ name: String, _ own: Double) throws -> Row {
        let what = name + "processor time of a probe"
        guard BlackboxExporter.isInstalled else { return BlackboxExporter.missing(what, microseconds(own)) }
        let exporter = try BlackboxExporter(in: host, folder, modules: "  tcp: { prober: tcp, timeout: 3s }\n")
        let cost = try exporter.probe("127.1.[1-20].[1-100]:\(Self.port)", count: 2_000, module: "tcp")
        return .against(what, own, cost.processorTime, microseconds, BlackboxExporter.name, atMost: nil)
    }

    // MARK: 100,000 targets

    private struct Document: Decodable {
        struct Target: Decodable {
            let status: String
            let ts: String
        }
        let targets: [Target]
    }

    private func scale() throws -> [Row] {
        let size = isQuick ? 10_000 : 100_000
        let file = try targets(size)
        let output = folder.appendingPathComponent("status.json")
        var (status, limit, peak, after) = ([Double](), [Double](), [Double](), [Double]())
        for _ in 0..<(isQuick ? 1 : 3) {
            limit.append(try connects(["\(size)", "\(Self.port)", "1000"]).time)
            let script = #"exec "$0" status --json --netns "$1" --targets "$2" > "$3""#
            let start = Clock.now()
            let child = try Child(["sh", "-c", script, programs.netwatch, host.path, file, output.path])
            let usage = child.waitWithUsage()
            let end = Date()
            status.append(Double(Clock.now() - start))
            peak.append(usage.peakKibibytes)
            let document = try JSONDecoder().decode(Document.self, from: Data(contentsOf: output))
            guard document.targets.count == size, document.targets.allSatisfy({ $0.status == "up" }) else {
                throw BenchmarkError("status: not every target is up")
            }
            let format = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
            let last = try document.targets.map(\.ts).max().map { try Date($0, strategy: format) } ?? end
            after.append(end.timeIntervalSince(last) * 1e9)
        }
        let watch = try Child(
            [programs.netwatch, "watch", "--json", "--netns", host.path, "--interval", "10s", "--targets", file], output: .lines)
        defer { watch.stop() }
        wait(isQuick ? 5 : 25)
        let figures = ProcessFigures(processID: watch.processID)
        let name = "\(size) targets: "
        let median = { (values: [Double]) in Distribution(values).median }
        return [
            .against(name + "netwatch status, wall", median(status), median(limit), seconds, "connect(2) in C", atMost: 1.5),
            .bound(name + "from the last result to the end", median(after), seconds, atMost: 2e9),
            // The peak of a new process includes that of its parent until it executes the program (getrusage(2)): this process is
            // small only before it has read the first document.
            .bound(name + "peak resident memory of status", peak[0], mebibytes, atMost: 150 * 1024),
            .bound(name + "resident memory of watch", Double(figures.residentKibibytes), mebibytes, atMost: 150 * 1024),
            .bound(name + "peak resident memory of watch", Double(figures.peakKibibytes), mebibytes),
        ]
    }
}
