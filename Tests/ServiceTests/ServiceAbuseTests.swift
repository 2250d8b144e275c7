import Expectations
import Foundation
import Glibc
import NetworkLab
import Testing

/// Hostile clients of the page while the service probes. `NETWATCH_ABUSE_SECONDS` is the time of each (`make abuse`: 60).
@Suite(.timeLimit(.minutes(20)), .requiresNamespaces, .serialized) struct ServiceAbuseTests {
    /// A kind of hostile client, as the script below knows it.
    enum Abuse: String, CaseIterable, Sendable {
        /// 5,000 connections without a request.
        case idle
        /// 5,000 requests that arrive byte by byte.
        case trickle
        /// Bodies of 1 GB.
        case body
        /// 500 readers of the stream and of pages that never read.
        case deaf
        /// 304 connections that each write 1,200 requests at once, which the service answers without rendering.
        case pipelinedHeads
        /// 150 connections that each write 1,500 requests for documents at once.
        case pipelinedPages
        /// 16 connections that reload the configuration, and 16 that ask for reports of 50 years.
        case costly
    }

    private static let targets = 100
    /// The growth of the heap in kB that may remain: results that are not in the database yet, and caches of first requests.
    private static let remainder = 7_000
    private let scratch: ScratchDirectory
    private let host: LabHost

    init() throws {
        scratch = try ScratchDirectory()
        host = try Lab().host(loopback: true)
    }

    @Test(arguments: Abuse.allCases) func `hostile clients stop neither probes nor health, and take little memory`(abuse: Abuse)
        throws
    {
        // In the test suite other programs use the processors too: fewer clients, and a longer limit.
        let isComplete = ProcessInfo.processInfo.environment["NETWATCH_ABUSE_SECONDS"] != nil
        let seconds = ProcessInfo.processInfo.environment["NETWATCH_ABUSE_SECONDS"].flatMap(Int.init) ?? 5
        // Steady ones: changes fill the log of events and the history, whose memory is not that of the clients.
        let servers = try FlappingServers(Self.targets, on: host, seed: 1, changes: 0)
        try Data("interval: 1s\n\(servers.configuration.replacing("interval: 500ms\n", with: ""))".utf8)
            .write(to: URL(fileURLWithPath: scratch.file("netwatch.yaml")))
        let service = try ServiceProgram(
            ["-q"], on: host, state: scratch.file("state"), configuration: scratch.file("netwatch.yaml"), output: .null)
        try awaitProbes(service, atLeast: Self.targets)
        let (before, heapBefore) = (try memory("VmRSS", of: service), try memory("RssAnon", of: service))
        let began = try probes(service)
        let client = try Program(
            [
                "nice", "-n", "10", "/usr/bin/python3", "-c", Self.script, abuse.rawValue, service.address,
                isComplete ? "1" : "5",
            ], on: host, input: .pipe)
        guard try client.nextLine() == "ready" else { throw LabError(client.ending) }
        var (peak, times) = (before, [Double]())
        // Each target is probed once a second. The clients go on until each has been probed so many times, however busy the machine is.
        let deadline = ContinuousClock.now + .seconds(seconds + (isComplete ? 5 : 120))
        while try probes(service) < began + seconds * Self.targets {
            guard ContinuousClock.now < deadline else { throw LabError("the targets are not probed") }
            times.append(try secondsOfHealth(service))
            peak = max(peak, try memory("VmRSS", of: service))
            usleep(200_000)
        }
        try #require(try client.isRunning, "\(client.ending)")
        client.closeInput()
        try expectEqual(client.wait(), 0, "\(client.ending)")
        #expect(peak - before <= 50_000, "\(before) kB before, \(peak) kB at the peak")
        let heap = try awaitHeap(service, atMost: heapBefore + Self.remainder)
        #expect(heap <= heapBefore + Self.remainder, "\(heapBefore) kB of heap before, \(heap) kB after")
        print("\(abuse): \(before) kB before, \(peak) kB at the peak; heap \(heapBefore) kB before, \(heap) kB after")
        check(times, "\(abuse)", isComplete)
        #expect(try service.program.isRunning)
    }

    @Test func `300 new streams with 10,000 targets at once leave health answered`() throws {
        let isComplete = ProcessInfo.processInfo.environment["NETWATCH_ABUSE_SECONDS"] != nil
        let (count, streams) = isComplete ? (10_000, 300) : (1_000, 60)
        // One server has the addresses of all targets.
        let server = try Program(["/usr/bin/python3", "-c", Self.serverScript], on: host)
        guard try server.nextLine() == "ready" else { throw LabError("the server did not start: \(server.ending)") }
        let targets = (0..<count).map { "  - 127.1.\($0 / 250).\($0 % 250 + 1):20000\n" }.joined()
        try Data("targets:\n\(targets)".utf8).write(to: URL(fileURLWithPath: scratch.file("netwatch.yaml")))
        let service = try ServiceProgram(
            ["-q"], on: host, state: scratch.file("state"), configuration: scratch.file("netwatch.yaml"), output: .null)
        try awaitProbes(service, atLeast: count)
        let client = try Program(
            ["/usr/bin/python3", "-c", Self.streamScript, service.address, "\(streams)", "\(count)"], on: host, output: .file)
        var times: [Double] = []
        while try client.isRunning { times.append(try secondsOfHealth(service)) }
        try expectEqual(client.wait(), 0, "\(client.ending)")
        expectEqual(client.output, "\(streams) streams with \(count) targets\n")
        check(times, "streams", isComplete)
    }

    // MARK: Steps

    /// The time in seconds within which the service answers for its state, whatever its clients do.
    private static let healthLimit = 0.1

    /// Prints the times in which the service has answered for its state, and in the complete test requires the limit of 95 of 100 of them. Other
    /// programs may stop any of them for a moment.
    private func check(_ times: [Double], _ name: String, _ isComplete: Bool) {
        let times = times.sorted()
        guard let slowest = times.last else { return }
        let usual = times[(times.count - 1) * 95 / 100]
        print("\(name): health within \(Int(usual * 1_000)) ms, once \(Int(slowest * 1_000)) ms")
        if isComplete {
            #expect(usual <= Self.healthLimit && slowest <= 10 * Self.healthLimit, "health took \(times.suffix(5)) s")
        }
    }

    /// Asks for the state of the service, and returns the seconds from the connection to the complete answer.
    private func secondsOfHealth(_ service: ServiceProgram) throws -> Double {
        let output = try host.run(
            "curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %{time_total}", "--max-time", "60",
            "http://\(service.address)/-/healthy")
        let parts = output.split(separator: " ")
        expectEqual(parts.first, "200")
        return try #require(parts.last.flatMap { Double($0) })
    }

    /// Returns the resident memory in kB: all of it (`VmRSS`), or without the pages of files, such as those of the program (`RssAnon`).
    private func memory(_ name: String, of service: ServiceProgram) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(service.program.processID)/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("\(name):") }
        return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
    }

    /// Returns the number of results of all targets.
    private func probes(_ service: ServiceProgram) throws -> Int {
        // The local socket has places of its own.
        let text = try host.run(
            "curl", "-s", "--unix-socket", scratch.file("state/api.sock"), "http://x/api/v1/history?report=1&since=2h")
        let report = try JSONDecoder().decode(ServiceReport.self, from: Data(text.utf8))
        return report.targets.reduce(0) { $0 + $1.probes }
    }

    /// Waits until the heap has returned to a size: the service trims it ten seconds after the last page of the hostile clients is rendered.
    ///
    /// - Returns: Its size in kB.
    private func awaitHeap(_ service: ServiceProgram, atMost limit: Int) throws -> Int {
        let deadline = ContinuousClock.now + .seconds(120)
        while true {
            let heap = try memory("RssAnon", of: service)
            if heap <= limit || ContinuousClock.now > deadline { return heap }
            usleep(50_000)
        }
    }

    private func awaitProbes(_ service: ServiceProgram, atLeast number: Int) throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while try probes(service) < number {
            guard ContinuousClock.now < deadline else { throw LabError("the targets are not probed") }
            usleep(50_000)
        }
    }

    private static let serverScript = """
        import socket
        server = socket.socket()
        server.bind(("0.0.0.0", 20000))
        server.listen(4096)
        print("ready", flush=True)
        while True: server.accept()[0].close()
        """

    /// Reads the beginnings of many streams, and counts those with all targets.
    private static let streamScript = """
        import select, socket, sys
        address, streams, targets = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
        host, port = address.split(":")
        clients = {}
        for _ in range(streams):
            client = socket.create_connection((host, int(port)))
            client.send(b"GET /api/v1/events HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
            clients[client.fileno()] = [client, 0, b""]
        poll = select.poll()
        for number in clients: poll.register(number, select.POLLIN)
        complete = 0
        while complete < streams:
            for number, _ in poll.poll():
                state = clients[number]
                data = state[0].recv(1 << 18)
                if not data: sys.exit("a stream was closed")
                text = state[2] + data
                state[1] += text.count(b'"initial":true')
                state[2] = text[-13:]
                if state[1] >= targets:
                    complete += 1
                    poll.unregister(number)
        print(complete, "streams with", targets, "targets")
        """

    private static let script = """
        import resource, select, socket, sys
        kind, address, part = sys.argv[1], sys.argv[2], int(sys.argv[3])
        host, port = address.split(":")
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
        wanted = {"idle": 5000, "trickle": 5000, "body": 20, "deaf": 500, "pipelinedHeads": 304, "pipelinedPages": 150, "costly": 32}[kind] // part
        bursts = {
            "pipelinedHeads": [(b"HEAD /api/v1/status?limit=1000", 1200)], "pipelinedPages": [(b"GET /api/v1/status?limit=1000", 1500)],
            "costly": [(b"POST /-/reload", 1000), (b"GET /api/v1/history?report=1&since=18000d", 1000)],
        }
        head = b"GET / HTTP/1.1\\r\\nHost: localhost\\r\\nX-Slow: "
        clients = {}
        def connect():
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex((host, int(port)))
            clients[client.fileno()] = [client, 0]
        def close(number):
            clients.pop(number)[0].close()
        def send(number):
            client, sent = clients[number]
            try:
                if kind == "trickle":
                    client.send(head[sent:sent + 1] if sent < len(head) else b"x")
                    clients[number][1] += 1
                elif kind == "body":
                    if sent == 0: client.send(b"POST /-/reload HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: 1000000000\\r\\n\\r\\n")
                    clients[number][1] += 1 + client.send(bytes(65536))
                elif kind in bursts:
                    line, count = bursts[kind][number % len(bursts[kind])]
                    burst = (line + b" HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n") * count
                    # What is answered is read, and what is sent is sent again.
                    try: client.recv(1 << 20)
                    except BlockingIOError: pass
                    clients[number][1] += client.send(burst[sent % len(burst):])
                elif kind == "deaf" and sent == 0:
                    path = b"/api/v1/events" if number % 2 else b"/"
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    client.send((b"GET " + path + b" HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n") * (1 if number % 2 else 50))
                    clients[number][1] = 1
            except BlockingIOError: pass
            except OSError: close(number)
        print("ready", flush=True)
        # Until the test closes the input.
        while not select.select([0], [], [], 0)[0]:
            for _ in range(200):
                if len(clients) < wanted: connect()
            for number in list(clients): send(number)
            poll = select.poll()
            for number in clients: poll.register(number, select.POLLHUP | select.POLLERR | select.POLLRDHUP)
            for number, _ in poll.poll(100):
                close(number)
        """
}

extension Program {
    fileprivate var isRunning: Bool { get throws { (try? wait(within: .zero)) == nil } }
}
