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
        func transferReceived(head: ResponseHead) -> Intake {
            self.head = head
            return .taken
        }
        func transferReceived(challenge: ResponseHead) { challenges += 1 }
        func transferReceived(interim: ResponseHead) {}
        func transferReceived(bytes: UnsafeRawBufferPointer) -> Intake { .taken }
        func transferProvides(into buffer: UnsafeMutableRawBufferPointer) -> Provision { .end }
        func transferRewinds() -> Bool { true }
        func transferFinished(_ error: HTTPSessionError?, facts: TransferFacts) { end = (error, facts) }
    }

    private func engine(_ change: (inout SessionConfiguration) -> Void = { _ in }) throws -> CurlEngine {
        var network = try NetworkOptions(localConfiguration(change))
        network.proxy = .none
        return try CurlEngine(network, cookieLines: [])
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
}
