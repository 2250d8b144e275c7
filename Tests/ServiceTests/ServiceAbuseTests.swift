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
    }

    private static let targets = 100
    /// The growth of the heap in kB that may remain: results that are not in the database yet, and caches of first requests.
    private static let remainder = 5_500
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
        let limit = isComplete ? "1" : "60"
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
        var peak = before
        // Each target is probed once a second. The clients go on until each has been probed so many times, however busy the machine is.
        let deadline = ContinuousClock.now + .seconds(seconds + (isComplete ? 5 : 120))
        while try probes(service) < began + seconds * Self.targets {
            guard ContinuousClock.now < deadline else { throw LabError("the targets are not probed") }
            // The command fails if the answer needs more time.
            let health = try host.run(
                "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", limit, "http://\(service.address)/-/healthy")
            expectEqual(health, "200")
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
        #expect(try service.program.isRunning)
    }

    // MARK: Steps

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

    private static let script = """
        import resource, select, socket, sys
        kind, address, part = sys.argv[1], sys.argv[2], int(sys.argv[3])
        host, port = address.split(":")
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
        wanted = {"idle": 5000, "trickle": 5000, "body": 20, "deaf": 500}[kind] // part
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
