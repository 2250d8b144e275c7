import Foundation
import Glibc
import Hosts

/// Pings and questions to a name server, whose answers cost this machine next to nothing: the processor time of a probe beside fping and
/// prometheus-blackbox-exporter, and the memory of a target of each kind.
struct KindsBenchmark {
    private let programs: Programs
    private let isQuick: Bool
    private let host: LabHost
    private let folder: URL
    private let server: Child

    static func run(_ programs: Programs, _ isQuick: Bool) throws -> [Row] {
        let benchmark = try KindsBenchmark(programs, isQuick)
        defer { benchmark.end() }
        return try benchmark.times() + benchmark.memory()
    }

    private init(_ programs: Programs, _ isQuick: Bool) throws {
        (self.programs, self.isQuick) = (programs, isQuick)
        host = try LabHost()
        try host.ip("link set lo up")
        // Both netwatch and fping may send pings without a raw socket, which would receive the answers to all others.
        try Child.run(["sh", "-c", "echo 0 2147483647 > /proc/sys/net/ipv4/ping_group_range"], in: host)
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("netwatch-kinds-\(getpid())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        server = try Child([programs.dnsResponder], in: host, output: .lines)
        _ = try server.await("the name server") { $0 == "ready" }
    }

    private func end() {
        server.stop()
        try? FileManager.default.removeItem(at: folder)
    }

    private static func address(_ number: Int) -> String { "127.\(1 + number >> 16).\(number >> 8 & 255).\(number & 255)" }

    /// Writes a file with a line for each number. - Returns: its path.
    private func file(_ name: String, _ count: Int, _ line: (Int) -> String) throws -> String {
        let file = folder.appendingPathComponent("\(name)-\(count)")
        try Data((1...count).map { line($0) + "\n" }.joined().utf8).write(to: file)
        return file.path
    }

    private func wait(_ seconds: Double) { usleep(UInt32(seconds * 1e6)) }

    /// Starts `watch` with the targets of a file.
    private func watch(_ file: String, _ interval: String) throws -> Child {
        try Child(
            [programs.netwatch, "watch", "--json", "--netns", host.path, "--interval", interval, "--targets", file],
            output: .lines)
    }

    /// The processor time of a program per second.
    private func processorTime(of child: Child, for length: Double) -> Double {
        let figures = ProcessFigures(processID: child.processID)
        let (before, start) = (figures.processorTime, Clock.now())
        wait(length)
        return Double(figures.processorTime - before) / Double(Clock.now() - start) * 1e9
    }

    // MARK: The processor time

    private func times() throws -> [Row] {
        let size = isQuick ? 1_000 : 10_000
        let length = isQuick ? 5.0 : 20.0
        func own(_ file: String) throws -> Double {
            let watch = try watch(file, "10s")
            defer { watch.stop() }
            // The first probes start together, and the second ones are spread over the interval.
            wait(13)
            return processorTime(of: watch, for: length)
        }
        let pings = try own(file("pings", size) { "ping://\(Self.address($0))" })
        let questions = try own(file("questions", size) { "dns://127.0.0.1/n\($0).example" })
        let probes = Double(size) / 10
        return try [
            fping(pings, size, length),
            exporter("ping: processor time of a probe", pings / probes, "icmp", "127.1.[1-20].[1-100]"),
            exporter("dns: processor time of a probe", questions / probes, "dns", "127.0.0.1:53&number=[1-2000]"),
        ]
    }

    private func fping(_ own: Double, _ size: Int, _ length: Double) throws -> Row {
        let what = "\(size) pings at 10 s: processor time a second"
        guard access("/usr/bin/fping", X_OK) == 0 else {
            return Row(what: what, measured: milliseconds(own), limit: "fping: not installed", ratio: nil, asked: nil, holds: nil)
        }
        let addresses = try file("addresses", size, Self.address)
        let script = "exec fping --loop --quiet --period=10000 --interval=\(10_000 / size) --file=\(addresses) 2>/dev/null"
        let fping = try Child(["sh", "-c", script], in: host)
        defer { fping.stop() }
        wait(13)
        return .against(what, own, processorTime(of: fping, for: length), milliseconds, "fping", atMost: 1.3)
    }

    private func exporter(_ what: String, _ own: Double, _ module: String, _ pattern: String) throws -> Row {
        guard BlackboxExporter.isInstalled else { return BlackboxExporter.missing(what, microseconds(own)) }
        let modules = """
              icmp: { prober: icmp, timeout: 3s }
              dns: { prober: dns, timeout: 3s, dns: { query_name: n1.example, query_type: A, preferred_ip_protocol: ip4 } }

            """
        let cost = try BlackboxExporter(in: host, folder, modules: modules).probe(pattern, count: 2_000, module: module)
        return .against(what, own, cost.processorTime, microseconds, BlackboxExporter.name, atMost: 0.5)
    }

    // MARK: The memory

    private func memory() throws -> [Row] {
        let (few, many) = isQuick ? (1_000, 10_000) : (10_000, 60_000)
        /// The resident memory in bytes with so many targets whose first probes have ended.
        func resident(_ name: String, _ count: Int, _ line: (Int) -> String) throws -> Double {
            let watch = try watch(file(name, count, line), "60s")
            defer { watch.stop() }
            wait(isQuick ? 8 : 75)
            return Double(ProcessFigures(processID: watch.processID).residentKibibytes) * 1_024
        }
        let kinds: [(name: String, limit: Double, line: (Int) -> String)] = [
            ("tcp", 1_400, { "\(Self.address($0)):9" }), ("ping", 1_400, { "ping://\(Self.address($0))" }),
            ("dns", 2_000, { "dns://127.0.0.1/n\($0).example" }),
        ]
        return try kinds.map { name, limit, line in
            let bytes = try (resident(name, many, line) - resident(name, few, line)) / Double(many - few)
            return .bound("\(name): resident memory of a further target", bytes, { "\(count($0)) bytes" }, atMost: limit)
        }
    }
}
