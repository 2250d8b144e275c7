import Foundation
import Glibc
import Hosts

/// Probes of tls, http and https targets on one host, whose server is an nginx of one process: their rate, their processor time and their
/// memory, beside prometheus-blackbox-exporter with the same targets.
struct LevelsBenchmark {
    private static let httpPort = 9080
    private static let tlsPorts = 9200..<9400
    /// The ports of a server without TLS 1.3.
    private static let olderPorts = 9400..<9600
    // As many names as a certificate usually has.
    private static let addresses = 1...10

    private let programs: Programs
    private let isQuick: Bool
    private let host: LabHost
    private let folder: WorkFolder
    private let certificate: SelfSignedCertificate
    private let nginx: Nginx
    private let exporter: BlackboxExporter?

    static func run(_ programs: Programs, _ isQuick: Bool) throws -> [Row] {
        let benchmark = try LevelsBenchmark(programs, isQuick)
        return try [Kind.tls, .tls12, .http, .https].flatMap(benchmark.probes) + benchmark.memory()
    }

    private init(_ programs: Programs, _ isQuick: Bool) throws {
        (self.programs, self.isQuick) = (programs, isQuick)
        host = try LabHost()
        try host.ip("link set lo up")
        let script = "cd /proc/sys/net && echo 4096 > core/somaxconn && echo 2000 65000 > ipv4/ip_local_port_range"
        try Child.run(["sh", "-c", script], in: host)
        folder = try WorkFolder()
        certificate = try SelfSignedCertificate(for: Self.addresses.map { "127.0.0.\($0)" }, in: folder)
        let listen = { (ports: Range<Int>) in ports.map { "listen \($0) ssl backlog=4096;" }.joined(separator: " ") }
        nginx = try Nginx(
            folder, in: host,
            http: """
                access_log off;
                \(certificate.configuration)
                ssl_session_tickets off;
                """,
            servers: [
                "listen \(Self.httpPort) backlog=4096; location / { return 200 ok; }",
                "ssl_protocols TLSv1.2 TLSv1.3; \(listen(Self.tlsPorts)) location / { return 200 ok; }",
                "ssl_protocols TLSv1.2; \(listen(Self.olderPorts)) location / { return 200 ok; }",
            ])
        exporter =
            BlackboxExporter.isInstalled
            ? try BlackboxExporter(in: host, URL(fileURLWithPath: folder.path), modules: Self.modules(certificate)) : nil
    }

    private static func modules(_ certificate: SelfSignedCertificate) -> String {
        let trust = "tls_config: { ca_file: \(certificate.file) }"
        let http = "{ prober: http, timeout: 3s, http: { enable_http2: false, \(trust) } }"
        return """
              tls: { prober: tcp, timeout: 3s, tcp: { tls: true, \(trust) } }
              http: \(http)
              https: \(http)

            """
    }

    // MARK: Rate and processor time

    private enum Kind: String {
        case tls
        case tls12 = "tls (1.2)"
        case http
        case https

        /// The module of the exporter.
        var module: String { self == .tls12 ? "tls" : rawValue }
        var fileName: String { self == .tls12 ? "tls12" : rawValue }
    }

    private let size = 2_000

    /// Writes a file of targets that differ in their address and port, or in their path. - Returns: its path.
    private func targets(_ kind: Kind, _ count: Int) throws -> String {
        let lines = (0..<count).map { number in
            switch kind {
            case .tls: "tls://127.0.0.\(1 + number % 10):\(Self.tlsPorts.lowerBound + number / 10)\n"
            case .tls12: "tls://127.0.0.\(1 + number % 10):\(Self.olderPorts.lowerBound + number / 10)\n"
            case .http: "http://127.0.0.1:\(Self.httpPort)/\(number)\n"
            case .https: "https://127.0.0.\(1 + number % 10):\(Self.tlsPorts.lowerBound)/\(number)\n"
            }
        }
        let file = folder.file("\(kind.fileName)-\(count)")
        try Data(lines.joined().utf8).write(to: URL(fileURLWithPath: file))
        return file
    }

