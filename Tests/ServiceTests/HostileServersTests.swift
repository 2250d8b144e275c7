import Expectations
import Foundation
import Glibc
import MemoryCertificates
import NetworkLab
import Testing

/// Servers that make their clients compute, among the targets of a service. `NETWATCH_ABUSE_SECONDS` is the time of the test
/// (`make abuse`: 60).
@Suite(.timeLimit(.minutes(20)), .requiresNamespaces) struct HostileServersTests {
    private static let good = 270
    /// The number of good ones whose schedule is measured.
    private static let measured = 30
    private static let hostile = 30
    private static let firstHostilePort = 25_000
    private let scratch: ScratchDirectory
    private let host: LabHost

    init() throws {
        scratch = try ScratchDirectory()
        host = try Lab().host(loopback: true)
    }

    @Test func `hostile TLS servers delay neither the probes of others nor the watchdog`() throws {
        let seconds = ProcessInfo.processInfo.environment["NETWATCH_ABUSE_SECONDS"].flatMap(Int.init)
        try writeCertificates()
        let hostile = try Program(
            ["nice", "-n", "10", "/usr/bin/python3", "-c", Self.hostileServers, "\(Self.hostile)", scratch.path], on: host)
        let good = try Program(
            ["/usr/bin/python3", "-c", Self.goodServers, "\(Self.good)", scratch.file("notify")], on: host, input: .pipe)
        for program in [hostile, good] where try program.nextLine() != "ready" { throw LabError(program.ending) }
        let targets =
            (0..<Self.good).map { number in
                // The connections of a TCP probe are not complete for the server, and those of HTTP are.
                let scheme = number < Self.measured ? "http://" : ""
                return "  - \(scheme)127.0.0.1:\(FlappingServers.firstPort + number)\n"
            }
            + (0..<Self.hostile).map { "  - tls://127.0.0.1:\(Self.firstHostilePort + $0)\n" }
        try Data("interval: 1s\ntargets:\n\(targets.joined())".utf8)
            .write(to: URL(fileURLWithPath: scratch.file("netwatch.yaml")))
        let service = try ServiceProgram(
            ["-q"], on: host, state: scratch.file("state"), configuration: scratch.file("netwatch.yaml"), output: .null,
            environment: ["NOTIFY_SOCKET": scratch.file("notify"), "WATCHDOG_USEC": "2000000"])

        // Each good target is probed so many times, however busy the machine is.
        let probes = seconds ?? 10
        let deadline = ContinuousClock.now + .seconds(probes + (seconds == nil ? 120 : 10))
        while try report(service).filter({ Self.isGood($0.target) }).map(\.probes).min() ?? 0 < probes {
            guard ContinuousClock.now < deadline else { throw LabError("the targets are not probed: \(good.ending)") }
            usleep(500_000)
        }
        for target in try report(service) where Self.isGood(target.target) {
            let failed = ["down", "unreachable", "degraded"].contains { target.seconds[$0] ?? 0 > 0 }
            #expect(!failed && target.worst.isEmpty, "\(target)")
        }
        // On a busy machine, the servers' own computations may take longer than a probe waits, those of the group for minutes on end.
        let codes: Set = seconds == nil ? ["excessive-cost", "handshake-stalled"] : ["excessive-cost"]
        while try status(service).targets.filter({ $0.status == "down" && codes.contains($0.cause?.code ?? "") }).count
            < Self.hostile
        {
            guard ContinuousClock.now < deadline + .seconds(240) else { throw LabError("\(try status(service).targets)") }
            usleep(500_000)
        }

        good.closeInput()
        let measured = try #require(try good.nextLine()).split(separator: " ").compactMap { Double($0) }
        try #require(measured.count == 2)
        print(
            "good targets: the 99th percentile of delays is \(measured[0]) s; the longest time without the watchdog \(measured[1]) s"
        )
        // On a machine that also runs other tests, only the order of magnitude says something.
        #expect(measured[0] < (seconds == nil ? 5 : 0.1) && measured[1] < (seconds == nil ? 10 : 2))
    }

    private static func isGood(_ target: String) -> Bool { !target.hasPrefix("tls://") }

    // MARK: The service

    private struct Status: Decodable {
        struct Target: Decodable {
            var target: String
            var status: String
            var cause: TargetEvidence.Cause?
        }

        var targets: [Target]
    }

    private func report(_ service: ServiceProgram) throws -> [ServiceReport.Target] {
        let text = try host.run("curl", "-s", "http://\(service.address)/api/v1/history?report=1&since=2h")
        return try JSONDecoder().decode(ServiceReport.self, from: Data(text.utf8)).targets
    }

    private func status(_ service: ServiceProgram) throws -> Status {
        let text = try host.run("curl", "-s", "http://\(service.address)/api/v1/status?limit=1000")
        return try JSONDecoder().decode(Status.self, from: Data(text.utf8))
    }

    // MARK: The servers

    /// Writes the chain and the key of each kind of server.
    private func writeCertificates() throws {
        let root = try MemoryCertificate("Root", isAuthority: true)
        let leaf = try MemoryCertificate("leaf", issuer: root, names: ["IP:127.0.0.1"], algorithm: .rsa2048)
        func write(_ name: String, _ certificate: MemoryCertificate, _ chain: [MemoryCertificate]) throws {
            try Data((certificate.keyPEM + certificate.pem + chain.map { try $0.pem }.joined()).utf8)
                .write(to: URL(fileURLWithPath: scratch.file(name)))
        }
        func constrained(names: Int, constraints: Int) throws -> (MemoryCertificate, MemoryCertificate) {
            let authority = try MemoryCertificate(
                "Constrained", issuer: root, isAuthority: true,
                constraints: (0..<constraints).map { "permitted;email:\($0).xn--bcher-kva.test" })
            let names = (0..<names).map { "email:a@\($0).xn--bcher-kva.test" } + ["IP:127.0.0.1"]
            return (try MemoryCertificate("leaf", issuer: authority, names: names, algorithm: .rsa2048), authority)
        }
        let long = try constrained(names: 1_000, constraints: 1_000)
        try write("long.pem", long.0, [long.1])
        let short = try constrained(names: 300, constraints: 300)
        try write("short.pem", short.0, [short.1])
        let exponent = CostlyKey.rsa(bits: 3072, exponentBits: 3071)
        let costly = try (0..<20).map {
            try MemoryCertificate("Intermediate \($0)", issuer: root, isAuthority: true, publicKey: exponent)
        }
        try write("exponents.pem", leaf, costly)
        try write("group.pem", leaf, [])
    }

    /// Servers of four kinds: more than 32 KiB of certificates, many names and constraints, long exponents, and a group of 6,000 bits.
    private static let hostileServers = """
        import base64, socket, ssl, sys, threading
        count, scratch = int(sys.argv[1]), sys.argv[2]
        def der(tag, content):
            size = len(content).to_bytes((len(content).bit_length() + 7) // 8 or 1, "big")
            return bytes([tag]) + (size if len(content) < 128 else bytes([128 + len(size)]) + size) + content
        def number(value): return der(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))
        # An odd modulus, for which the server itself needs 50 ms, and the generator.
        group = der(48, number((3 << 5998) + (0x1234567 << 3000) + 1) + number(2))
        text = base64.encodebytes(group).decode()
        open(scratch + "/group.dh", "w").write("-----BEGIN DH PARAMETERS-----\\n" + text + "-----END DH PARAMETERS-----\\n")
        def context(kind):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(scratch + "/" + kind + ".pem")
            if kind == "group":
                context.maximum_version = ssl.TLSVersion.TLSv1_2
                context.set_ciphers("DHE")
                context.load_dh_params(scratch + "/group.dh")
            return context
        kinds = [context(kind) for kind in ("long", "short", "exponents", "group")]
        def serve(server, context):
            while True:
                client, _ = server.accept()
                try:
                    client.settimeout(5)
                    context.wrap_socket(client, server_side=True).close()
                except OSError: client.close()
        for index in range(count):
            server = socket.socket()
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("127.0.0.1", \(firstHostilePort) + index))
            server.listen(64)
            threading.Thread(target=serve, args=(server, kinds[index % len(kinds)]), daemon=True).start()
        print("ready", flush=True)
        threading.Event().wait()
        """

    /// Servers that answer each request, and a service manager. When the input ends, they print the 99th percentile of the delays of
    /// requests behind the interval of a second, and the longest time between two messages of the watchdog.
    private static let goodServers = """
        import selectors, socket, sys, time
        count, path = int(sys.argv[1]), sys.argv[2]
        poll = selectors.DefaultSelector()
        for number in range(count):
            server = socket.socket()
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("127.0.0.1", \(FlappingServers.firstPort) + number))
            server.listen(64)
            server.setblocking(False)
            poll.register(server, selectors.EVENT_READ, number)
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        manager.bind(path)
        poll.register(manager, selectors.EVENT_READ, "manager")
        poll.register(sys.stdin, selectors.EVENT_READ, "input")
        times, fed = [[] for _ in range(count)], []
        print("ready", flush=True)
        is_running = True
        while is_running:
            for key, _ in poll.select():
                if key.data == "input": is_running = False
                elif key.data == "manager":
                    if b"WATCHDOG=1" in manager.recv(4096): fed.append(time.monotonic())
                else:
                    times[key.data].append(time.monotonic())
                    try:
                        client, _ = key.fileobj.accept()
                        client.settimeout(1)
                        client.recv(4096)
                        client.sendall(b"HTTP/1.1 204 No Content\\r\\nConnection: close\\r\\n\\r\\n")
                        client.close()
                    except OSError: pass
        # Probes start on a grid of a second, after the first one. The last ones are punctual: the hostile servers are probed once a minute then.
        delays = sorted((time - each[-1] + 0.05) % 1 - 0.05 for each in times for time in each[1:])
        gaps = [b - a for a, b in zip(fed, fed[1:] + [time.monotonic()])]
        print(delays[int(len(delays) * 0.99)] if delays else 999, max(gaps or [999]), flush=True)
        """
}
