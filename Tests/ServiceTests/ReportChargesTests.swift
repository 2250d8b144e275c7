import Expectations
import Foundation
import Glibc
import NetworkLab
import Testing

/// The report charges the right side: a network of 51 targets in which five things break one after another, with a log of what was broken when.
/// `NETWATCH_FAULT_SECONDS` is the duration of each of them, at least 14 (`make verify SHARD=5`: 36, so that all last four minutes). A machine whose
/// processors are too busy for its probes has outages of its own.
@Suite(.timeLimit(.minutes(20)), .requiresNamespaces) struct ReportChargesTests {
    /// The number of results that decide about the latency.
    private static let window = 5
    /// How late a probe or the log may be on a busy machine, in seconds.
    private static let delay = 1.0
    private static let family = FaultNetwork.Family.ipv4
    private static let first = (100..<118).map { "198.51.100.\($0)" }
    private static let second = (100..<117).map { "192.0.2.\($0)" }
    private static let silentHost = "192.0.2.200"
    private static let ports = (0..<5).map { 9_000 + UInt16($0) }
    private static let stoppedServer = "198.51.100.150"
    private static let nameServer = "198.51.100.53"
    private static let names = (0..<5).map { "host\($0).domain\($0).example" }
    private static let inTunnel = (11..<16).map { "10.8.0.\($0)" }

    /// What the log has of a fault: the state of its targets while it lasts.
    private struct Outage {
        let name: String
        let targets: Set<String>
        let state: String
        var duration = 0.0
    }

    private let network: FaultNetwork
    private let scratch: ScratchDirectory
    private let resolver: NameServer
    private let tunnel: UserTunnel

    init() throws {
        scratch = try ScratchDirectory()
        network = try FaultNetwork(nameServers: [Self.nameServer])
        try network.addProvider()
        let beyond = try network.beyond
        try beyond.provider.ip("addr add 192.0.2.1/24 dev pf0")
        let addresses = Self.first + Self.second + [Self.silentHost, Self.stoppedServer, Self.nameServer]
        try beyond.far.ipBatch(addresses.map { "addr add \($0)/24 dev f0" })
        try network.router.ip("route add 192.0.2.0/24 via \(Self.family.provider)")
        for port in Self.ports { network.hold(try beyond.far.serve(at: Self.silentHost, port: port)) }
        let zone = Dictionary(uniqueKeysWithValues: zip(Self.names, Self.first.map { [$0] }))
        resolver = try NameServer(.zone(zone, ttl: 0), in: beyond.far.path, address: Self.nameServer)
        // Servers at the far end of a tunnel.
        tunnel = try UserTunnel(network.client, "tun0", network.router, "rtun0")
        try network.router.ipBatch(["link set rtun0 up"] + (["10.8.0.1"] + Self.inTunnel).map { "addr add \($0)/24 dev rtun0" })
        try network.client.ipBatch(["link set tun0 up", "addr add 10.8.0.2/24 dev tun0"])
        network.hold(try network.router.serve(port: FaultNetwork.port))
    }

    private static func targets(_ hosts: [String], _ port: UInt16 = FaultNetwork.port) -> [String] {
        hosts.map { "\($0):\(port)" }
    }

    private static var silentTargets: [String] { ports.map { "\(silentHost):\($0)" } }
    private static var stoppedTarget: String { "\(stoppedServer):9100" }
    private static var behindProvider: [String] {
        targets(first + second + names) + silentTargets + [stoppedTarget]
    }

    private static let length = ProcessInfo.processInfo.environment["NETWATCH_FAULT_SECONDS"].flatMap(Double.init)

    @Test(.requiresTun, .requires(variable: "NETWATCH_FAULT_SECONDS"))
    func `the seconds of five faults of 51 targets agree with their log, and none is charged to another side`() throws {
        let length = try #require(Self.length)
        let (interval, timeout) = (2, 2)
        let all = Self.behindProvider + Self.targets(Self.inTunnel)
        expectEqual(all.count, 51)
        let configuration = """
            interval: \(interval)s
            probe_timeout: \(timeout)s
            fail_after: 2
            open_after: 5s
            thresholds: {rtt: 200ms, window: \(Self.window), loss: none}
            targets: [\(all.map { "\"\($0)\"" }.joined(separator: ", "))]
            """
        try Data(configuration.utf8).write(to: URL(fileURLWithPath: scratch.file("netwatch.yaml")))
        var server: Server? = try serveStoppedTarget()
        let service = try start()
        var stream = ServiceStream(service)
        try stream.awaitUp(all)
        var log: [Outage] = []
        func outage(_ name: String, _ targets: [String], _ state: String, _ make: () throws -> Void, end: () throws -> Void)
            throws
        {
            var outage = Outage(name: name, targets: Set(targets), state: state)
            let began = ContinuousClock.now
            try make()
            try stream.read(for: .seconds(length))
            try end()
            outage.duration = began.duration(to: .now) / .seconds(1)
            log.append(outage)
            try stream.awaitUp(all)
            try stream.read(for: .seconds(length / 3))
        }

        let beyond = try network.beyond
        try outage("a server's process has ended", [Self.stoppedTarget], "down") {
            server?.close()
            server = nil
        } end: {
            server = try serveStoppedTarget()
        }
        try outage("a host is silent", Self.silentTargets, "down") {
            try beyond.far.filter(.input, "ip daddr \(Self.silentHost) drop")
        } end: {
            try beyond.far.removeFilters()
        }
        try outage("the provider is dead", Self.behindProvider, "unreachable") {
            try beyond.provider.silence("p0")
        } end: {
            try beyond.provider.removeFilters()
        }
        let zone = Dictionary(uniqueKeysWithValues: zip(Self.names, Self.first.map { [$0] }))
        try outage("the resolver is dead", Self.targets(Self.names), "unreachable") {
            resolver.setBehavior(.silent)
        } end: {
            resolver.setBehavior(.zone(zone, ttl: 0))
        }
        try outage("the tunnel is slow", Self.targets(Self.inTunnel), "degraded") {
            tunnel.delay(by: .milliseconds(150))
        } end: {
            tunnel.delay(by: .zero)
        }
        try service.signal(SIGTERM)
        try expectEqual(service.wait(within: .seconds(60)), 128 + SIGTERM, "\(service.ending)")
        let report = try self.report()
        try check(report, log, all, interval: Double(interval), timeout: Double(timeout))
        check(stream.incidents, log)
        withExtendedLifetime(server) {}
    }

    /// Compares the seconds of each target with the log.
    ///
    /// The status changes with the second failure, one interval after the first, and a silent probe fails at its end. Each outage may differ by one
    /// interval and one timeout, because probes begin at any time of it. The log is that of this process, which a busy machine delays too.
    private func check(
        _ report: ServiceReport, _ log: [Outage], _ all: [String], interval: Double, timeout: Double
    ) throws {
        var differences: [String] = []
        expectEqual(report.targets.count, all.count)
        for target in report.targets {
            let own = log.filter { $0.targets.contains(target.target) }
            for state in ["down", "unreachable", "degraded"] {
                let outages = own.filter { $0.state == state }
                let found = target.seconds[state] ?? 0
                let counted = state == "degraded" ? 0 : interval
                let expected = outages.reduce(0) { $0 + $1.duration - counted }
                // The latency of a target ends when a complete window is clear of it.
                let further = state == "degraded" ? interval * Double(Self.window * outages.count) : 0
                if abs(found - expected) > (interval + timeout + Self.delay) * Double(own.count) + further {
                    differences.append("\(target.target): \(found) s \(state) in place of \(expected)")
                }
            }
        }
        let kinds = log.map { "\($0.name): \($0.duration) s" }.joined(separator: ", ")
        expectEmpty(differences, "\(differences.joined(separator: "\n"))\n\(kinds)")
    }

    /// Compares the incidents with the log: one for each outage.
    private func check(_ incidents: [String: ServiceStream.Incident], _ log: [Outage]) {
        let resolver = "resolver \(Self.nameServer) over"
        // The name server is behind the provider, so the names that it does not resolve then are the gateway's.
        let found = incidents.values.map { "\($0.subject) \($0.state)" }.sorted()
        let slow = Self.targets(Self.inTunnel).map { "target \($0) over" }
        let expected = [
            "gateway \(Self.family.gateway()) over", "host \(Self.silentHost) over", resolver,
            "target \(Self.stoppedTarget) over",
        ]
        expectEqual(found, (expected + slow).sorted())
    }

    private func serveStoppedTarget() throws -> Server {
        try network.beyond.far.serve(at: Self.stoppedServer, port: 9_100)
    }

    /// Starts the service on the client, with the client's resolv.conf.
    private func start() throws -> Program {
        _ = try Programs.built("netwatch-service")
        return try program(
            "serve", "--json", "--state", scratch.file("state"), "--config", scratch.file("netwatch.yaml"), "--listen",
            "127.0.0.1:0")
    }

    private func report() throws -> ServiceReport {
        let program = try program("report", "--json", "--state", scratch.file("state"), "--since", "1h", output: .file)
        try expectEqual(program.wait(within: .seconds(60)), 0, "\(program.ending)")
        return try JSONDecoder().decode(ServiceReport.self, from: Data(program.output.utf8))
    }

    private func program(_ arguments: String..., output: Program.Output = .pipe) throws -> Program {
        let script = #"mount --bind "$0" /etc && exec "$@""#
        return try Program(
            ["unshare", "--mount", "sh", "-c", script, network.etc.path, try Programs.netwatch] + arguments, on: network.client,
            environment: [
                "NOTIFY_SOCKET": nil, "LISTEN_FDS": nil, "XDG_RUNTIME_DIR": nil, "RUNTIME_DIRECTORY": scratch.file(""),
            ],
            output: output)
    }
}

