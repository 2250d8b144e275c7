import Certificates
import COpenSSL
import Expectations
import Foundation
import Testing

@testable import HTTPSession

/// A TLS session made under one policy is not resumed under another, because OpenSSL does not verify certificates when it
/// resumes.
@Suite struct SessionResumptionTests {
    static let versions: [ClosedRange<Int32>] = [TLS1_2_VERSION...TLS1_2_VERSION, TLS1_3_VERSION...TLS1_3_VERSION]

    private func trustingPolicy() throws -> SecurityPolicy {
        var policy = SecurityPolicy.default
        policy.roots = .given(try MintedCertificates.set("root"))
        return policy
    }

    private func refusingPolicy() throws -> SecurityPolicy {
        var policy = try trustingPolicy()
        policy.hostPins = [try HostPins("localhost", pins: [MintedCertificates.one("foreign-leaf").publicKeyPin.description])]
        return policy
    }

    private func trust(
        _ policy: SecurityPolicy, host: String = "localhost", identity: ClientIdentity? = nil,
        decisions: ServerTrustDecisions? = nil
    ) throws -> ServerTrust {
        ServerTrust(policy: try PreparedPolicy.of(policy), host: host, identity: identity, decisions: decisions)
    }

    /// Connects under `first`, keeps the TLS session, and connects with it under `second`.
    private func resume(
        _ versions: ClosedRange<Int32>, _ first: ServerTrust, _ second: ServerTrust
    ) throws -> (conversation: TLSConversation, trust: ServerTrust) {
        let server = try TLSServer("leaf-chain", versions: versions)
        let before = try TLSConversation(server, first)
        try #require(before.isComplete)
        let session = before.takeSession()
        defer { SSL_SESSION_free(session) }
        try #require(session != nil && SSL_SESSION_is_resumable(session) == 1)
        return (try TLSConversation(server, second, session: session), second)
    }

    @Test(arguments: versions) func `the same policy resumes a TLS session without another verification`(
        _ versions: ClosedRange<Int32>
    ) throws {
        let (conversation, second) = try resume(versions, trust(trustingPolicy()), trust(trustingPolicy()))
        #expect(conversation.isComplete && conversation.isResumed)
        #expect(second.verdict == nil && second.refusedSessions == 0)
        #expect(second.admits(conversation.rawClient))
        expectEqual(HandshakeWatch.facts(of: conversation.rawClient)?.isResumed, true)
    }

    @Test(arguments: versions) func `another policy does not resume the TLS session, verifies the chain, and refuses`(
        _ versions: ClosedRange<Int32>
    ) throws {
        let (conversation, second) = try resume(versions, trust(trustingPolicy()), trust(refusingPolicy()))
        #expect(!conversation.isComplete && !conversation.isResumed)
        expectEqual(second.error?.code, .pinMismatch)
        expectEqual(second.refusedSessions, 1)
    }

