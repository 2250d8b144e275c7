import Expectations
import FoundationEssentials
import Glibc
import HTTPSessionTestKit
import NetworkLab
import Reachability
import Testing

@Suite(.timeLimit(.minutes(20)))
struct TestServerTests {
    @Test func `requests are recorded as they were sent`() async throws {
        let server = try TestServer { StubResponse(body: .text("\($0.method) \($0.path)")) }
        let client = try RawClient(server)
        try client.send("POST /a?b=c HTTP/1.1\r\nHost: x\r\nX-One:  1 \r\nx-one: 2\r\nContent-Length: 5\r\n\r\nhello")
        #expect(client.read(until: "POST /a").hasSuffix("\r\n\r\nPOST /a"))
        try client.send("PUT /d HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nX-T: 1\r\n\r\n")
        _ = client.read(until: "PUT /d")
        let other = try RawClient(server)
        try other.get("/e")
        let requests = try await server.awaitRequests(3)
        expectEqual(requests.map(\.target), ["/a?b=c", "/d", "/e"])
        expectEqual(requests.map(\.text), ["hello", "abcde", ""])
        expectEqual(requests.map(\.connection), [1, 1, 2])
        expectEqual(requests.map(\.numberOnConnection), [1, 2, 1])
        expectEqual(requests.map(\.arrival), [1, 2, 3])
        expectEqual(requests[0].fields.map(\.name), ["Host", "X-One", "x-one", "Content-Length"])
        expectEqual(requests[0].values("X-ONE"), ["1", "2"])
        #expect(requests[0].path == "/a" && requests[0].query == "b=c")
        expectEqual(requests[1].trailers, [HeaderField("X-T", "1")])
    }

    @Test func `recorded requests and bodies are limited, counts are not`() async throws {
        var configuration = TestServer.Configuration()
        configuration.recordedRequests = 2
        configuration.recordedBodyBytes = 3
        let server = try TestServer(configuration: configuration) { _ in StubResponse() }
        let client = try RawClient(server)
        for number in 1...5 { try client.send("POST /\(number) HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello") }
        try await server.awaitRequests(5)
        expectEqual(server.requests.map(\.target), ["/4", "/5"])
        expectEqual(server.requests.map(\.text), ["hel", "hel"])
        expectEqual(server.requests.map(\.bodyLength), [5, 5])
        expectEqual(server.seen.bodyBytes, 25)
    }

    @Test func `one gate holds the head back, another one the body`() async throws {
        let (first, second) = try (Gate(), Gate())
        let server = try TestServer { _ in StubResponse(body: "late").held(by: first).bodyHeld(by: second) }
        let client = try RawClient(server)
        try client.get("/")
        try await server.awaitRequests(1)
        #expect(!client.isReadable(within: .milliseconds(50)))
        first.open()
        #expect(client.read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 200 OK"))
        #expect(!client.isReadable(within: .milliseconds(50)))
        second.open()
        expectEqual(client.read(until: "late"), "late")
        #expect(first.isOpen && second.isOpen)
    }

