import CCurl
import EventLoop
import Expectations
import Foundation
import Glibc
import HTTPSessionTestKit
import Testing

@testable import HTTPSession

/// Attempts of an engine without a session.
@Suite(.timeLimit(.minutes(10))) struct CurlEngineTests {
    /// Receives a response, and counts the questions about local addresses.
    private final class Recorder: TransferReceiver {
        /// The number of local addresses that are accepted.
        var acceptedAddresses = Int.max
        private(set) var questions: [String] = []
        private(set) var head: ResponseHead?
        private(set) var challenges = 0
        private(set) var end: (error: HTTPSessionError?, facts: TransferFacts)?

        let userObjects: any Sendable = 0
        func transferLookedUp() {}
        func transferRefusal(from local: String) -> HTTPSessionError? {
            questions.append(local)
            return questions.count > acceptedAddresses ? HTTPSessionError(.networkNotAllowed, "\(local) is not allowed") : nil
        }
        func transferMayReuse(from local: String, to remote: String) -> Bool { true }
        func transferMayRepeat() -> Bool { true }
        func transferConnected() {}
        func transferNeedsCookies(isSecure: Bool) -> [UInt8] { [] }
        func transferReceived(head: ResponseHead) -> Intake {
            self.head = head
            return .accepted
        }
        func transferReceived(challenge: ResponseHead) { challenges += 1 }
        func transferReceived(interim: ResponseHead) {}
        func transferReceived(bytes: UnsafeRawBufferPointer) -> Intake { .accepted }
        func transferProvides(into buffer: UnsafeMutableRawBufferPointer) -> Provision { .end }
        func transferRewinds() -> Bool { true }
        func transferFinished(_ error: HTTPSessionError?, facts: TransferFacts) { end = (error, facts) }
    }

    private func engine(_ change: (inout SessionConfiguration) -> Void = { _ in }) throws -> CurlEngine {
        let network = try EngineConfiguration(localConfiguration(change))
        return try CurlEngine(network)
    }

    /// Runs attempts at the same time to their ends.
    private func run(_ engine: CurlEngine, _ plans: [TransferPlan], _ recorders: [Recorder]) throws {
        for (plan, recorder) in zip(plans, recorders) {
            _ = try engine.start(plan, for: recorder, trust: nil, now: MonotonicClock.now())
        }
        let deadline = MonotonicClock.now() + 30_000_000_000
        while recorders.contains(where: { $0.end == nil }), MonotonicClock.now() < deadline {
            engine.advance()
            guard recorders.contains(where: { $0.end == nil }) else { break }
            engine.wait(until: deadline, idleness: { preconditionFailure("libcurl's time is real") }, hasCommands: { false }) {}
        }
    }

    private func run(_ engine: CurlEngine, _ plan: TransferPlan) throws -> Recorder {
        let recorder = Recorder()
        try run(engine, [plan], [recorder])
        return recorder
    }

    // MARK: Every request of an attempt

    private static let challenge = #"Digest realm="d", qop="auth", nonce="n0nce", algorithm=MD5"#

    private func digestPlan(_ server: TestServer) -> TransferPlan {
        var plan = TransferPlan(url: server.url().absoluteString, method: "GET")
        plan.login = TransferPlan.Login(user: "user", password: "word", schemes: [.digest])
        return plan
    }

    @Test(arguments: [1, 2, 3])
    func `the local address is checked before every request of a login`(_ accepted: Int) throws {
        let server = try TestServer { $0["authorization"] == nil ? .unauthorized(Self.challenge) : StubResponse(body: "x") }
        var plan = digestPlan(server)
        plan.asksBeforeConnecting = true
        let recorder = Recorder()
        recorder.acceptedAddresses = accepted
        try run(engine(), [plan], [recorder])
        // For the connection, and for the second request on it.
        expectEqual(recorder.questions, ["127.0.0.1", "127.0.0.1"])
        expectEqual(recorder.challenges, 1)
        expectEqual(server.requests.count, accepted == 1 ? 1 : 2)
        expectEqual(recorder.end?.error?.code, accepted == 1 ? .networkNotAllowed : nil)
        expectEqual(recorder.end?.facts.hadUnfitConnection, accepted == 1)
        expectEqual(recorder.head?.statusCode, accepted == 1 ? nil : 200)
    }

    @Test func `the second request of a login that needs a fresh connection does not use an idle one`() throws {
        // The server closes the connection of a challenge, so libcurl needs another one for the answer.
        let server = try TestServer { request in
            request["authorization"] == nil && request.target != "/idle"
                ? .unauthorized(Self.challenge).closing() : StubResponse(body: "x")
        }
        let engine = try engine()
        var idle = TransferPlan(url: server.url("/idle").absoluteString, method: "GET")
        // Without the wait of the second request to a server.
        idle.needsFreshConnection = true
        try expectNil(run(engine, idle).end?.error)
        var plan = digestPlan(server)
        plan.needsFreshConnection = true
        let refused = try run(engine, plan)
        expectEqual(refused.end?.error?.code, .connectionLost)
        expectEqual(refused.end?.facts.hadUnfitConnection, true)
        // The idle connection is closed, and the next attempt makes two.
        let next = try run(engine, plan)
        expectNil(next.end?.error)
        expectEqual(next.head?.statusCode, 200)
        expectEqual(server.requests.map(\.connection), [1, 2, 3, 4])
    }

    // MARK: Fresh connections

    /// A server of HTTP/2 with prior knowledge (RFC 9113 section 3.3) that answers 204 to two requests when both have arrived.
    private final class PairServer: Sendable {
        let listener: LoopbackListener
        private let arrived: Locked<[(client: Int32, number: Int, stream: [UInt8])]>
        /// The numbers of the connections of the requests.
        var connections: Set<Int> { Set(arrived.withLock { $0.map(\.number) }) }

        init() throws {
            let arrived = Locked<[(client: Int32, number: Int, stream: [UInt8])]>([])
            self.arrived = arrived
            listener = try LoopbackListener { client, number in
                func write(_ client: Int32, _ bytes: [UInt8]) { _ = send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }
                func read(_ count: Int) -> [UInt8]? {
                    var bytes = [UInt8](repeating: 0, count: count)
                    return count == 0 || recv(client, &bytes, count, Int32(MSG_WAITALL)) == count ? bytes : nil
                }
                guard read(24) != nil else { return }
                // SETTINGS
                write(client, [0, 0, 0, 4, 0, 0, 0, 0, 0])
                while let frame = read(9), read(Int(frame[1]) << 8 | Int(frame[2])) != nil {
                    if frame[3] == 4, frame[4] & 1 == 0 { write(client, [0, 0, 0, 4, 1, 0, 0, 0, 0]) }
                    guard frame[3] == 1 else { continue }
                    let requests = arrived.withLock { arrived in
                        arrived.append((client, number, Array(frame[5...])))
                        return arrived
                    }
                    guard requests.count == 2 else { continue }
                    // HEADERS with END_STREAM and END_HEADERS; `:status: 204` is number 9 of HPACK's table.
                    for (client, _, stream) in requests { write(client, [0, 0, 1, 1, 5] + stream + [0x89]) }
                }
            }
        }
    }

    @Test func `the maximum idle time of a connection does not replace the need for a connection of its own`() throws {
        let server = try PairServer()
        let engine = try engine { $0.httpVersion = .http2 }
        let plans = try (0..<2).map { number in
            var plan = TransferPlan(url: try server.listener.url("\(number)").absoluteString, method: "GET")
            // As after a change of the network.
            plan.maximumIdleSeconds = 100
            return plan
        }
        let recorders = plans.map { _ in Recorder() }
        try run(engine, plans, recorders)
        expectEqual(recorders.map { $0.head?.statusCode }, [204, 204])
        expectEqual(server.connections.count, engine.network.needsConnectionAlone(isSecure: false) ? 2 : 1)
    }

    // MARK: Host overrides

    /// Removes a name from the cache of a multi handle, as libcurl 8.16 and newer do with CURLMOPT_NETWORK_CHANGED.
    private func removeName(_ name: String, from engine: CurlEngine) throws {
        let handle = try EasyHandle()
        let list = curl_slist_append(nil, "-\(name)")
        defer { curl_slist_free_all(list) }
        try handle.set(CURLOPT_RESOLVE, pointer: list)
        // The list is read when a transfer begins, and this one ends at once.
        try handle.set(CURLOPT_URL, "none://none/")
        expectEqual(curl_multi_add_handle(engine.multi, handle.raw), CURLM_OK)
        engine.advance()
        curl_multi_remove_handle(engine.multi, handle.raw)
        handle.cleanUp()
    }

    @Test func `a kept handle uses the host overrides after the names were removed at a change of the network`() throws {
        let server = try TestServer(at: .ip("127.0.0.2", port: 0)) { _ in StubResponse(body: "x").closing() }
        // libcurl resolves the name itself: to 127.0.0.1, where no server is.
        let name = "named.localhost"
        let engine = try engine {
            $0.hostOverrides = [.init(host: name, port: Int(server.port), addresses: ["127.0.0.2"])]
        }
        let plan = TransferPlan(url: "http://\(name):\(server.port)/", method: "GET")
        try expectEqual(run(engine, plan).end?.facts.remoteAddress, "127.0.0.2")
        for _ in 0..<2 {
            try removeName("\(name):\(server.port)", from: engine)
            engine.networkChanged()
            let recorder = try run(engine, plan)
            expectNil(recorder.end?.error)
            expectEqual(recorder.end?.facts.remoteAddress, "127.0.0.2")
        }
        // The name is removed indeed: a kept handle does not find it without a change of the network.
        try removeName("\(name):\(server.port)", from: engine)
        try expectEqual(run(engine, plan).end?.error?.code, .cannotConnectToHost)
    }
}
