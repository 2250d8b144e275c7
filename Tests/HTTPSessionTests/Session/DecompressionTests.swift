import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// Decompression of response bodies and its limits.
@Suite(.timeLimit(.minutes(20))) struct DecompressionTests {
    /// A frame of Zstandard (RFC 8878 section 3.1.1) whose window is 128 KiB, without a length and a checksum.
    private func zstd(_ blocks: [[UInt8]]) -> StubBody {
        .bytes([0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x38] + blocks.joined())
    }

    /// A block with its header and payload: raw bytes (type 0), or one repeated byte (type 1).
    private func block(_ type: Int, _ bytes: [UInt8], size: Int, isLast: Bool) -> [UInt8] {
        let header = (isLast ? 1 : 0) | type << 1 | size << 3
        return [UInt8(header & 0xFF), UInt8(header >> 8 & 0xFF), UInt8(header >> 16)] + bytes
    }

    private func raw(_ text: String, isLast: Bool) -> [UInt8] {
        block(0, Array(text.utf8), size: text.utf8.count, isLast: isLast)
    }

    // The libcurl of Debian includes zstd.
    @Test func `zstd is requested in Accept-Encoding and decoded`() async throws {
        let body = zstd([
            raw("what was ", isLast: false), block(1, [UInt8(ascii: "o")], size: 100_000, isLast: false),
            raw("nce short", isLast: true),
        ])
        let server = try TestServer { _ in StubResponse(fields: ["Content-Encoding": "zstd"], body: body) }
        let session = try localSession()
        let response = try await session.dataTask(for: TransferRequest(url: server.url())).response
        let codings = server.requests.first?["accept-encoding"]?.split(separator: ",").map { $0.drop { $0 == " " } }
        #expect(codings?.contains("zstd") == true)
        expectEqual(response.data, Data(("what was " + String(repeating: "o", count: 100_000) + "nce short").utf8))
        expectEqual(response.metrics.transactions.first?.countOfResponseBodyBytesReceived, body.count)
    }

    @Test func `zstd with a reserved block type, and content that is not zstd, fails as cannotDecodeContent`() async throws {
        for body in [zstd([raw("what", isLast: false), block(3, [1], size: 1, isLast: true)]), .text("plain")] {
            let server = try TestServer { _ in StubResponse(fields: ["Content-Encoding": "zstd"], body: body) }
            let error = await failure(try localSession().dataTask(for: TransferRequest(url: server.url())))
            expectEqual(error?.code, .cannotDecodeContent, "\(String(describing: error))")
        }
    }

    @Test func `without decompression no Accept-Encoding is sent and the body stays encoded`() async throws {
        let body = zstd([raw("what", isLast: true)])
        let server = try TestServer { _ in StubResponse(fields: ["Content-Encoding": "zstd"], body: body) }
        let session = try localSession { $0.decompressesResponses = false }
        let response = try await session.dataTask(for: TransferRequest(url: server.url())).response
        #expect(response.data.prefix(4) == Data([0x28, 0xB5, 0x2F, 0xFD]) && response.data.count == body.count)
        expectNil(server.requests.first?["accept-encoding"])
    }

    @Test func `a body that exceeds the maximum decompression ratio fails as responseTooLarge if it is long`() async throws {
        // The decompressed size is 1,030 times the compressed size.
        let server = try TestServer { request in
            .gzipBomb(inflatedBytes: request.path == "/short" ? 8 << 20 : 9 << 20)
        }
        let strict = try localSession()
        let error = await failure(strict.dataTask(for: TransferRequest(url: server.url())))
        expectEqual(error?.code, .responseTooLarge)
        expectEqual(error?.reason, "the response decompresses to more than 250 times its size")
        try await expectEqual(strict.dataTask(for: TransferRequest(url: server.url("/short"))).response.data.count, 8 << 20)
        let trusting = try localSession { $0.maximumDecompressionRatio = 1_100 }
        try await expectEqual(trusting.dataTask(for: TransferRequest(url: server.url())).response.data, Data(count: 9 << 20))
        let refusal = HTTPSessionError.thrown { try localSession { $0.maximumDecompressionRatio = 0 } }
        expectEqual(refusal?.reason, "maximumDecompressionRatio is below 1")
    }

    @Test func `the decompression ratio limits every coding; zstd can compress thirty times more than gzip`() async throws {
        let zeros = (0..<80).map { block(1, [0], size: 128 << 10, isLast: $0 == 79) }
        let body = zstd(zeros)
        let server = try TestServer { _ in StubResponse(fields: ["Content-Encoding": "zstd"], body: body) }
        let session = try localSession { $0.maximumDecompressionRatio = 1_100 }
        await expectEqual(failure(session.dataTask(for: TransferRequest(url: server.url())))?.code, .responseTooLarge)
        let trusting = try localSession { $0.maximumDecompressionRatio = 33_000 }
        try await expectEqual(
            trusting.dataTask(for: TransferRequest(url: server.url())).response.data, Data(count: 80 * 128 << 10))
    }

    // MARK: Bytes behind the compressed data

    /// The bytes of a body of `count` bytes in deflate's format, with zlib's header and checksum or without.
    private static func deflate(_ text: String, hasHeader: Bool) -> [UInt8] {
        let bytes = Array(text.utf8)
        let length = UInt16(bytes.count)
        var block: [UInt8] = [1, UInt8(length & 0xFF), UInt8(length >> 8), UInt8(~length & 0xFF), UInt8(~length >> 8)]
        block += bytes
        guard hasHeader else { return block }
        let sums = bytes.reduce(into: (UInt32(1), UInt32(0))) { sums, byte in
            sums.0 = (sums.0 + UInt32(byte)) % 65_521
            sums.1 = (sums.1 + sums.0) % 65_521
        }
        let checksum = sums.1 << 16 | sums.0
        return [0x78, 0x01] + block + (0..<4).map { UInt8(checksum >> (24 - 8 * $0) & 0xFF) }
    }

    private static func gzip(_ text: String) -> [UInt8] {
        StubBody.gzip(text.utf8).segments.flatMap { segment -> [UInt8] in
            if case .bytes(let bytes) = segment { bytes } else { [] }
        }
    }

    /// Complete compressed data of "hello", and what follows it.
    private static let surplus: [(coding: String, content: String, bytes: [UInt8])] = {
        let brotli: [UInt8] = [0x0B, 0x02, 0x80] + Array("hello".utf8) + [0x03]
        let all: [(String, [UInt8], [UInt8])] = [
            ("gzip", gzip("hello"), gzip(" world")),
            ("deflate", deflate("hello", hasHeader: true), deflate(" world", hasHeader: true)),
            ("deflate", deflate("hello", hasHeader: false), deflate(" world", hasHeader: false)), ("br", brotli, brotli),
        ]
        return all.flatMap { coding, first, second -> [(String, String, [UInt8])] in
            [
                (coding, "hello", first), (coding, "hello", first + [UInt8](repeating: 0, count: 512)),
                (coding, "hello", first + Array("and more".utf8)),
                (coding, coding == "gzip" ? "hello world" : "hello", first + second),
            ]
        } + [("gzip", "hello", gzip("hello") + gzip("")), ("gzip", "hello", gzip("") + gzip("hello"))]
    }()

    /// The kinds of tasks, each with a function that returns the bytes of a response.
    private func fetches(
        _ session: HTTPSessionManager, to file: URL
    ) -> [(kind: String, fetch: (TransferRequest) async throws -> Data)] {
        [
            ("data", { try await session.dataTask(for: $0).data() }),
            (
                "stream",
                {
                    var data = Data()
                    for try await chunk in session.streamTask(for: $0).chunks { data += chunk }
                    return data
                }
            ),
            (
                "download",
                {
                    try await session.downloadTask(for: $0, to: file).file()
                    return try Data(contentsOf: file)
                }
            ),
        ]
    }

    @Test func `several members, padding and other bytes behind compressed data are decoded or fail as cannotDecodeContent`()
        async throws
    {
        let folder = try ScratchDirectory()
        let session = try localSession()
        for (number, (coding, content, bytes)) in Self.surplus.enumerated() {
            // In one piece, and with the last bytes in pieces of their own.
            for piece in [bytes.count, 7] {
                var reply = StubResponse(fields: ["Content-Encoding": coding], body: .bytes(bytes))
                reply.pieceBytes = piece
                if piece == 7 { reply = reply.pieces(of: 7, after: .delay(.milliseconds(1))) }
                let server = try TestServer { [reply] _ in reply }
                let request = TransferRequest(url: server.url())
                for (kind, fetch) in fetches(session, to: folder.url("\(number)-\(piece)")) {
                    do { try await expectEqual(fetch(request), Data(content.utf8), "\(number) \(coding) \(piece) \(kind)") } catch
                    {
                        let code = (error as? HTTPSessionError)?.code
                        expectEqual(code, .cannotDecodeContent, "\(number) \(coding) \(piece) \(kind): \(error)")
                    }
                }
            }
        }
        #expect(folder.names.allSatisfy { !$0.hasPrefix(".") })
    }

    // MARK: Compressed data that end early

    @Test(arguments: ["gzip", "deflate", "raw deflate", "br", "zstd"])
    func `compressed data that end early are an error, whatever ends the body`(_ name: String) async throws {
        let folder = try ScratchDirectory()
        let session = try localSession { $0.retryPolicy = .never }
        let text = String(repeating: "hello", count: 40)
        let bytes: [UInt8] =
            switch name {
            case "gzip": Self.gzip(text)
            case "deflate": Self.deflate(text, hasHeader: true)
            case "raw deflate": Self.deflate(text, hasHeader: false)
            case "br": [0x0B, 0x02, 0x80] + Array("hello".utf8) + [0x03]
            default: [0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x38] + raw(text, isLast: true)
            }
        let content = name == "br" ? "hello" : text
        let coding = name == "raw deflate" ? "deflate" : name
        for cut in [0, 1, 5, bytes.count - 1] {
            let body = StubBody.bytes(Array(bytes.dropLast(cut)))
            let whole = StubResponse(fields: ["Content-Encoding": coding], body: body)
            for (framing, reply) in [("length", whole), ("chunked", whole.chunked()), ("close", whole.untilClose())] {
                let server = try TestServer { _ in reply }
                let request = TransferRequest(url: server.url())
                for (kind, fetch) in fetches(session, to: folder.url("\(cut)-\(framing)")) {
                    do {
                        let data = try await fetch(request)
                        #expect(cut == 0 && data == Data(content.utf8), "\(name) \(cut) \(framing) \(kind)")
                    } catch {
                        let code = (error as? HTTPSessionError)?.code
                        expectEqual(
                            code, cut == 0 ? nil : framing == "close" ? .connectionLost : .cannotDecodeContent,
                            "\(name) \(cut) \(framing) \(kind): \(error)")
                    }
                }
            }
        }
    }

    @Test func `compressed data that the end of the connection cuts are requested again`() async throws {
        let count = Counter()
        let server = try TestServer { _ in
            count.add() == 1
                ? StubResponse(fields: ["Content-Encoding": "gzip"], body: .bytes(Array(Self.gzip("hello").dropLast(4))))
                    .untilClose()
                : .gzip(.gzip("hello".utf8))
        }
        let session = try localSession { $0.retryPolicy = RetryPolicy(maximumRetries: 1, baseDelay: .milliseconds(1)) }
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).data(), Data("hello".utf8))
        expectEqual(server.requests.count, 2)
    }

    @Test func `an unknown coding is named`() async throws {
        let server = try TestServer { _ in StubResponse(fields: ["Content-Encoding": "gzip, foo"], body: "x") }
        let error = await failure(try localSession().dataTask(for: TransferRequest(url: server.url())))
        expectEqual(error?.reason, "the response cannot be decompressed: its coding is unknown: foo")
    }

    @Test func `compressed content of a stream whose reader is slow arrives completely`() async throws {
        let body = pattern(3_000_000)
        let server = try TestServer { _ in .gzip(.gzip(body)) }
        let session = try localSession()
        let task = session.streamTask(for: TransferRequest(url: server.url()))
        var data = Data()
        for try await chunk in task.chunks {
            data += chunk
            if data.count % 5 == 0 { task.suspend() }
            task.resume()
        }
        #expect(data == body)
    }

    // MARK: Downloads that the server compresses unasked

    private func download(
        _ server: TestServer, to file: URL, partialFile: DownloadDestination.PartialFilePolicy = .remove,
        digest: ContentDigest? = nil,
        _ change: (inout TransferRequest) -> Void = { _ in }
    ) throws -> TransferTask {
        var request = TransferRequest(url: server.url())
        change(&request)
        var destination = DownloadDestination(file, partialFile: partialFile)
        destination.expectedDigest = digest
        let session = try localSession { $0.retryPolicy = RetryPolicy(maximumRetries: 1, baseDelay: .milliseconds(1)) }
        return session.downloadTask(for: request, to: destination)
    }

    @Test(arguments: [HTTPRequest.Method.get, .post])
    func `a download that the server compresses unasked is decompressed`(_ method: HTTPRequest.Method) async throws {
        let folder = try ScratchDirectory()
        let text = "what was once short"
        for (coding, body) in [("gzip", StubBody.gzip(text.utf8)), ("zstd", zstd([raw(text, isLast: true)]))] {
            let server = try TestServer { _ in
                StubResponse(
                    fields: [
                        "Content-Encoding": coding, "ETag": "\"1\"",
                        "Repr-Digest": "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:",
                    ], body: body)
            }
            let task = try download(server, to: folder.url(coding), digest: ContentDigest.sha256(of: Data(text.utf8))) {
                $0.method = method
                if method == .post { $0.body = .data(Data("x".utf8)) }
            }
            try await expectEqual(task.file(), folder.url(coding))
            try expectEqual(String(contentsOf: folder.url(coding), encoding: .utf8), text)
            expectEqual(server.requests.map { $0.values("accept-encoding") }, [["identity"]])
            expectEqual(task.currentProgress.bytesReceived, Int64(text.utf8.count))
        }
    }

    @Test(arguments: [("/file.tar.gz", "file"), ("/latest?id=3", "file.tgz"), ("/a/FILE.GZ", "other")])
    func `a file that is compressed by its name is stored as it is sent, whatever its Content-Encoding says`(
        _ path: String, _ name: String
    ) async throws {
        let folder = try ScratchDirectory()
        // Two members, which libcurl cannot decompress.
        let bytes = Data(Self.gzip("one") + Self.gzip("two"))
        let server = try TestServer { _ in
            StubResponse(fields: ["Content-Encoding": "x-gzip"], body: StubBody([.bytes(Array(bytes))]))
        }
        let task = try download(server, to: folder.url(name), digest: ContentDigest.sha256(of: bytes)) {
            $0.url = URL(string: server.origin + path) ?? $0.url
        }
        _ = try await task.file()
        try expectEqual(Data(contentsOf: folder.url(name)), bytes)
    }

    @Test func `an Accept-Encoding of the session does not apply to a download, which is decompressed`() async throws {
        let folder = try ScratchDirectory()
        let server = try TestServer { _ in StubResponse(fields: ["Content-Encoding": "gzip"], body: .gzip("short".utf8)) }
        let session = try localSession { $0.additionalHeaderFields[.acceptEncoding] = "gzip" }
        let task = session.downloadTask(for: TransferRequest(url: server.url()), to: folder.url("file"))
        _ = try await task.file()
        try expectEqual(String(contentsOf: folder.url("file"), encoding: .utf8), "short")
        expectEqual(server.requests.map { $0.values("accept-encoding") }, [["identity"]])
    }

    @Test(arguments: [DownloadDestination.PartialFilePolicy.remove, .keep])
    func `a compressed download that is cut restarts, and leaves no partial file`(
        _ partialFile: DownloadDestination.PartialFilePolicy
    )
        async throws
    {
        let folder = try ScratchDirectory()
        let body = pattern(300_000)
        let complete = StubResponse.gzip(.gzip(body)).field("ETag", "\"1\"").field("Accept-Ranges", "bytes")
        let count = Counter()
        let server = try TestServer { _ in count.add() == 2 ? complete : complete.cut(afterBodyBytes: 200_000) }
        let response = try await download(server, to: folder.url("file"), partialFile: partialFile).response
        try expectEqual(Data(contentsOf: folder.url("file")), body)
        expectEqual(response.metrics.bytesContinued, 0)
        expectEqual(server.requests.map { $0["range"] }, [nil, nil])
        // The later requests are cut too.
        let error = await failure(try download(server, to: folder.url("other"), partialFile: partialFile))
        expectEqual(error?.code, .connectionLost)
        expectEqual(folder.names, ["file"])
    }

    @Test(arguments: [200, 206])
    func `bytes of an uncompressed download are not joined with compressed ones`(_ status: Int) async throws {
        let folder = try ScratchDirectory()
        let body = pattern(300_000)
        let count = Counter()
        let server = try TestServer { request in
            if request["range"] == nil, count.add() == 1 {
                return StubResponse(body: .pattern(300_000)).field("ETag", "\"1\"").cut(afterBodyBytes: 200_000)
            }
            guard request["range"] != nil, status == 206 else { return .gzip(.gzip(body)).field("ETag", "\"1\"") }
            return StubResponse(206, body: .gzip(body.suffix(100_000))).field("Content-Encoding", "gzip").field("ETag", "\"1\"")
                .field("Content-Range", "bytes 200000-299999/300000")
        }
        _ = try await download(server, to: folder.url("file")).response
        try expectEqual(Data(contentsOf: folder.url("file")), body)
        expectEqual(server.requests.map { $0["range"] }, status == 206 ? [nil, "bytes=200000-", nil] : [nil, "bytes=200000-"])
    }

    @Test func `a download with an Accept-Encoding of its own has the bytes as they were sent`() async throws {
        let folder = try ScratchDirectory()
        let server = try TestServer { _ in .gzip(.gzip("what was once short".utf8)) }
        try await download(server, to: folder.url("own")) { $0.headerFields[.acceptEncoding] = "gzip" }.file()
        let raw = try localSession { $0.decompressesResponses = false }
        try await raw.downloadTask(for: TransferRequest(url: server.url()), to: folder.url("raw")).file()
        for name in ["own", "raw"] { try expectEqual(Data(contentsOf: folder.url(name)).prefix(2), Data([0x1F, 0x8B])) }
    }

    @Test func `a download with an unknown or damaged coding fails as cannotDecodeContent and leaves no file`() async throws {
        let folder = try ScratchDirectory()
        for reply in [StubResponse(fields: ["Content-Encoding": "nonsense"], body: "x"), .gzip("no gzip at all")] {
            let server = try TestServer { _ in reply }
            await expectEqual(failure(try download(server, to: folder.url("file")))?.code, .cannotDecodeContent)
            expectEmpty(folder.names)
        }
    }
}