    /// A pattern of curl(1) for the same number of targets.
    private func pattern(_ kind: Kind) -> String {
        let range = kind == .tls12 ? Self.olderPorts : Self.tlsPorts
        let ports = "[\(range.lowerBound)-\(range.upperBound - 1)]"
        return switch kind {
        case .tls, .tls12: "127.0.0.[1-10]:\(ports)"
        case .http: "http://127.0.0.1:\(Self.httpPort)/[1-\(size)]"
        case .https: "https://127.0.0.[1-10]:\(ports)/"
        }
    }

    private func watch(_ file: String, interval: String) throws -> Child {
        try Child(
            [
                programs.netwatch, "watch", "--json", "--netns", host.path, "--interval", interval, "--cafile",
                certificate.file, "--targets", file,
            ], output: .lines)
    }

    private func probes(_ kind: Kind) throws -> [Row] {
        let file = try targets(kind, size)
        try checkAllUp(file)
        let length = isQuick ? 1.0 : 5.0
        var (rates, times): ([Double], [Double]) = ([], [])
        var others: [BlackboxExporter.Cost] = []
        for _ in 0..<(isQuick ? 1 : 5) {
            let fast = try watch(file, interval: "10ms")
            usleep(3_000_000)
            let (before, start) = (try host.activeOpens(), Clock.now())
            usleep(UInt32(length * 1e6))
            rates.append((try host.activeOpens() - before) / Double(Clock.now() - start) * 1e9)
            fast.stop()
            let steady = try watch(file, interval: "2s")
            usleep(5_000_000)
            let figures = ProcessFigures(processID: steady.processID)
            let (opens, time) = (try host.activeOpens(), figures.processorTime)
            usleep(UInt32(length * 1e6))
            times.append(Double(figures.processorTime - time) / (try host.activeOpens() - opens))
            steady.stop()
            guard let exporter else { continue }
            let slow = try exporter.probe(pattern(kind), count: size, module: kind.module)
            let quick = try exporter.probe(pattern(kind), count: size, module: kind.module, parallel: 64)
            others.append(BlackboxExporter.Cost(processorTime: slow.processorTime, rate: quick.rate))
        }
        let name = "\(kind.rawValue) probes, \(size) targets: "
        let (rateName, timeName) = (name + "a second, as many as possible", name + "processor time of a probe")
        let (rate, time) = (Distribution(rates).median, Distribution(times).median)
        guard !others.isEmpty else {
            return [
                BlackboxExporter.missing(rateName, count(rate)), BlackboxExporter.missing(timeName, microseconds(time)),
            ]
        }
        return [
            .against(
                rateName, rate, Distribution(others.map(\.rate)).median, count, BlackboxExporter.name, atLeast: 1),
            .rounds(timeName, times, others.map(\.processorTime), microseconds, BlackboxExporter.name, atMost: 0.6),
        ]
    }

    private struct Document: Decodable {
        struct Target: Decodable {
            let status: String
        }
        let targets: [Target]
    }

    private func checkAllUp(_ file: String) throws {
        let output = folder.file("status.json")
        let script = #"exec "$0" status --json --netns "$1" --cafile "$2" --targets "$3" > "$4""#
        let child = try Child(
            ["sh", "-c", script, programs.netwatch, host.path, certificate.file, file, output])
        child.wait()
        let document = try JSONDecoder().decode(Document.self, from: Data(contentsOf: URL(fileURLWithPath: output)))
        guard document.targets.allSatisfy({ $0.status == "up" }) else {
            throw BenchmarkError("status --targets \(file): not every target is up")
        }
    }

    // MARK: Memory

    private func memory() throws -> [Row] {
        let size = isQuick ? 1_000 : 10_000
        let file = try targets(.https, size)
        let watch = try watch(file, interval: "10s")
        defer { watch.stop() }
        usleep(isQuick ? 5_000_000 : 30_000_000)
        let figures = ProcessFigures(processID: watch.processID)
        let name = "\(size) https targets at 10 s: "
        return [
            .bound(name + "resident memory of watch", Double(figures.residentKibibytes), mebibytes, atMost: 60 * 1024),
            .bound(name + "peak resident memory of watch", Double(figures.peakKibibytes), mebibytes),
        ]
    }
}
