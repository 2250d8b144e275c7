import Expectations
import FoundationEssentials
import HTTPSession
import HTTPSessionTestKit
import Reachability
import ReachabilityTestKit
import Testing

/// Downloads and network changes over a scripted transport.
@Suite(.timeLimit(.minutes(5)))
final class ScriptedDownloadTests {
    private let folder: URL
    private let transport = ScriptedTransport()

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("scripted-\(UInt64.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private var file: URL { folder.appendingPathComponent("big.bin") }

    private func session(_ network: ScriptedNetwork? = nil) throws -> HTTPSessionManager {
        try HTTPSessionManager(baseURL: "https://api.example.com", monitor: network?.monitor, transport: transport)
    }

    private static let noCarrier = NetworkPath.unsatisfied(Cause(.link, .noCarrier, detail: "interface wlan0 has no carrier"))

    @Test func `a download that is cut continues with Range and If-Range`() async throws {
        let reply = StubResponse(body: .pattern(300_000)).servingRanges(entityTag: "\"v1\"")
        transport.stub("/big.bin", with: reply.cut(afterBodyBytes: 100_000, .reset), reply)
        let response = try await session().download("/big.bin", to: file).response
        try expectEqual(Data(contentsOf: file), Data(StubBody.patternBytes(from: 0, count: 300_000)))
        expectEqual(transport.requests.map { $0["range"] }, [nil, "bytes=100000-"])
        expectEqual(transport.requests.last?["if-range"], "\"v1\"")
        expectEqual(response.metrics.bytesContinued, 100_000)
    }

    @Test func `a download restarts when the entity tag has changed`() async throws {
        transport.stub(
            "/big.bin",
            with: StubResponse(body: .zeros(300_000)).servingRanges(entityTag: "\"v1\"").cut(afterBodyBytes: 100_000, .reset),
            StubResponse(body: .pattern(200_000)).servingRanges(entityTag: "\"v2\""))
        _ = try await session().download("/big.bin", to: file).response
        try expectEqual(Data(contentsOf: file), Data(StubBody.patternBytes(from: 0, count: 200_000)))
    }

    @Test func `a download with another digest than expected leaves no file`() async throws {
        transport.stub("/big.bin", with: StubResponse(body: .pattern(1_000)))
        let digest = ContentDigest(sha256: String(repeating: "0", count: 64))
        let request = TransferRequest(url: try #require(URL(string: "https://api.example.com/big.bin")))
        let session = try session()
        let destination = DownloadDestination(file, expectedDigest: digest)
        let error = await #expect(throws: HTTPSessionError.self) {
            try await session.downloadTask(for: request, to: destination).response
        }
        expectEqual(error?.code, .digestMismatch)
        try expectEmpty(FileManager.default.contentsOfDirectory(atPath: folder.path))
    }

    @Test func `files are written while time stands`() async throws {
        transport.stub("/big.bin", with: StubResponse(body: .pattern(20_000_000)))
        _ = try await session().download("/big.bin", to: file).response
        try expectEqual(FileManager.default.attributesOfItem(atPath: file.path)[.size] as? Int, 20_000_000)
        #expect(transport.elapsedTime < .seconds(1))
    }

    @Test func `a request waits for connectivity while the path is unsatisfied`() async throws {
        let network = ScriptedNetwork(Self.noCarrier)
        transport.stub("/", with: StubResponse(body: "hello"))
        let task = try session(network).get("/")
        await transport.waitUntilIdle()
        #expect(task.state == .waitingForConnectivity && transport.requests.isEmpty)
        network.publish(.satisfied(over: .wifi()))
        try await expectEqual(task.string(), "hello")
        expectEqual(transport.requests.count, 1)
    }

    @Test func `without waiting for connectivity the cause of the path is the error's`() async throws {
        let network = ScriptedNetwork(Self.noCarrier)
        var configuration = SessionConfiguration()
        (configuration.waitsForConnectivity, configuration.retryPolicy) = (false, .never)
        let session = try HTTPSessionManager(
            baseURL: "https://api.example.com", configuration: configuration, monitor: network.monitor, transport: transport)
        transport.stub("/", with: StubResponse())
        let error = await #expect(throws: HTTPSessionError.self) { try await session.get("/").response }
        #expect(error?.code == .notConnected && error?.cause?.code == .noCarrier)
    }

    @Test func `a download whose path is lost continues when the path is back`() async throws {
        let network = ScriptedNetwork(.satisfied(over: .wifi()))
        let gate = try Gate()
        let reply = StubResponse(body: .pattern(300_000)).servingRanges(entityTag: "\"v1\"")
        var stalling = reply
        stalling.body.segments = [
            .pattern(from: 0, count: 100_000), .wait(.gate(gate)), .pattern(from: 100_000, count: 200_000),
        ]
        transport.stub("/big.bin", with: stalling, reply)
        let task = try session(network).download("/big.bin", to: file)
        await transport.waitUntilIdle()
        #expect(task.state == .running && transport.requests.count == 1)
        network.publish(Self.noCarrier)
        await transport.waitUntilIdle()
        expectEqual(task.state, .waitingForConnectivity)
        network.publish(.satisfied(over: .cellular()))
        _ = try await task.response
        try expectEqual(Data(contentsOf: file), Data(StubBody.patternBytes(from: 0, count: 300_000)))
        expectEqual(transport.requests.map { $0["range"] }, [nil, "bytes=100000-"])
    }

    /// A download from 100,000 of 300,000 bytes on, whose connection was made over Wi-Fi.
    private func halfDownload(_ network: ScriptedNetwork, _ change: (inout TransferRequest) -> Void) async throws -> TransferTask
    {
        let reply = StubResponse(body: .pattern(300_000)).servingRanges(entityTag: "\"v1\"")
        var stalling = reply
        stalling.body.segments = [
            .pattern(from: 0, count: 100_000), .wait(.gate(try Gate())), .pattern(from: 100_000, count: 200_000),
        ]
        transport.stub("/big.bin", with: stalling, reply)
        var request = TransferRequest(url: try #require(URL(string: "https://api.example.com/big.bin")))
        change(&request)
        let task = try session(network).downloadTask(for: request, to: file)
        await transport.waitUntilIdle()
        #expect(task.state == .running && transport.requests.count == 1)
        return task
    }

    @Test func `a download pauses when the path moves to cellular, which it may not use, and continues over Wi-Fi`() async throws
    {
        let network = ScriptedNetwork(.satisfied(over: .wifi()))
        let task = try await halfDownload(network) { $0.options.allowsCellularAccess = false }
        network.publish(.satisfied(over: .cellular()))
        await transport.waitUntilIdle()
        expectEqual(task.state, .waitingForConnectivity)
        expectEqual(task.currentProgress.bytesReceived, 100_000)
        network.publish(.satisfied(over: .wifi()))
        _ = try await task.response
        try expectEqual(Data(contentsOf: file), Data(StubBody.patternBytes(from: 0, count: 300_000)))
        expectEqual(transport.requests.map { $0["range"] }, [nil, "bytes=100000-"])
    }

    @Test func `a download that may use cellular continues over it at once`() async throws {
        let network = ScriptedNetwork(.satisfied(over: .wifi()))
        let task = try await halfDownload(network) { _ in }
        network.publish(.satisfied(over: .cellular()))
        _ = try await task.response
        expectEqual(transport.requests.map { $0["range"] }, [nil, "bytes=100000-"])
    }

    @Test(arguments: [(true, nil), (false, HTTPSessionError.Code.connectionLost)])
    func `a POST stays on its interface while the path lists it, and fails with it`(
        _ isListed: Bool, _ failure: HTTPSessionError.Code?
    ) async throws {
        let network = ScriptedNetwork(.satisfied(over: .wifi()))
        let gate = try Gate()
        transport.stub(
            "/orders", method: .post, with: StubResponse(body: StubBody([.wait(.gate(gate)), .bytes(Array("done".utf8))])))
        let task = try session(network).post("/orders", json: ["item": "tea"])
        await transport.waitUntilIdle()
        let (wifi, cellular) = (NetworkInterface.wifi(), NetworkInterface.cellular())
        network.publish(
            NetworkPath(
                status: .satisfied, interface: cellular, supportsDNS: true, interfaces: isListed ? [cellular, wifi] : [cellular]))
        await transport.waitUntilIdle()
        gate.open()
        do {
            let text = try await task.string()
            expectEqual(text, failure == nil ? "done" : "no error")
        } catch {
            expectEqual(error.code, failure)
        }
        expectEqual(transport.requests.count, 1)
    }

    @Test func `a path that may not be used is waited out`() async throws {
        let network = ScriptedNetwork(.satisfied(over: .cellular()))
        var request = TransferRequest(url: try #require(URL(string: "https://api.example.com/")))
        request.options.allowsCellularAccess = false
        transport.stub("/", with: StubResponse(body: "hello"))
        let task = try session(network).dataTask(for: request)
        await transport.waitUntilIdle()
        expectEqual(task.state, .waitingForConnectivity)
        network.publish(.satisfied(over: .wifi()))
        try await expectEqual(task.string(), "hello")
    }

    @Test func `a real server serves ranges of a stub's body`() async throws {
        let server = try TestServer { _ in StubResponse(body: .pattern(1_000)).servingRanges() }
        var configuration = SessionConfiguration()
        configuration.insecureHTTP = .allowed
        let session = try HTTPSessionManager(configuration: configuration)
        func response(_ range: String, _ condition: String? = nil) async throws -> TransferResponse {
            var request = TransferRequest(url: server.url())
            request.headerFields[.range] = range
            if let condition { request.headerFields[.ifRange] = condition }
            return try await session.dataTask(for: request).response
        }
        let part = try await response("bytes=10-19")
        #expect(part.statusCode == 206 && part.data == Data(StubBody.patternBytes(from: 10, count: 10)))
        expectEqual(part.head.firstValue(of: "content-range"), "bytes 10-19/1000")
        try await expectEqual(response("bytes=-5").data, Data(StubBody.patternBytes(from: 995, count: 5)))
        try await expectEqual(response("bytes=1000-").statusCode, 416)
        try await expectEqual(response("bytes=10-", "\"other\"").statusCode, 200)
        try await expectEqual(response("bytes=10-", "\"1\"").statusCode, 206)
    }
}