/// The records of the service: the targets that are up, and the incidents.
private struct ServiceStream {
    struct Incident {
        var subject: String
        var state: String
    }

    private let program: Program
    private(set) var incidents: [String: Incident] = [:]
    private var statuses: [String: String] = [:]
    private var last = ""

    init(_ program: Program) { self.program = program }

    /// Reads until targets are up.
    mutating func awaitUp(_ targets: [String]) throws {
        let end = ContinuousClock.now + .seconds(120)
        while !targets.allSatisfy({ statuses[$0] == "up" }) {
            guard ContinuousClock.now < end, try next(within: end - .now) else {
                let missing = targets.filter { statuses[$0] != "up" }.map { "\($0) \(statuses[$0] ?? "unknown")" }
                throw LabError("not up: \(missing.joined(separator: ", ")); \(program.ending)")
            }
        }
    }

    /// Reads for a duration.
    mutating func read(for duration: Duration) throws {
        let end = ContinuousClock.now + duration
        while ContinuousClock.now < end { _ = try next(within: end - .now) }
    }

    private mutating func next(within limit: Duration) throws -> Bool {
        guard limit > .zero, let line = try program.lineIfAny(within: limit) else { return false }
        let record = try ServiceRecord(line)
        #expect(record.ts >= last, "\(line) after \(last)")
        last = record.ts
        if record.type == "target", let target = record.target { statuses[target] = record.status }
        guard record.type == "incident", let id = record.incident, let state = record.state, let subject = record.subject else {
            return true
        }
        if let into = record.into { #expect(incidents[into] != nil, "\(line)") }
        incidents[id] = Incident(subject: "\(subject.kind) \(subject.name ?? "")", state: state)
        return true
    }
}
