import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// HTTP/2 with nginx.
@Suite(.requires(Nginx.program), .timeLimit(.minutes(20))) struct HTTP2Tests {
    private func session(_ nginx: Nginx, _ change: (inout SessionConfiguration) -> Void = { _ in }) throws -> HTTPSessionManager {
        let policy = try SecurityPolicy.trusting(nginx.identity)
        return try localSession {
            $0.securityPolicy = policy
            change(&$0)
        }
    }

    @Test func `many HTTP/2 requests share a connection`() async throws {
        let nginx = try Nginx.shared.get()
        let session = try session(nginx)
        let first = try await session.dataTask(for: TransferRequest(url: nginx.tlsURL("/1k"))).response
        expectEqual(first.metrics.transactions.first?.networkProtocolName, "h2")
        expectEqual(first.head.reasonPhrase, "")
        let expected = Nginx.pattern(1 << 20)
        let tasks = try (0..<50).map { _ in session.dataTask(for: TransferRequest(url: try nginx.tlsURL("/1m"))) }
        for task in tasks {
            let response = try await task.response
            expectEqual(response.data, expected)
            expectEqual(response.metrics.transactions.first?.isReusedConnection, true)
        }
    }

    @Test func `the cookies of a request and of the store are one field over HTTP/2`() async throws {
        let nginx = try Nginx.shared.get()
        let session = try session(nginx)
        try session.store.setCookie(Cookie(name: "sid", value: "abc", domain: "127.0.0.1", isSecure: true))
        var request = TransferRequest(url: try nginx.tlsURL("/echo-headers"))
        request.headerFields[.cookie] = "theme=dark"
        let response = try await session.dataTask(for: request).response
        #expect(String(decoding: response.data, as: UTF8.self).contains("\ntheme=dark; sid=abc\n"))
        expectEqual(response.metrics.transactions.first?.networkProtocolName, "h2")
    }

    @Test func `a slow, suspended or canceled HTTP/2 response does not affect the others of its connection`() async throws {
        let nginx = try Nginx.shared.get()
        let session = try session(nginx) { $0.maximumConnectionsPerHost = 1 }
        _ = try await session.dataTask(for: TransferRequest(url: nginx.tlsURL("/1k"))).response
        let slow = session.dataTask(for: TransferRequest(url: try nginx.tlsURL("/slow/16m?rate=500k")))
        await slow.awaitProgress { $0.bytesReceived > 0 }
        try await expectEqual(
            session.dataTask(for: TransferRequest(url: nginx.tlsURL("/1m"))).response.data, Nginx.pattern(1 << 20))
        slow.suspend()
        try await expectEqual(
            session.dataTask(for: TransferRequest(url: nginx.tlsURL("/1m"))).response.data, Nginx.pattern(1 << 20))
        slow.cancel()
        await expectEqual(failure(slow)?.code, .cancelled)
        let after = try await session.dataTask(for: TransferRequest(url: nginx.tlsURL("/1k"))).response
        expectEqual(after.metrics.transactions.first?.isReusedConnection, true)
    }

    @Test func `requests beside an unfinished HTTP/2 stream get their own bodies`() async throws {
        // libcurl 7.88 keeps the buffers of an easy handle while another stream of its connection continues.
        let nginx = try Nginx.shared.get()
        let session = try session(nginx) { $0.maximumConnectionsPerHost = 1 }
        _ = try await session.dataTask(for: TransferRequest(url: nginx.tlsURL("/1k"))).response
        let slow = session.dataTask(for: TransferRequest(url: try nginx.tlsURL("/slow/16m?rate=100k")))
        await slow.awaitProgress { $0.bytesReceived > 0 }
        let pattern = Nginx.pattern(16 << 20)
        for round in 0..<10 {
            // Each has other bytes: a range of the file that begins at an offset of its own.
            let ranges = (0..<16).map { number in
                let start = (round * 16 + number) * 7_919
                return start..<start + (number % 3 == 0 ? 1 << 20 : 1 << 10)
            }
            let tasks = try ranges.enumerated().map { number, range in
                let url = try nginx.tlsURL("/16m")
                var request = TransferRequest(url: url, method: number % 5 == 4 ? .head : .get)
                request.headerFields[.range] = "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
                return session.dataTask(for: request)
            }
            await tasks[0].awaitProgress { $0.bytesReceived > 0 }
            for number in [0, 2, 6] { tasks[number].suspend() }
            for number in [7, 12] { tasks[number].cancel() }
            _ = try await tasks[15].response
            for number in [0, 2, 6] { tasks[number].resume() }
            for (number, task) in tasks.enumerated() where number != 7 && number != 12 {
                let response = try await task.response
                let expected = number % 5 == 4 ? Data() : pattern[ranges[number]]
                #expect(response.data == expected && response.statusCode == 206, "round \(round), request \(number)")
                expectEqual(response.metrics.transactions.last?.isReusedConnection, true)
            }
        }
        slow.cancel()
        await expectEqual(failure(slow)?.code, .cancelled)
    }

    @Test func `a suspended HTTP/2 download continues where it stopped`() async throws {
        let nginx = try Nginx.shared.get()
        let log = EventLog()
        let policy = try SecurityPolicy.trusting(nginx.identity)
        let session = try HTTPSessionManager(
            configuration: localConfiguration { $0.securityPolicy = policy }, eventMonitors: [SuspendingMonitor(), log])
        let folder = try ScratchDirectory()
        let task = session.downloadTask(
            for: TransferRequest(url: try nginx.tlsURL("/slow/16m?rate=8m")), to: .init(folder.url("file")))
        await log.await("suspended")
        _ = try await session.dataTask(for: TransferRequest(url: nginx.tlsURL("/1m"))).response
        #expect(task.currentProgress.bytesReceived < 16 << 20)
        task.resume()
        _ = try await task.response
        try expectEqual(Data(contentsOf: folder.url("file")), Nginx.pattern(16 << 20))
    }

    @Test(arguments: [true, false])
    func `uploads with known and unknown length are accepted, large ones over HTTP/1.1 unless HTTP/2 is required`(
        requiresHTTP2: Bool
    ) async throws {
        let nginx = try Nginx.shared.get()
        let session = try session(nginx) { if requiresHTTP2 { $0.httpVersion = .http2 } }
        let endless = RequestBody.stream(length: nil) {
            let made = Counter()
            return AsyncThrowingStream { made.add() > 64 ? nil : Data(count: 16 << 10) }
        }
        for (body, isSmall) in [
            (RequestBody.data(Data(count: 4_095)), true), (.data(Data(count: 4_096)), false),
            (.data(Data(count: 3 << 20)), false), (endless, false),
        ] {
            let response = try await session.dataTask(for: TransferRequest(url: nginx.tlsURL("/sink"), method: .put, body: body))
                .response
            expectEqual(response.statusCode, 200)
            expectEqual(response.metrics.transactions.first?.networkProtocolName, isSmall || requiresHTTP2 ? "h2" : "http/1.1")
        }
    }

    @Test(arguments: [HTTPRequest.Method.post, .put]) func `no early response to many large uploads at once is lost`(
        method: HTTPRequest.Method
    ) async throws {
        let nginx = try Nginx.shared.get()
        let session = try session(nginx) { $0.retryPolicy = .never }
        // The host has spoken HTTP/2, whose requests share a connection.
        _ = try await session.dataTask(for: TransferRequest(url: nginx.tlsURL("/1k"))).response
        let request = TransferRequest(url: try nginx.tlsURL("/limited"), method: method, body: .data(Data(count: 2 << 20)))
        for _ in 0..<4 {
            let tasks = (0..<8).map { _ in session.dataTask(for: request) }
            for task in tasks {
                let response = try await task.response
                expectEqual(response.statusCode, 413)
                expectEqual(response.metrics.transactions.map(\.networkProtocolName), ["http/1.1"])
            }
        }
        // Small requests continue over HTTP/2.
        let small = try await session.dataTask(for: TransferRequest(url: nginx.tlsURL("/1k"))).response
        expectEqual(small.metrics.transactions.map(\.networkProtocolName), ["h2"])
    }

    @Test func `an HTTP/2 response sent before the complete request was read is the task's response`() async throws {
        let nginx = try Nginx.shared.get()
        let session = try session(nginx) { $0.httpVersion = .http2 }
        let body = RequestBody.data(Data(count: 4 << 20))
        // One request at a time: libcurl 7.88 may lose a response if it reads a stream's end while it handles another stream.
        for target in ["/status/404", "/status/204", "/echo-headers", "/compressed"] {
            for _ in 0..<10 {
                let response = try await session.dataTask(
                    for: TransferRequest(url: nginx.tlsURL(target), method: .post, body: body)
                ).response
                expectEqual(response.statusCode, (Int(target.suffix(3)) ?? 200))
                expectEqual(response.metrics.transactions.first?.networkProtocolName, "h2")
            }
        }
    }

    @Test func `an HTTP/2 success sent before a complete PUT was read is no success`() async throws {
        let nginx = try Nginx.shared.get()
        let policy = RetryPolicy(maximumRetries: 9, baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
        let session = try session(nginx) { ($0.httpVersion, $0.retryPolicy) = (.http2, policy) }
        let body = RequestBody.data(Data(count: 16 << 20))
        for target in ["/status/204", "/echo-headers", "/compressed"] {
            let task = session.dataTask(for: TransferRequest(url: try nginx.tlsURL(target), method: .put, body: body))
            await expectEqual(failure(task)?.code, .badServerResponse, "\(target)")
            expectEqual(task.metrics?.retryCount, 1, "\(target)")
        }
    }

    @Test(arguments: [true, false]) func `a canceled download from nginx continues where it stopped and yields an identical file`(
        isSecure: Bool
    ) async throws {
        let (nginx, folder) = (try Nginx.shared.get(), try ScratchDirectory())
        let manager = try session(nginx)
        let place = DownloadDestination(URL(fileURLWithPath: folder.file("16m")), partialFile: .keep)
        func download(_ rate: String) throws -> TransferTask {
            let target = "/slow/16m?rate=\(rate)"
            return manager.downloadTask(
                for: TransferRequest(url: try isSecure ? nginx.tlsURL(target) : nginx.url(target)), to: place)
        }
        // The complete download would take two minutes at this rate, so that a busy machine cancels it before its end.
        for count in [1, 2, 3] as [Int64] {
            let task = try download("128k")
            await task.awaitProgress { $0.bytesReceived > count << 17 }
            task.cancel()
            await expectEqual(failure(task)?.code, .cancelled)
        }
        let response = try await download("900m").response
        try expectEqual(Data(contentsOf: place.file), Nginx.pattern(1 << 24))
        #expect(response.metrics.bytesContinued > 3 << 17)
        expectEqual(response.metrics.transactions.map(\.statusCode), [206])
        expectEqual(response.metrics.transactions.last?.networkProtocolName, (isSecure ? "h2" : "http/1.1"))
        expectEqual(folder.names, ["16m"])
    }

    @Test func `a session with httpVersion http2 uses prior knowledge, over TLS and without`() async throws {
        let nginx = try Nginx.shared.get()
        let session = try session(nginx) { $0.httpVersion = .http2 }
        for url in [try nginx.priorURL("/1m"), try nginx.tlsURL("/1m")] {
            let first = try await session.dataTask(for: TransferRequest(url: url)).response
            expectEqual(first.data, Nginx.pattern(1 << 20))
            expectEqual(first.metrics.transactions.first?.networkProtocolName, "h2")
            let tasks = (0..<20).map { _ in session.dataTask(for: TransferRequest(url: url)) }
            for task in tasks {
                let response = try await task.response
                expectEqual(response.data, Nginx.pattern(1 << 20))
                expectEqual(response.metrics.transactions.first?.networkProtocolName, "h2")
                // Without TLS, only newer versions of libcurl reuse the connection.
                if url.scheme == "https" { expectEqual(response.metrics.transactions.first?.isReusedConnection, true) }
            }
        }
        let body = TransferRequest(url: try nginx.priorURL("/sink"), method: .post, body: .data(Data(count: 1 << 20)))
        try await expectEqual(session.dataTask(for: body).response.statusCode, 200)
        // HTTP/1.1 fails on a port with prior knowledge of HTTP/2, and HTTP/2 fails on a port with HTTP/1.1.
        let old = try self.session(nginx)
        await expectEqual(failure(old.dataTask(for: TransferRequest(url: try nginx.priorURL("/1k"))))?.code, .badServerResponse)
        let refused = await failure(session.dataTask(for: TransferRequest(url: try nginx.url("/1k"))))
        #expect([.connectionLost, .badServerResponse].contains(refused?.code), "\(String(describing: refused))")
    }

    @Test func `stream tasks and a session with httpVersion http1 use HTTP/1.1`() async throws {
        let nginx = try Nginx.shared.get()
        let session = try session(nginx)
        _ = try await session.dataTask(for: TransferRequest(url: nginx.tlsURL("/1k"))).response
        let stream = session.streamTask(for: TransferRequest(url: try nginx.tlsURL("/1m")))
        var data = Data()
        for try await chunk in stream.chunks { data.append(chunk) }
        expectEqual(data, Nginx.pattern(1 << 20))
        try await expectEqual(stream.response.metrics.transactions.first?.networkProtocolName, "http/1.1")
        let old = try self.session(nginx) { $0.httpVersion = .http1 }
        let response = try await old.dataTask(for: TransferRequest(url: nginx.tlsURL("/1k"))).response
        expectEqual(response.metrics.transactions.first?.networkProtocolName, "http/1.1")
    }
}

/// Tests against httpbin.
@Suite(.requires(Httpbin.program), .timeLimit(.minutes(20))) struct HttpbinTests {
    @Test(arguments: ["digest-auth/auth/user/word", "digest-auth/auth/user/word/SHA-256", "basic-auth/user/word"])
    func `credentials of the URL and of a challenge handler authenticate by Basic and Digest`(_ path: String) async throws {
        let httpbin = try Httpbin.shared.get()
        let url = try httpbin.url("/" + path)
        let handlers = TransferHandlers(challenge: { challenge in
            challenge.previousFailureCount == 0
                ? .useCredential(Credential(user: "user", password: "wrong"))
                : challenge.previousFailureCount == 1 ? .useCredential(Credential(user: "user", password: "word")) : .cancel
        })
        try await expectEqual(localSession(handlers: handlers).dataTask(for: TransferRequest(url: url)).response.statusCode, 200)
        var parts = try #require(URLComponents(url: url, resolvingAgainstBaseURL: false))
        (parts.user, parts.password) = ("user", "word")
        try await expectEqual(
            localSession().dataTask(for: TransferRequest(url: try #require(parts.url))).response.statusCode, 200)
        parts.password = "wrong"
        try await expectEqual(
            localSession().dataTask(for: TransferRequest(url: try #require(parts.url))).response.statusCode, 401)
    }

    @Test(arguments: ["gzip", "deflate", "brotli"]) func `compressed responses are decompressed`(_ coding: String) async throws {
        let httpbin = try Httpbin.shared.get()
        let response = try await localSession().dataTask(for: TransferRequest(url: httpbin.url("/" + coding))).response
        let object = try #require(try JSONSerialization.jsonObject(with: response.data) as? [String: Any])
        #expect((object[coding == "gzip" ? "gzipped" : coding == "deflate" ? "deflated" : "brotli"] as? Bool) == true)
    }

    @Test func `redirects are followed and cookies of a redirect are sent`() async throws {
        let httpbin = try Httpbin.shared.get()
        let session = try localSession()
        try await expectEqual(
            session.dataTask(for: TransferRequest(url: httpbin.url("/redirect/4"))).response.metrics.redirectCount, 4)
        let response = try await session.dataTask(for: TransferRequest(url: httpbin.url("/cookies/set?a=1&b=2"))).response
        let object = try #require(try JSONSerialization.jsonObject(with: response.data) as? [String: Any])
        expectEqual(object["cookies"] as? [String: String], ["a": "1", "b": "2"])
    }
}

/// Suspends a download immediately when its response is received: a test's own thread may wait for seconds on a busy machine.
private struct SuspendingMonitor: EventMonitor {
    func handle(_ event: SessionEvent) {
        if case .receivedResponse(let task, _) = event, task.kind == .download { task.suspend() }
    }
}
