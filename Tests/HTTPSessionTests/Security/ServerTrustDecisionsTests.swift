import Expectations
import Foundation
import Testing

@testable import HTTPSession

@Suite struct ServerTrustDecisionsTests {
    private let start = ContinuousClock.now

    private func challenge(_ host: String, policy: Int = 1, chain: UInt8 = 0, fault: HTTPSessionError? = nil)
        -> ServerTrustChallenge
    {
        ServerTrustChallenge(
            host: host, certificates: [], policyError: fault, key: .init(policy: policy, host: host, chain: Data([chain])))
    }

    /// The decision, if the policy trusts the server.
    private func answer(_ decisions: ServerTrustDecisions, _ challenge: ServerTrustChallenge, at now: ContinuousClock.Instant)
        -> Bool?
    {
        decisions.isTrusted(challenge.key, byPolicy: true, at: now)
    }

    @Test func `a server trust decision applies to one policy, host and chain`() {
        let decisions = ServerTrustDecisions()
        decisions.record(.accept, of: challenge("a"), at: start)
        expectEqual(answer(decisions, challenge("a"), at: start), true)
        for other in [challenge("b"), challenge("a", policy: 2), challenge("a", chain: 1)] {
            expectNil(answer(decisions, other, at: start))
        }
    }

    /// A certificate may expire while the handler's decision is stored.
    @Test func `with performDefaultHandling the policy decides at each connection`() {
        let decisions = ServerTrustDecisions()
        decisions.record(.performDefaultHandling, of: challenge("a"), at: start)
        decisions.record(.performDefaultHandling, of: challenge("b", fault: .init(.pinMismatch, "no")), at: start)
        decisions.record(.reject, of: challenge("c"), at: start)
        expectEqual(
            ["a", "b", "c"].map { decisions.isTrusted(challenge($0).key, byPolicy: true, at: start) }, [true, true, false])
        expectEqual(
            ["a", "b", "c"].map { decisions.isTrusted(challenge($0).key, byPolicy: false, at: start) }, [false, false, false])
    }

    @Test func `a server trust decision expires`() {
        let decisions = ServerTrustDecisions(lifetime: .seconds(10))
        decisions.record(.accept, of: challenge("a"), at: start)
        expectEqual(answer(decisions, challenge("a"), at: start + .seconds(9)), true)
        expectNil(answer(decisions, challenge("a"), at: start + .seconds(10)))
    }

    @Test func `when the store is full the server trust decision that expires first is evicted`() {
        let decisions = ServerTrustDecisions(capacity: 3)
        for (second, host) in ["a", "b", "c", "d"].enumerated() {
            decisions.record(.accept, of: challenge(host), at: start + .seconds(second))
        }
        expectEqual(decisions.count, 3)
        expectNil(answer(decisions, challenge("a"), at: start + .seconds(4)))
        expectEqual(answer(decisions, challenge("d"), at: start + .seconds(4)), true)
    }

    @Test func `replacing a decision to accept invalidates TLS sessions, replacing another does not`() {
        let decisions = ServerTrustDecisions()
        decisions.record(.reject, of: challenge("a"), at: start)
        decisions.record(.accept, of: challenge("a"), at: start)
        expectEqual(decisions.generation, 0)
        decisions.record(.reject, of: challenge("a"), at: start)
        expectEqual(decisions.generation, 1)
        decisions.removeAll()
        #expect(decisions.generation == 2 && decisions.count == 0)
    }

    // MARK: Through the verification callback

    /// The prepared policy, kept as a session keeps it, because a policy that is prepared again is another one to the decisions.
    private let policy: PreparedPolicy

    init() throws {
        var policy = SecurityPolicy.default
        policy.roots = .given(try MintedCertificates.set("root"))
        self.policy = try PreparedPolicy.of(policy)
    }

    private func attempt(_ chain: String, _ decisions: ServerTrustDecisions) throws -> (isComplete: Bool, trust: ServerTrust) {
        let trust = ServerTrust(policy: policy, host: "localhost", decisions: decisions)
        let conversation = try TLSConversation(TLSServer(chain), trust)
        return (conversation.isComplete, trust)
    }

    private func asked(_ trust: ServerTrust) throws -> ServerTrustChallenge {
        guard case .undecided(let challenge)? = trust.verdict else { throw MintedCertificates.Failure(message: "no challenge") }
        return challenge
    }

    @Test func `a server trust challenge has the server's certificates and the policy's error`() throws {
        let (isComplete, trust) = try attempt("foreign-leaf-chain", ServerTrustDecisions())
        #expect(!isComplete)
        let challenge = try asked(trust)
        expectEqual(challenge.host, "localhost")
        expectEqual(challenge.certificates, (try Certificate.all(in: MintedCertificates.data("foreign-leaf-chain.pem"))))
        expectEqual(challenge.policyError?.code, .certificateHasUnknownRoot)
        try expectNil(asked(attempt("leaf-chain", ServerTrustDecisions()).trust).policyError)
    }

    @Test func `a repeated attempt uses the server trust handler's decision`() throws {
        let decisions = ServerTrustDecisions()
        let challenge = try asked(attempt("foreign-leaf-chain", decisions).trust)
        decisions.record(.accept, of: challenge, at: .now)
        #expect(try attempt("foreign-leaf-chain", decisions).isComplete, "whatever the policy says")
        #expect(try !attempt("leaf-chain", decisions).isComplete, "another chain is asked about anew")
        decisions.record(.performDefaultHandling, of: challenge, at: .now)
        try expectEqual(attempt("foreign-leaf-chain", decisions).trust.error?.code, .certificateHasUnknownRoot)
    }

    @Test func `a server trust handler can refuse a server that the policy trusts`() throws {
        let decisions = ServerTrustDecisions()
        decisions.record(.reject, of: try asked(attempt("leaf-chain", decisions).trust), at: .now)
        let (isComplete, trust) = try attempt("leaf-chain", decisions)
        #expect(!isComplete && trust.error?.code == .certificateUntrusted)
    }
}