    @Test func `waits delay the parts of a body`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: .texts(["one", "two"], between: .gate(gate))) }
        let client = try RawClient(server)
        try client.get("/")
        #expect(client.read(until: "one").hasSuffix("\r\n\r\none"))
        #expect(!client.isReadable(within: .milliseconds(50)))
        gate.open()
        expectEqual(client.read(until: "two"), "two")
    }

    @Test(arguments: [(StubResponse.Ending.orderly, RawClient.End.closed), (.reset, .reset)])
    func `a kept connection dies when the next request arrives`(_ ending: StubResponse.Ending, _ end: RawClient.End) async throws
    {
        let server = try TestServer { _ in StubResponse(body: "x").endingOnNextRequest(ending) }
        let client = try RawClient(server)
        try client.get("/")
        #expect(client.read(until: "\r\n\r\nx").contains("200 OK"))
        #expect(!client.isReadable(within: .milliseconds(50)))
        try client.get("/again")
        let (bytes, seen) = client.readToEnd()
        #expect(bytes.isEmpty && seen == end)
        expectEqual(server.requests.map(\.target), ["/"])
    }

    @Test func `a kept connection ends after the next request has been read`() async throws {
        let server = try TestServer { $0.numberOnConnection == 1 ? StubResponse(body: "x") : .none(.truncated) }
        let client = try RawClient(server)
        try client.get("/")
        #expect(client.read(until: "\r\n\r\nx").contains("200 OK"))
        try client.get("/again")
        expectEqual(client.readToEnd().end, .closed)
        try await expectEqual(server.awaitRequests(2).map(\.target), ["/", "/again"])
    }

    @Test func `a kept connection ends when the gate opens`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: "x").ending(when: gate) }
        let client = try RawClient(server)
        for _ in 0..<2 {
            try client.get("/")
            #expect(client.read(until: "\r\n\r\nx").contains("200 OK"))
        }
        gate.open()
        expectEqual(client.readToEnd().end, .closed)
    }

    @Test func `an accepted connection ends, sends a banner or stays silent`() async throws {
        var configuration = TestServer.Configuration()
        configuration.arrival = { connection in
            switch connection {
            case 1: .end(.reset)
            case 2: .respond(.raw("220 smtp ready\r\n"))
            case 3: .respond(.never)
            default: .serve
            }
        }
        let server = try TestServer(configuration: configuration) { _ in StubResponse(body: "fine") }
        try expectEqual(RawClient(server).readToEnd().end, .reset)
        let banner = try RawClient(server).readToEnd()
        #expect(String(decoding: banner.bytes, as: UTF8.self) == "220 smtp ready\r\n" && banner.end == .closed)
        let silent = try RawClient(server)
        try silent.get("/")
        #expect(!silent.isReadable(within: .milliseconds(50)))
        let served = try RawClient(server)
        try served.get("/")
        #expect(served.read(until: "fine").contains("200 OK"))
        expectEqual(server.seen.connections, 4)
    }

    @Test func `a request is refused after its head, before its body`() async throws {
        var configuration = TestServer.Configuration()
        configuration.onHead = { request in
            switch request.path {
            case "/refused": .refuse(StubResponse(413, body: "too much"))
            case "/reset": .end(.reset)
            case "/deaf": .readBody(after: [.forever])
            default: .readBody()
            }
        }
        let server = try TestServer(configuration: configuration) { _ in StubResponse(body: "fine") }
        func post(_ path: String) throws -> RawClient {
            let client = try RawClient(server)
            try client.send("POST \(path) HTTP/1.1\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n")
            return client
        }
        let refused = try post("/refused").readToEnd()
        #expect(String(decoding: refused.bytes, as: UTF8.self).hasPrefix("HTTP/1.1 413 "))
        try expectEqual(post("/reset").readToEnd().end, .reset)
        let deaf = try post("/deaf")
        #expect(!deaf.isReadable(within: .milliseconds(50)))
        let fine = try post("/fine")
        expectEqual(fine.read(until: "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n")
        try fine.send(String(repeating: "b", count: 100))
        #expect(fine.read(until: "fine").hasPrefix("HTTP/1.1 200 OK"))
        expectEqual(server.requests.map(\.path), ["/refused", "/reset", "/fine"])
        expectEqual(server.requests.last?.bodyLength, 100)
    }

    @Test func `a held response ends when the client closes the connection`() async throws {
        let server = try TestServer { _ in .never }
        do {
            let client = try RawClient(server)
            try client.get("/")
            try await server.awaitRequests(1)
            expectEqual(server.seen.openConnections, 1)
            _ = client
        }
        try await server.awaitOpenConnections(0)
    }

    @Test func `bytes that are not a request get 400`() throws {
        let server = try TestServer { _ in StubResponse() }
        let client = try RawClient(server)
        try client.send("nonsense\r\n\r\n")
        #expect(String(decoding: client.readToEnd().bytes, as: UTF8.self).hasPrefix("HTTP/1.1 400 "))
    }

    @Test func `a server listens at an IPv6 address and at a Unix domain socket`() throws {
        let six = try TestServer(at: .loopbackIPv6) { _ in StubResponse(body: "six") }
        expectEqual(six.url("/a").absoluteString, "http://[::1]:\(six.port)/a")
        let client = try RawClient(six)
        try client.get("/")
        #expect(client.read(until: "six").contains("200 OK"))

        let folder = try ScratchDirectory()
        let path = folder.file("socket")
        do {
            let unix = try TestServer(at: .unix(path)) { _ in StubResponse(body: "unix") }
            let client = try RawClient(unix)
            try client.get("/")
            #expect(client.read(until: "unix").contains("200 OK"))
            expectEqual(access(path, F_OK), 0)
        }
        #expect(access(path, F_OK) != 0)
    }

    @Test func `an address that cannot be bound is an error`() throws {
        #expect(throws: TestServerError.self) { try TestServer(at: .ip("localhost", port: 0)) { _ in StubResponse() } }
        #expect(throws: TestServerError.self) { try TestServer(at: .ip("198.51.100.1", port: 0)) { _ in StubResponse() } }
        #expect(throws: TestServerError.self) {
            try TestServer(at: .unix(String(repeating: "a", count: 108))) { _ in StubResponse() }
        }
        let taken = try TestServer { _ in StubResponse() }
        #expect(throws: TestServerError.self) { try TestServer(at: .ip("127.0.0.1", port: taken.port)) { _ in StubResponse() } }
    }

    @Test func `waiting for requests that do not come is an error`() async throws {
        let server = try TestServer { _ in StubResponse() }
        await #expect(throws: TestServerError.self) { try await server.awaitRequests(1, within: .milliseconds(50)) }
    }

    @Test func `stopping ends held connections`() async throws {
        let server = try TestServer { _ in .never }
        let clients = try (0..<20).map { _ in try RawClient(server) }
        for client in clients { try client.get("/") }
        try await server.awaitRequests(20)
        server.stop()
        server.stop()
        for client in clients { #expect(client.readToEnd().end != .open) }
        expectEqual(server.seen.openConnections, 0)
        #expect(throws: RawClient.Failure.self) { try RawClient(server) }
    }

    @Test func `connections beyond the limit wait until one ends`() async throws {
        var configuration = TestServer.Configuration()
        configuration.maximumConnections = 1
        let gate = try Gate()
        let server = try TestServer(configuration: configuration) { _ in StubResponse(body: "x").held(by: gate).closing() }
        let (first, second) = try (RawClient(server), RawClient(server))
        try first.get("/first")
        try second.get("/second")
        try await server.awaitRequests(1)
        expectEqual(server.seen.connections, 1)
        gate.open()
        for client in [first, second] {
            #expect(client.read(until: "\r\n\r\nx").contains("200 OK"))
            client.shutdown()
        }
    }

    @Test(.requiresNamespaces) func `a server listens on a lab host`() async throws {
        let host = try Lab().host(loopback: true)
        var configuration = TestServer.Configuration()
        configuration.namespace = NetworkNamespace(host.path)
        let server = try TestServer(at: .ip("127.0.0.1", port: 80), configuration: configuration) { _ in
            StubResponse(body: "there")
        }
        let script = "exec 3<>/dev/tcp/127.0.0.1/80 && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3"
        let program = try Program(["bash", "-c", script], on: host)
        try expectEqual(program.remainingLines().last, "there")
        configuration.namespace = NetworkNamespace("/nonexistent")
        #expect(throws: TestServerError.self) { try TestServer(configuration: configuration) { _ in StubResponse() } }
        expectEqual(server.requests.count, 1)
    }

    @Test func `a request body is read at the given rate at most`() async throws {
        var configuration = TestServer.Configuration()
        configuration.onHead = { _ in .readBody(bytesPerSecond: 100_000) }
        configuration.receiveBuffer = 4096
        let server = try TestServer(configuration: configuration) { _ in StubResponse(body: "read") }
        let client = try RawClient(server)
        let start = ContinuousClock.now
        try client.send("POST / HTTP/1.1\r\nContent-Length: 50000\r\n\r\n\(String(repeating: "b", count: 50_000))")
        #expect(client.read(until: "\r\n\r\nread").contains("200 OK"))
        #expect(start.duration(to: .now) > .milliseconds(450))
        expectEqual(server.seen.bodyBytes, 50_000)
    }

    @Test func `many connections are served at a time`() async throws {
        let server = try TestServer { StubResponse(body: .text($0.path)) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask {
                    for round in 0..<20 {
                        let client = try RawClient(server)
                        try client.get("/\(number)-\(round).")
                        #expect(client.read(until: "\r\n\r\n/\(number)-\(round).").contains("200 OK"))
                    }
                }
            }
            try await group.waitForAll()
        }
        expectEqual(server.seen.requestCount, 160)
    }
}
