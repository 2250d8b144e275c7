import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// The greatest amount of memory that this process has had, in bytes (proc_pid_status(5)).
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
            $0.requestTimeout = .seconds(20)
            change(&$0)
        }
        return await failure(session.data(TransferRequest(url: server.url())))
    }

    @Test(arguments: StubResponse.ChunkFault.allCases) func `a broken chunked body is an error`(_ fault: StubResponse.ChunkFault)
        async throws
    {
        let error = try await error(StubResponse(body: .pattern(10_000)).brokenChunks(fault))
        let isCut = fault == .cutInChunk || fault == .lastChunkIsMissing
        #expect(error?.code == (isCut ? .connectionLost : .badServerResponse))
        #expect(error?.context.statusCode == 200)
    }

    @Test func `a length that promises more than comes is a lost connection`() async throws {
        #expect(try await error(StubResponse(body: "short").declaredLength(1_000))?.code == .connectionLost)
    }

    @Test func `a length that promises less gives what was promised, and the rest answers nothing`() async throws {
        let server = try TestServer { _ in
            StubResponse(body: "short HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil").declaredLength(5)
        }
        let session = try localSession()
        #expect(try await session.data(TransferRequest(url: server.url())).value.data == Data("short".utf8))
        // Where the rest comes late it is in the next one's way, which then fails: it is no HTTP as it stands here.
        let second = session.data(TransferRequest(url: server.url()))
        if let error = await failure(second) {
            #expect(error.code == .badServerResponse)
        } else {
            #expect(try await second.value.data == Data("short".utf8))
        }
    }

    @Test func `an unasked 101 Switching Protocols is a bad response at once`() async throws {
        var reply = StubResponse.raw("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nabc")
        reply.connectionUse = .keepAlive
        let error = try await error(reply) { $0.retryPolicy = .never }
        #expect(error?.code == .badServerResponse && error?.context.statusCode == 101, "\(String(describing: error))")
    }

    @Test(arguments: [" ", "\t"]) func `a first field line that begins with a space is a bad response`(_ space: String)
        async
        throws
    {
        let reply = StubResponse.raw(.text("HTTP/1.1 200 OK\r\n\(space)Content-Length: 3\r\n\r\nabc"))
        let error = try await error(reply) { $0.retryPolicy = .never }
        #expect(error?.code == .badServerResponse)
        #expect(error?.reason == "the server's response is not valid HTTP", "\(String(describing: error))")
    }

    @Test(arguments: ["-1", "x", ""]) func `a length that is no length`(_ length: String) async throws {
        var reply = StubResponse(fields: ["Content-Length": "\(length)"], body: "hello")
        reply.framing = .asGiven
        reply = reply.closing()
        let code = try await error(reply)?.code
        #expect([.badServerResponse, .responseTooLarge, .connectionLost].contains(code), "\(String(describing: code))")
    }

    @Test func `what is no gzip, and what breaks off within, cannot be decoded`() async throws {
        #expect(
            try await error(StubResponse(fields: ["Content-Encoding": "gzip"], body: "no gzip at all"))?.code
                == .cannotDecodeContent)
        #expect(
            try await error(StubResponse(fields: ["Content-Encoding": "br"], body: "no brotli at all, certainly"))?.code
                == .cannotDecodeContent)
        #expect(try await error(StubResponse(fields: ["Content-Encoding": "nonsense"], body: "x"))?.code == .cannotDecodeContent)
    }

    @Test func `what is compressed and not as its checksum says cannot be decoded`() async throws {
        let whole: [UInt8] = [
            31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 72, 205, 201, 201, 87, 200, 64, 39, 117, 20, 18, 243, 82, 20, 138, 243, 21, 242,
            243, 16, 44, 0, 152, 2, 135, 89, 44, 0, 0, 0,
        ]
        let text = Data("hello hello hello hello, and so on and so on".utf8)
        let server = try TestServer { request in
            var bytes = whole
            if request.path == "/broken" { bytes[bytes.count - 6] ^= 1 }
            return .gzip(.bytes(bytes))
        }
        let session = try localSession()
        #expect(try await session.data(TransferRequest(url: server.url())).value.data == text)
        #expect(await failure(session.data(TransferRequest(url: server.url("/broken"))))?.code == .cannotDecodeContent)
    }

    @Test(.skippedUnderSanitizers) func `a bomb ends a data task, within bounds`() async throws {
        let before = try peakMemory()
        let error = try await error(.gzipBomb(inflatedBytes: 8 << 30))
        #expect(error?.code == .responseTooLarge)
        #expect(try peakMemory() - before < 1 << 30)
    }

    @Test(.skippedUnderSanitizers) func `a bomb ends a stream that is read, and one that is read late, within bounds`()
        async throws
    {
        let before = try peakMemory()
        let server = try TestServer { _ in .gzipBomb(inflatedBytes: 8 << 30) }
        let session = try localSession()
        for waits in [false, true] {
            let task = session.stream(TransferRequest(url: server.url()))
            if waits {
                let other = try TestServer { _ in StubResponse().delayed(.milliseconds(100)) }
                _ = try await session.data(TransferRequest(url: other.url())).value
            }
            var received = 0
            let error = await #expect(throws: HTTPSessionError.self) {
                for try await chunk in task.chunks { received += chunk.count }
            }
            #expect(error?.code == .responseTooLarge, "\(String(describing: error)) \(String(describing: error?.context))")
            #expect(received < 64 << 20)
        }
        #expect(try peakMemory() - before < 1 << 30)
    }

    @Test func `a bomb is a small file, for downloads are not decoded`() async throws {
        let folder = try ScratchDirectory()
        let server = try TestServer { _ in .gzipBomb(inflatedBytes: 64 << 20) }
        _ = try await localSession().download(TransferRequest(url: server.url()), to: .init(folder.url("bomb"))).value
        let size = try FileManager.default.attributesOfItem(atPath: folder.file("bomb"))[.size] as? NSNumber
        #expect((size?.intValue ?? .max) < 1 << 20)
    }

    @Test func `a bomb that needs no question ends a download, and the rest of one`() async throws {
        let folder = try ScratchDirectory()
        let server = try TestServer { request in
            guard request["range"] == nil else {
                // Of a file whose first 10 MiB have come as they are.
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
            let task = session.download(TransferRequest(url: server.url(path)), to: .init(folder.url("bomb")))
            let error = await failure(task)
            // While the file's queue is full, libcurl keeps at most 64 MiB of what it has decoded, and then gives up by itself.
            #expect(error?.code == .responseTooLarge || error?.code == .transferFailed, "\(String(describing: error))")
            #expect(folder.names == [])
        }
        #expect(server.requests.count == 3)
    }

    @Test func `a flood of fields is stemmed`() async throws {
        #expect(try await error(StubResponse(body: "x").headerFlood(100_000, valueBytes: 1_000))?.code == .badServerResponse)
        #expect(try await error(StubResponse(body: "x").headerFlood(1, valueBytes: 4 << 20)) != nil)
        #expect(try await error(StubResponse(body: "x").headerFlood(100, valueBytes: 1_000)) == nil)
    }

    @Test(arguments: [
        "SSH-2.0-OpenSSH_9.2\r\n", "<html>HTTP/0.9 speaks like this</html>", "220 mail ready\r\n", "\u{1}\u{2}\u{3}",
        "HTTP/1.1 abc OK\r\n\r\n",
    ])
    func `another protocol is a bad response`(_ text: String) async throws {
        let error = try await error(.raw(.text(text)))
        #expect(error?.code == .badServerResponse, "\(String(describing: error))")
    }

    @Test func `a connection that ends without a word is lost, and not tried again`() async throws {
        let server = try TestServer { _ in .none() }
        #expect(await failure(try localSession().data(TransferRequest(url: server.url())))?.code == .connectionLost)
        #expect(server.requests.count == 1)
        #expect(try await error(.none(.reset))?.code == .connectionLost)
        #expect(try await error(.raw(.text("HTTP/1.1 20")))?.code == .connectionLost)
        #expect(try await error(StubResponse(body: "x").cut(afterHeadBytes: 20))?.code == .badServerResponse)
    }

    @Test func `interim responses are told and passed over`() async throws {
        let server = try TestServer { _ in
            StubResponse(body: "x").interim(103, fields: ["Link": "</a>"]).interim(102).interim(103)
        }
        let log = EventLog()
        let session = try HTTPSessionManager(configuration: localConfiguration(), monitors: [log])
        #expect(try await session.data(TransferRequest(url: server.url())).value.data == Data("x".utf8))
        session.invalidate(cancelsTasks: false)
        #expect(
            await log.awaitInvalidation().filter { $0.hasPrefix("interim") } == ["interim 103", "interim 102", "interim 103"])
    }

    @Test func `interim responses without end are a silent server`() async throws {
        let text = String(repeating: "HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n", count: 1_000)
        let server = try TestServer { _ in .raw(StubBody([.bytes(Array(text.utf8)), .wait(.forever)])) }
        let session = try localSession { $0.requestTimeout = .milliseconds(300) }
        #expect(await failure(session.data(TransferRequest(url: server.url())))?.code == .timedOut)
    }

    @Test func `a body without length ends with its connection`() async throws {
        let server = try TestServer { _ in StubResponse(body: .pattern(100_000)).untilClose() }
        #expect(try await localSession().data(TransferRequest(url: server.url())).value.data == pattern(100_000))
    }

    @Test func `no body where there is none`() async throws {
        let server = try TestServer { request in
            request.method == "HEAD"
                ? StubResponse(body: .pattern(1_000)) : StubResponse(Int(request.query ?? "") ?? 200, body: "x")
        }
        let session = try localSession()
        let head = try await session.data(TransferRequest(url: server.url(), method: .head)).value
        #expect(head.data.isEmpty)
        #expect(head.head.firstValue(of: "content-length") == "1000")
        for status in [204, 304] {
            #expect(try await session.data(TransferRequest(url: server.url("/?\(status)"))).value.data.isEmpty)
        }
        #expect(server.seen.connections == 1)
    }

    @Test func `trailers do not disturb the head`() async throws {
        let server = try TestServer { _ in
            StubResponse(body: "x").chunked(trailers: ["X-Late": "1", "Content-Type": "evil/evil"])
        }
        let response = try await localSession().data(TransferRequest(url: server.url())).value
        #expect(response.data == Data("x".utf8))
        #expect(response.head.firstValue(of: "x-late") == nil)
        #expect(response.head.mediaType == nil)
    }

    @Test func `a second head behind the body changes nothing`() async throws {
        let server = try TestServer { _ in
            .raw(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nHTTP/1.1 302 Found: x\r\nLocation: /x\r\n\r\n"
            )
        }
        let response = try await localSession().data(TransferRequest(url: server.url())).value
        #expect(response.statusCode == 200)
        #expect(response.data == Data("hello".utf8))
        #expect(server.requests.count == 1)
    }

    @Test func `a length beside 204 reserves nothing`() async throws {
        let server = try TestServer { _ in .raw("HTTP/1.1 204 No Content\r\nContent-Length: 99999999999999\r\n\r\n") }
        let folder = try ScratchDirectory()
        let file = folder.url("file")
        let task = try localSession().download(TransferRequest(url: server.url()), to: .init(file))
        #expect(await failure(task)?.code == .unacceptableStatus)
        #expect(folder.names.isEmpty)
    }

    @Test func `a bomb whose handler takes its time is too large, not too much for libcurl`() async throws {
        let server = try TestServer { _ in .gzipBomb(inflatedBytes: 1 << 30) }
        let session = try localSession(
            handlers: TransferHandlers(response: { _ in
                // What has arrived by then has been decompressed.
                _ = try? await server.awaitSeen { $0.sentBodyBytes >= 200_000 }
                return .allow
            }))
        #expect(await failure(session.data(TransferRequest(url: server.url())))?.code == .responseTooLarge)
    }
}
