import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// The peak memory of this process so far, in bytes (`VmHWM`, proc_pid_status(5)).
private func peakMemory() throws -> Int {
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM") }
    return (line?.split(separator: " ").compactMap { Int($0) }.first ?? 0) << 10
}

@Suite(.timeLimit(.minutes(20))) struct BadResponseTests {
    private func error(_ reply: StubResponse, _ change: (inout SessionConfiguration) -> Void = { _ in }) async throws
        -> HTTPSessionError?
    {
        let server = try TestServer { _ in reply }
        let session = try localSession {
            $0.requestTimeout = .seconds(120)
            change(&$0)
        }
        return await failure(session.dataTask(for: TransferRequest(url: server.url())))
    }

    @Test(arguments: StubResponse.ChunkFault.allCases) func `a broken chunked body is an error`(_ fault: StubResponse.ChunkFault)
        async throws
    {
        let error = try await error(StubResponse(body: .pattern(10_000)).brokenChunks(fault))
        let isCut = fault == .cutInChunk || fault == .lastChunkIsMissing
        expectEqual(error?.code, (isCut ? .connectionLost : .badServerResponse))
        expectEqual(error?.context.statusCode, 200)
    }

    @Test func `a Content-Length larger than the received body fails as connectionLost`() async throws {
        try await expectEqual(error(StubResponse(body: "short").declaredLength(1_000))?.code, .connectionLost)
    }

    @Test func `bytes after a body that exceeds its Content-Length are not taken for the next response`() async throws {
        let server = try TestServer { _ in
            StubResponse(body: "short HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil").declaredLength(5)
        }
        let session = try localSession()
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.data, Data("short".utf8))
        // If the surplus bytes arrive late, they precede the next response, which then fails because they are not valid HTTP.
        let second = session.dataTask(for: TransferRequest(url: server.url()))
        if let error = await failure(second) {
            expectEqual(error.code, .badServerResponse)
        } else {
            try await expectEqual(second.response.data, Data("short".utf8))
        }
    }

    @Test func `an unrequested 101 Switching Protocols fails immediately as badServerResponse`() async throws {
        var reply = StubResponse.raw("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nabc")
        reply.connectionUse = .keepAlive
        let error = try await error(reply) { $0.retryPolicy = .never }
        #expect(error?.code == .badServerResponse && error?.context.statusCode == 101, "\(String(describing: error))")
    }

    @Test(arguments: [" ", "\t"]) func `a first field line that begins with whitespace fails as badServerResponse`(
        _ space: String
    )
        async
        throws
    {
        let reply = StubResponse.raw(.text("HTTP/1.1 200 OK\r\n\(space)Content-Length: 3\r\n\r\nabc"))
        let error = try await error(reply) { $0.retryPolicy = .never }
        expectEqual(error?.code, .badServerResponse)
        expectEqual(error?.reason, "the server's response is not valid HTTP", "\(String(describing: error))")
    }

    /// The responses before the one with the invalid field, and how it comes to them.
    enum EarlierResponse: String, CaseIterable {
        case redirect, failure, challenge, request, interim, trailers, otherOptions
    }

    // libcurl 7.88 keeps a pointer to the last field of an earlier response, which it has freed.
    @Test(arguments: EarlierResponse.allCases, [" ", "\t"])
    func `a first field line that begins with whitespace fails as badServerResponse after another response too`(
        _ earlier: EarlierResponse, _ space: String
    ) async throws {
        let count = Counter()
        let text = "HTTP/1.1 200 OK\r\n\(space)X: folded\r\nContent-Length: 3\r\n\r\nabc"
        let invalid = StubResponse.raw(.text(text))
        let invalidAfterInterim = StubResponse.raw(.text("HTTP/1.1 103 Hints\r\n\r\n" + text))
        let server = try TestServer { _ in
            guard count.add() % 2 == 1 else { return earlier == .interim ? invalidAfterInterim : invalid }
            switch earlier {
            case .redirect: return .redirect(to: "/2").field("X-Long", String(repeating: "x", count: 500))
            case .failure: return StubResponse(503, fields: ["Retry-After": "0"])
            case .challenge: return .unauthorized("Basic realm=\"r\"")
            case .trailers: return StubResponse(body: "abc").chunked(trailers: ["A": "b"])
            case .request, .interim, .otherOptions: return StubResponse(body: "abc")
            }
        }
        let session = try localSession { $0.retryPolicy.maximumRetries = earlier == .failure ? 1 : 0 }
        for _ in 0..<10 {
            let url = earlier == .challenge ? "http://u:p@127.0.0.1:\(server.port)/" : "http://127.0.0.1:\(server.port)/"
            var request = TransferRequest(url: try #require(URL(string: url)))
            if [.request, .interim, .trailers, .otherOptions].contains(earlier) {
                try await expectEqual(session.dataTask(for: request).response.data, Data("abc".utf8))
            }
            if earlier == .otherOptions { request.method = .put }
            let error = await failure(session.dataTask(for: request))
            expectEqual(error?.code, .badServerResponse, "\(String(describing: error))")
        }
    }

    // A proxy's response to CONNECT is read before the connection carries a request.
    @Test func `a first field line that begins with whitespace fails as badServerResponse in a response to CONNECT`() async throws
    {
        let server = try TestServer { _ in StubResponse(body: "abc") }
        let proxy = try TestServer { _ in .raw(.text("HTTP/1.1 200 OK\r\n X: folded\r\n\r\n")) }
        let session = try localSession {
            $0.proxy = .explicit("http://127.0.0.1:\(proxy.port)")
            $0.retryPolicy = .never
        }
        for _ in 0..<3 {
            var request = TransferRequest(url: server.url())
            _ = await failure(session.dataTask(for: request))
            request = TransferRequest(url: try #require(URL(string: "https://127.0.0.1:\(server.port)/")))
            let error = await failure(session.dataTask(for: request))
            expectEqual(error?.code, .badServerResponse, "\(String(describing: error))")
        }
    }

    @Test(arguments: ["-1", "x", ""]) func `an invalid Content-Length is an error`(_ length: String) async throws {
        var reply = StubResponse(fields: ["Content-Length": "\(length)"], body: "hello")
        reply.framing = .asGiven
        reply = reply.closing()
        let code = try await error(reply)?.code
        #expect([.badServerResponse, .responseTooLarge, .connectionLost].contains(code), "\(String(describing: code))")
    }

    @Test func `content that is not in its declared Content-Encoding fails as cannotDecodeContent`() async throws {
        try await expectEqual(
            error(StubResponse(fields: ["Content-Encoding": "gzip"], body: "no gzip at all"))?.code,
            .cannotDecodeContent)
        try await expectEqual(
            error(StubResponse(fields: ["Content-Encoding": "br"], body: "no brotli at all, certainly"))?.code,
            .cannotDecodeContent)
        try await expectEqual(
            error(StubResponse(fields: ["Content-Encoding": "nonsense"], body: "x"))?.code, .cannotDecodeContent)
    }

    @Test func `gzip content with a wrong checksum fails as cannotDecodeContent`() async throws {
        let intact: [UInt8] = [
            31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 72, 205, 201, 201, 87, 200, 64, 39, 117, 20, 18, 243, 82, 20, 138, 243, 21, 242,
            243, 16, 44, 0, 152, 2, 135, 89, 44, 0, 0, 0,
        ]
        let text = Data("hello hello hello hello, and so on and so on".utf8)
        let server = try TestServer { request in
            var bytes = intact
            if request.path == "/broken" { bytes[bytes.count - 6] ^= 1 }
            return .gzip(.bytes(bytes))
        }
        let session = try localSession()
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.data, text)
        await expectEqual(failure(session.dataTask(for: TransferRequest(url: server.url("/broken"))))?.code, .cannotDecodeContent)
    }

    @Test(.skippedUnderSanitizers) func `a gzip bomb fails a data task as responseTooLarge with bounded memory`() async throws {
        let before = try peakMemory()
        let error = try await error(.gzipBomb(inflatedBytes: 8 << 30))
        expectEqual(error?.code, .responseTooLarge)
        #expect(try peakMemory() - before < 1 << 30)
    }

    @Test(.skippedUnderSanitizers)
    func `a gzip bomb fails a stream as responseTooLarge with bounded memory, even if reading begins late`()
        async throws
    {
        let before = try peakMemory()
        let server = try TestServer { _ in .gzipBomb(inflatedBytes: 8 << 30) }
        let session = try localSession()
        for waits in [false, true] {
            let task = session.streamTask(for: TransferRequest(url: server.url()))
            if waits {
                let other = try TestServer { _ in StubResponse().delayed(.milliseconds(100)) }
                _ = try await session.dataTask(for: TransferRequest(url: other.url())).response
            }
            var received = 0
            let error = await #expect(throws: HTTPSessionError.self) {
                for try await chunk in task.chunks { received += chunk.count }
            }
            expectEqual(error?.code, .responseTooLarge, "\(String(describing: error)) \(String(describing: error?.context))")
            #expect(received < 64 << 20)
        }
        #expect(try peakMemory() - before < 1 << 30)
    }

    @Test func `a gzip bomb fails a download as responseTooLarge and leaves no file`() async throws {
        let folder = try ScratchDirectory()
        let server = try TestServer { _ in .gzipBomb(inflatedBytes: 8 << 30) }
        let task = try localSession().downloadTask(for: TransferRequest(url: server.url()), to: .init(folder.url("bomb")))
        await expectEqual(failure(task)?.code, .responseTooLarge)
        expectEmpty(folder.names)
    }

    @Test func `a gzip bomb in Transfer-Encoding fails a download, also one that continues a partial file`() async throws {
        let folder = try ScratchDirectory()
        let server = try TestServer { request in
            guard request["range"] == nil else {
                // This range continues a file whose first 10 MiB arrived uncompressed.
                return StubResponse(
                    206,
                    fields: [
                        "ETag": "\"1\"", "Content-Range": "bytes \(10 << 20)-\((90 << 20) - 1)/\(90 << 20)",
                        "Transfer-Encoding": "gzip",
                    ],
                    body: .gzipBomb(inflatedBytes: 80 << 20)
                ).chunked()
            }
            guard request.path != "/rest" else {
                return StubResponse(fields: ["ETag": "\"1\""], body: .pattern(90 << 20)).cut(afterBodyBytes: 10 << 20, .truncated)
            }
            return StubResponse(fields: ["Transfer-Encoding": "gzip"], body: .gzipBomb(inflatedBytes: 80 << 20)).chunked()
        }
        let session = try HTTPSessionManager(
            configuration: localConfiguration { $0.retryPolicy = RetryPolicy(maximumRetries: 1, baseDelay: .milliseconds(1)) })
        for path in ["/", "/rest"] {
            let task = session.downloadTask(for: TransferRequest(url: server.url(path)), to: .init(folder.url("bomb")))
            let error = await failure(task)
            // While the file's queue is full, libcurl keeps at most 64 MiB of decoded data, and then fails the transfer itself.
            #expect(error?.code == .responseTooLarge || error?.code == .transferFailed, "\(String(describing: error))")
            expectEqual(folder.names, [])
        }
        expectEqual(server.requests.count, 3)
    }

    @Test func `a response with too many or too large header fields is an error`() async throws {
        try await expectEqual(error(StubResponse(body: "x").headerFlood(100_000, valueBytes: 1_000))?.code, .badServerResponse)
        #expect(try await error(StubResponse(body: "x").headerFlood(1, valueBytes: 4 << 20)) != nil)
        try await expectNil(error(StubResponse(body: "x").headerFlood(100, valueBytes: 1_000)))
    }

    @Test(arguments: [
        "SSH-2.0-OpenSSH_9.2\r\n", "<html>HTTP/0.9 speaks like this</html>", "220 mail ready\r\n", "\u{1}\u{2}\u{3}",
        "HTTP/1.1 abc OK\r\n\r\n",
    ])
    func `a response of another protocol fails as badServerResponse`(_ text: String) async throws {
        let error = try await error(.raw(.text(text)))
        expectEqual(error?.code, .badServerResponse, "\(String(describing: error))")
    }

    @Test func `a connection closed without a response fails as connectionLost and is not retried`() async throws {
        let server = try TestServer { _ in .none() }
        await expectEqual(failure(try localSession().dataTask(for: TransferRequest(url: server.url())))?.code, .connectionLost)
        expectEqual(server.requests.count, 1)
        try await expectEqual(error(.none(.reset))?.code, .connectionLost)
        try await expectEqual(error(.raw(.text("HTTP/1.1 20")))?.code, .connectionLost)
    }

    @Test(arguments: [false, true]) func `a connection that ends within a head is lost, and the request is sent again`(
        isSecure: Bool
    ) async throws {
        let complete = StubResponse(body: "x").field("ETag", "\"1\"")
        let heads = [
            // Within and after the status line, within and after a field, and after an interim response.
            complete.cut(afterHeadBytes: 5), complete.cut(afterHeadBytes: 16), complete.cut(afterHeadBytes: 17),
            complete.cut(afterHeadBytes: 20), complete.cut(afterHeadBytes: 28), complete.cut(afterHeadBytes: 29),
            complete.cut(afterHeadBytes: 20, .orderly), complete.cut(afterHeadBytes: 28, .reset),
            complete.interim(103).cut(afterHeadBytes: 0), complete.interim(103).cut(afterHeadBytes: 20),
        ]
        let count = Counter()
        let answer: @Sendable (ReceivedRequest) -> StubResponse = { request in
            request.path == "/always" ? heads[3] : count.add() % 2 == 1 ? heads[(count.count - 1) / 2] : complete
        }
        let server = try TestServer(tls: isSecure ? .minted("leaf-chain") : nil, reply: answer)
        var policy = SecurityPolicy(pinningMode: .none)
        policy.roots = .given(try MintedCertificates.set("root"))
        policy.validatesDomainName = false
        let session = try localSession { [policy] in
            $0.retryPolicy = RetryPolicy(maximumRetries: 1, baseDelay: .milliseconds(1))
            $0.securityPolicy = policy
        }
        for number in heads.indices {
            let response = try await session.dataTask(for: TransferRequest(url: server.url())).response
            expectEqual(response.data, Data("x".utf8), "\(number)")
            expectEqual(response.metrics.retryCount, 1, "\(number)")
        }
        let error = await failure(session.dataTask(for: TransferRequest(url: server.url("/always"))))
        expectEqual(error?.code, .connectionLost)
        expectEqual(error?.reason, "the connection ended within the head of the response")
        // A request that may have been executed is not repeated.
        let post = TransferRequest(url: server.url("/always"), method: .post, body: .data(Data("pay".utf8)))
        await expectEqual(failure(session.dataTask(for: post))?.code, .connectionLost)
        expectEqual(server.requests.count, 2 * heads.count + 3)
    }

    @Test func `interim responses are reported to monitors and do not become the response`() async throws {
        let server = try TestServer { _ in
            StubResponse(body: "x").interim(103, fields: ["Link": "</a>"]).interim(102).interim(103)
        }
        let log = EventLog()
        let session = try HTTPSessionManager(configuration: localConfiguration(), eventMonitors: [log])
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.data, Data("x".utf8))
        session.cancel(afterTasks: true)
        await expectEqual(
            log.awaitInvalidation().filter { $0.hasPrefix("interim") }, ["interim 103", "interim 102", "interim 103"])
    }

    @Test func `endless interim responses do not extend the request timeout`() async throws {
        let text = String(repeating: "HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n", count: 1_000)
        let server = try TestServer { _ in .raw(StubBody([.bytes(Array(text.utf8)), .wait(.forever)])) }
        let session = try localSession { $0.requestTimeout = .milliseconds(300) }
        await expectEqual(failure(session.dataTask(for: TransferRequest(url: server.url())))?.code, .timedOut)
    }

    @Test func `a body without Content-Length ends when the connection closes`() async throws {
        let server = try TestServer { _ in StubResponse(body: .pattern(100_000)).untilClose() }
        try await expectEqual(localSession().dataTask(for: TransferRequest(url: server.url())).response.data, pattern(100_000))
    }

    @Test func `responses to HEAD and with 204 or 304 have no body, and their connection is reused`() async throws {
        let server = try TestServer { request in
            request.method == "HEAD"
                ? StubResponse(body: .pattern(1_000)) : StubResponse(Int(request.query ?? "") ?? 200, body: "x")
        }
        let session = try localSession()
        let head = try await session.dataTask(for: TransferRequest(url: server.url(), method: .head)).response
        expectEmpty(head.data)
        expectEqual(head.head.firstValue(of: "content-length"), "1000")
        for status in [204, 304] {
            try await expectEmpty(session.dataTask(for: TransferRequest(url: server.url("/?\(status)"))).response.data)
        }
        expectEqual(server.seen.connections, 1)
    }

    @Test func `chunked trailers do not change the response's header fields`() async throws {
        let server = try TestServer { _ in
            StubResponse(body: "x").chunked(trailers: ["X-Late": "1", "Content-Type": "evil/evil"])
        }
        let response = try await localSession().dataTask(for: TransferRequest(url: server.url())).response
        expectEqual(response.data, Data("x".utf8))
        expectNil(response.head.firstValue(of: "x-late"))
        expectNil(response.head.mediaType)
    }

    @Test func `a second response head after the body is ignored`() async throws {
        let server = try TestServer { _ in
            .raw(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nHTTP/1.1 302 Found: x\r\nLocation: /x\r\n\r\n"
            )
        }
        let response = try await localSession().dataTask(for: TransferRequest(url: server.url())).response
        expectEqual(response.statusCode, 200)
        expectEqual(response.data, Data("hello".utf8))
        expectEqual(server.requests.count, 1)
    }

    @Test func `a huge Content-Length with 204 preallocates no file`() async throws {
        let server = try TestServer { _ in .raw("HTTP/1.1 204 No Content\r\nContent-Length: 99999999999999\r\n\r\n") }
        let folder = try ScratchDirectory()
        let file = folder.url("file")
        let task = try localSession().downloadTask(for: TransferRequest(url: server.url()), to: .init(file))
        await expectEqual(failure(task)?.code, .unacceptableStatus)
        expectEmpty(folder.names)
    }

    @Test func `a gzip bomb fails as responseTooLarge, not as a libcurl error, while the response handler is slow`() async throws
    {
        let server = try TestServer { _ in .gzipBomb(inflatedBytes: 1 << 30) }
        let session = try localSession(
            handlers: TransferHandlers(response: { _ in
                // Everything received by this time has been decompressed.
                _ = try? await server.awaitSeen { $0.sentBodyBytes >= 200_000 }
                return .allow
            }))
        await expectEqual(failure(session.dataTask(for: TransferRequest(url: server.url())))?.code, .responseTooLarge)
    }
}