    @Test(arguments: versions) func `another policy that trusts the server makes a full handshake`(_ versions: ClosedRange<Int32>)
        throws
    {
        var other = try trustingPolicy()
        other.minimumTLSVersion = versions.lowerBound == TLS1_3_VERSION ? .v1_3 : .v1_2
        other.cipherSuites = "TLS_AES_256_GCM_SHA384"
        let (conversation, second) = try resume(versions, trust(trustingPolicy()), trust(other))
        #expect(conversation.isComplete && !conversation.isResumed)
        guard case .trusted? = second.verdict else { return #expect(Bool(false), "no verdict") }
    }

    @Test(arguments: versions) func `another host does not resume the TLS session`(_ versions: ClosedRange<Int32>) throws {
        let (conversation, second) = try resume(
            versions, trust(trustingPolicy()), trust(trustingPolicy(), host: "elsewhere.test"))
        #expect(!conversation.isComplete && second.error?.code == .certificateUntrusted)
    }

    @Test(arguments: versions) func `another client identity does not resume the TLS session`(_ versions: ClosedRange<Int32>)
        throws
    {
        let identity = try ClientIdentity(
            certificate: MintedCertificates.data("client.pem"), privateKey: MintedCertificates.data("client.key"))
        let (conversation, second) = try resume(versions, trust(trustingPolicy(), identity: identity), trust(trustingPolicy()))
        #expect(conversation.isComplete && !conversation.isResumed && second.refusedSessions == 1)
    }

    @Test(arguments: versions)
    func `a TLS session is not resumed after the server trust handler's decision was revoked`(_ versions: ClosedRange<Int32>)
        throws
    {
        let decisions = ServerTrustDecisions()
        let now = ContinuousClock.now
        let asked = try trust(trustingPolicy(), decisions: decisions)
        let server = try TLSServer("leaf-chain", versions: versions)
        _ = try TLSConversation(server, asked)
        guard case .undecided(let challenge)? = asked.verdict else { return #expect(Bool(false), "no challenge") }
        decisions.record(.accept, of: challenge, at: now)
        let (conversation, second) = try {
            let before = try TLSConversation(server, trust(trustingPolicy(), decisions: decisions))
            try #require(before.isComplete)
            let session = before.takeSession()
            defer { SSL_SESSION_free(session) }
            decisions.record(.reject, of: challenge, at: now)
            let second = try trust(trustingPolicy(), decisions: decisions)
            return (try TLSConversation(server, second, session: session), second)
        }()
        #expect(!conversation.isComplete && second.error?.code == .certificateUntrusted)
    }

    /// Behavior of OpenSSL without this protection. The test notices if a newer OpenSSL behaves differently.
    @Test(arguments: versions) func `without the verification callback a resumed TLS session is not verified`(
        _ versions: ClosedRange<Int32>
    )
        throws
    {
        let server = try TLSServer("leaf-chain", versions: versions)
        let trustAll: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { context, _ in
            X509_STORE_CTX_set_error(context, X509_V_OK)
            return 1
        }
        let trustNone: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { _, _ in 0 }
        func verifying(
            _ verify: @escaping @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32, context: UInt8
        ) -> (OpaquePointer) -> Void {
            {
                SSL_CTX_set_verify($0, SSL_VERIFY_PEER, nil)
                SSL_CTX_set_cert_verify_callback($0, verify, nil)
                SSL_CTX_set_session_id_context($0, [context], 1)
            }
        }
        // A TLS 1.3 session can be used once.
        func session() throws -> OpaquePointer? {
            let before = try TLSConversation(server, nil, prepare: verifying(trustAll, context: 1))
            try #require(before.isComplete)
            return before.takeSession()
        }
        let (first, second) = (try session(), try session())
        defer {
            SSL_SESSION_free(first)
            SSL_SESSION_free(second)
        }
        let judged = try TLSConversation(server, nil, prepare: verifying(trustNone, context: 1))
        #expect(!judged.isComplete)
        let hole = try TLSConversation(server, nil, session: first, prepare: verifying(trustNone, context: 1))
        #expect(hole.isComplete && hole.isResumed, "accepted by a callback that accepts nobody")
        // A different session ID context fails the handshake. The library removes the session before, so that a full one is made.
        let ended = try TLSConversation(server, nil, session: second, prepare: verifying(trustAll, context: 2))
        #expect(!ended.isComplete)
    }

    @Test func `a connection made under another policy is not reused`() throws {
        let first = try trust(trustingPolicy())
        let conversation = try TLSConversation(TLSServer("leaf-chain"), first)
        #expect(conversation.isComplete && first.admits(conversation.rawClient))
        #expect(try trust(trustingPolicy()).admits(conversation.rawClient), "an equal policy is the same one")
        #expect(try !trust(refusingPolicy()).admits(conversation.rawClient))
        #expect(try !trust(trustingPolicy(), host: "foobar.com").admits(conversation.rawClient))
        let foreign = try TLSConversation(TLSServer("leaf-chain"), nil)
        #expect(try !trust(trustingPolicy()).admits(foreign.rawClient))
    }

    @Test func `policy, host, client identity, decisions and proxy give different connection tags`() throws {
        let identity = try ClientIdentity(
            certificate: MintedCertificates.data("client.pem"), privateKey: MintedCertificates.data("client.key"))
        let decisions = ServerTrustDecisions()
        let trusts = try [
            trust(trustingPolicy()), trust(refusingPolicy()), trust(trustingPolicy(), host: "foobar.com"),
            trust(trustingPolicy(), identity: identity),
            trust(trustingPolicy(), decisions: decisions),
        ]
        decisions.removeAll()
        let tags = try (trusts + [trust(trustingPolicy(), decisions: decisions)]).map(\.parameters.connectionTag)
        expectEqual(Set(tags).count, tags.count)
        try expectEqual(trust(trustingPolicy(), host: "LOCALHOST.").parameters.connectionTag, tags[0])
        expectNil(trusts[0].parameters.proxyConnectionTag)
        let proxy = TrustParameters.Proxy(policy: try PreparedPolicy.of(trustingPolicy()), host: "proxy.test")
        let through = TrustParameters(policy: try PreparedPolicy.of(trustingPolicy()), host: "localhost", proxy: proxy)
        #expect(through.connectionTag == tags[0] && through.proxyConnectionTag != nil && through.proxyConnectionTag != tags[0])
    }

    @Test func `equal policies share one prepared object, and all policies share the loaded roots`() throws {
        let first = try PreparedPolicy.of(trustingPolicy())
        #expect(try PreparedPolicy.of(trustingPolicy()) === first)
        let second = try PreparedPolicy.of(refusingPolicy())
        let (roots, sameRoots) = (try first.roots(), try second.roots())
        #expect(first.number != second.number && roots === sameRoots)
    }

    @Test func `the system's authorities are loaded for the first request that uses TLS`() throws {
        // A policy of its own, because equal ones share one object.
        var policy = SecurityPolicy.default
        policy.cipherList = "HIGH:!aNULL:!PSK"
        var configuration = SessionConfiguration.default
        configuration.securityPolicy = policy
        let security = try SecuritySettings(configuration, ProxyOrigins(.none, environment: [:]), verifiesCertificates: true)
        let prepared = try #require(security.policy)
        // Those that the environment names are loaded at once, because their files may be unreadable.
        expectEqual(prepared.hasLoadedRoots, !Authorities(includesSystem: true).areSystemAlone)
        security.loadAuthorities(for: try #require(Origin(URL(string: "http://localhost/")!)))
        expectEqual(prepared.hasLoadedRoots, !Authorities(includesSystem: true).areSystemAlone)
        security.loadAuthorities(for: try #require(Origin(URL(string: "https://localhost/")!)))
        #expect(prepared.hasLoadedRoots)
    }

    @Test func `policies are prepared and released on many threads at once`() async throws {
        let policies = try [trustingPolicy(), refusingPolicy(), .default].map { policy in
            var policy = policy
            policy.cipherList = "ECDHE+AESGCM"
            return policy
        }
        // The system's roots stay loaded meanwhile.
        let held = try PreparedPolicy.of(.default)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<8 {
                group.addTask {
                    for round in 0..<50 {
                        let policy = policies[(index + round) % policies.count]
                        let prepared = try PreparedPolicy.of(policy)
                        expectEqual(prepared.policy, policy)
                    }
                }
            }
            try await group.waitForAll()
        }
        withExtendedLifetime(held) {}
    }

    @Test func `the system's roots are loaded once, not for each connection`() throws {
        let held = try PreparedPolicy.of(.default)
        let roots = try held.roots()
        for _ in 0..<1000 { try #require(try PreparedPolicy.of(.default).roots() === roots) }
    }
}
