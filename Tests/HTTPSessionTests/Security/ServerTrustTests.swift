import Certificates
import COpenSSL
import Expectations
import Foundation
import Testing

@testable import HTTPSession

/// Verification beyond the decision table: dates, revocation, TLS versions, names, and the error that a person reads.
@Suite struct ServerTrustTests {
    private static func pins(_ pattern: String, _ names: String...) throws -> SecurityPolicy {
        var policy = SecurityPolicy.default
        policy.hostPins = [try HostPins(pattern, pins: names.map { try MintedCertificates.one($0).publicKeyPin.description })]
        return policy
    }

    @Test(arguments: [
        ("expired-chain", HTTPSessionError.Code.certificateExpired), ("not-yet-valid-chain", .certificateNotYetValid),
        ("foreign-leaf-chain", .certificateHasUnknownRoot), ("self-signed-cn", .certificateHasUnknownRoot),
        ("other-leaf-chain", .certificateUntrusted), ("leaf", .certificateHasUnknownRoot),
    ])
    func `an expired, not yet valid, foreign or incomplete chain has its own error code`(
        _ chain: String, _ code: HTTPSessionError.Code
    ) throws {
        try expectEqual(connect(.default, to: chain, host: "localhost"), .refused(code))
    }

    @Test func `without roots no server is trusted`() throws {
        var policy = SecurityPolicy.default
        policy.roots = .given([])
        let error = try connectWithError(policy, to: "leaf-chain", host: "localhost")
        expectEqual(error?.code, .certificateHasUnknownRoot)
        #expect(error?.reason.contains("no authority") == true)
    }

    @Test func `the system's roots do not trust the tests' chain until its root is added`() throws {
        let trust = ServerTrust(policy: try PreparedPolicy.of(.default), host: "localhost")
        #expect(try !TLSConversation(TLSServer("leaf-chain"), trust).isComplete)
        expectEqual(trust.error?.code, .certificateHasUnknownRoot)
        var policy = SecurityPolicy.default
        policy.roots = .systemAnd(try MintedCertificates.set("root"))
        try expectEqual(connect(policy, to: "leaf-chain", host: "localhost"), .accepted)
    }

    @Test func `an intermediate certificate given as a root is trusted`() throws {
        try expectEqual(connect(.default, to: "leaf-chain", host: "localhost", roots: "intermediate"), .accepted)
    }

    @Test(arguments: [
        ("localhost", true), ("LOCALHOST.", true), ("127.0.0.1", true), ("::1", true), ("[::1]", true), ("a.example.test", true),
        ("example.test", false), ("b.a.example.test", false), (".example.test", false), ("127.0.0.2", false), ("", false),
        ("leaf", false), ("localhost\0.evil.test", false),
    ])
    func `a certificate is accepted for the names in it only`(_ host: String, _ isFor: Bool) throws {
        try expectEqual(connect(.default, to: "leaf-chain", host: host), (isFor ? .accepted : .refused(.certificateUntrusted)))
    }

    // MARK: Host pins

    @Test(arguments: ["leaf", "intermediate", "root"])
    func `a host pin of any certificate in the verified chain is accepted, sent or not`(_ name: String) throws {
        try expectEqual(connect(Self.pins("localhost", name), to: "leaf-chain", host: "localhost"), .accepted)
    }

    @Test func `a backup pin is accepted if the first pin does not match`() throws {
        try expectEqual(connect(Self.pins("localhost", "foreign-leaf", "leaf"), to: "leaf-chain", host: "localhost"), .accepted)
    }

    @Test(arguments: [("*.example.test", "a.example.test"), ("**.example.test", "a.example.test"), ("LocalHost", "localhost")])
    func `host pins apply to the hosts of their pattern`(_ pattern: String, _ host: String) throws {
        try expectEqual(connect(Self.pins(pattern, "foreign-leaf"), to: "leaf-chain", host: host), .refused(.pinMismatch))
        try expectEqual(connect(Self.pins(pattern, "leaf"), to: "leaf-chain", host: host), .accepted)
        try expectEqual(connect(Self.pins(pattern, "foreign-leaf"), to: "leaf-chain", host: "foobar.com"), .accepted)
    }

    @Test func `a certificate that is sent but not in the verified chain does not match a pin`() throws {
        let policy = try Self.pins("localhost", "foreign-leaf")
        try expectEqual(connect(policy, to: "leaf-chain", extra: ["foreign-leaf"], host: "localhost"), .refused(.pinMismatch))
    }

    @Test func `the error of a pin mismatch lists the pins of the server's certificates`() throws {
        let error = try connectWithError(Self.pins("localhost", "foreign-leaf"), to: "leaf-chain", host: "localhost")
        expectEqual(error?.code, .pinMismatch)
        for name in ["leaf", "intermediate"] {
            let certificate = try MintedCertificates.one(name)
            expectEqual(error?.reason.contains("\(certificate.publicKeyPin) (\(certificate.subject))"), true)
        }
        #expect(error?.reason.contains("pinned for localhost") == true)
    }

    /// AFNetworking accepts this in row 9 of its table: an attacker appends the pinned certificate to a chain of its own.
    @Test func `a pinned certificate appended to an attacker's chain is refused`() throws {
        var policy = SecurityPolicy(pinningMode: .publicKey, pinnedCertificates: try MintedCertificates.set("leaf"))
        policy.allowsInvalidCertificates = true
        try expectEqual(
            connect(policy, to: "foreign-leaf-chain", extra: ["leaf", "intermediate"], host: "localhost"),
            .refused(.pinMismatch))
        try expectEqual(connect(policy, to: "leaf", host: "localhost"), .accepted)
        try expectEqual(connect(policy, to: "leaf", host: "elsewhere.test"), .refused(.certificateUntrusted))
    }

    @Test func `a pinned certificate that has expired is refused, also if invalid certificates are allowed`() throws {
        var policy = SecurityPolicy(
            pinningMode: .certificate, pinnedCertificates: try MintedCertificates.set("self-signed-expired"))
        policy.allowsInvalidCertificates = true
        try expectEqual(connect(policy, to: "self-signed-expired", host: "foobar.com"), .refused(.certificateExpired))
        policy.pinningMode = .publicKey
        try expectEqual(connect(policy, to: "self-signed-expired", host: "foobar.com"), .accepted)
    }

    // MARK: Revocation

    private static func revocation(_ files: String..., scope: RevocationLists.Scope = .server) throws -> SecurityPolicy {
        let text = try files.map(MintedCertificates.data).reduce(into: Data()) { $0 += $1 }
        var policy = SecurityPolicy.default
        policy.revocation = try RevocationLists(text, scope: scope)
        return policy
    }

    @Test func `a revoked certificate is accepted without revocation lists and refused with its list`() throws {
        try expectEqual(connect(.default, to: "revoked-chain", host: "localhost"), .accepted)
        let policy = try Self.revocation("intermediate.crl")
        try expectEqual(connect(policy, to: "revoked-chain", host: "localhost"), .refused(.certificateRevoked))
        try expectEqual(connect(policy, to: "leaf-chain", host: "localhost"), .accepted)
    }

    @Test func `a revocation list of another authority makes the chain untrusted`() throws {
        try expectEqual(
            connect(Self.revocation("root.crl"), to: "leaf-chain", host: "localhost"), .refused(.certificateUntrusted))
    }

    @Test func `checking the complete chain requires a revocation list of each authority`() throws {
        let some = try Self.revocation("intermediate.crl", scope: .completeChain)
        try expectEqual(connect(some, to: "leaf-chain", host: "localhost"), .refused(.certificateUntrusted))
        let all = try Self.revocation("intermediate.crl", "root.crl", scope: .completeChain)
        try expectEqual(connect(all, to: "leaf-chain", host: "localhost"), .accepted)
        try expectEqual(connect(all, to: "revoked-chain", host: "localhost"), .refused(.certificateRevoked))
    }

    @Test func `a revoked certificate below a pinned authority is refused, also if invalid certificates are allowed`() throws {
        var policy = try Self.revocation("intermediate.crl")
        policy.pinningMode = .certificate
        policy.pinnedCertificates = try MintedCertificates.set("root")
        policy.allowsInvalidCertificates = true
        try expectEqual(connect(policy, to: "revoked-chain", host: "localhost"), .refused(.certificateRevoked))
        try expectEqual(connect(policy, to: "leaf-chain", host: "localhost"), .accepted)
        policy.pinnedCertificates = try MintedCertificates.set("leaf")
        try expectEqual(connect(policy, to: "leaf-chain", host: "localhost"), .accepted)
    }

    // MARK: TLS

    @Test func `the minimum and maximum TLS version are enforced in the handshake`() throws {
        var policy = SecurityPolicy.default
        policy.minimumTLSVersion = .v1_3
        let old = TLS1_2_VERSION...TLS1_2_VERSION
        let error = try connectWithError(policy, to: "leaf-chain", host: "localhost", versions: old)
        expectEqual(error?.code, .secureConnectionFailed)
        #expect(error?.reason.contains("protocol version") == true)
        try expectEqual(connect(policy, to: "leaf-chain", host: "localhost"), .accepted)
        policy.minimumTLSVersion = .v1_2
        policy.maximumTLSVersion = .v1_2
        try expectEqual(connect(policy, to: "leaf-chain", host: "localhost", versions: old), .accepted)
        let new = TLS1_3_VERSION...TLS1_3_VERSION
        try expectEqual(connect(policy, to: "leaf-chain", host: "localhost", versions: new), .refused(.secureConnectionFailed))
    }

    @Test func `the negotiated TLS version and cipher suite are reported`() throws {
        var policy = SecurityPolicy.default
        policy.roots = .given(try MintedCertificates.set("root"))
        policy.cipherSuites = "TLS_CHACHA20_POLY1305_SHA256"
        let trust = ServerTrust(policy: try PreparedPolicy.of(policy), host: "localhost")
        let conversation = try TLSConversation(TLSServer("leaf-chain"), trust)
        let facts = TLSFacts(ssl: conversation.rawClient)
        #expect(facts?.version == "TLSv1.3" && facts?.cipher == "TLS_CHACHA20_POLY1305_SHA256" && facts?.isResumed == false)
        expectNil(facts?.applicationProtocol)
    }

    @Test func `the cipher list of TLS 1.2 is enforced`() throws {
        var policy = SecurityPolicy.default
        policy.roots = .given(try MintedCertificates.set("root"))
        policy.maximumTLSVersion = .v1_2
        policy.cipherList = "ECDHE-ECDSA-AES256-GCM-SHA384"
        let trust = ServerTrust(policy: try PreparedPolicy.of(policy), host: "localhost")
        let conversation = try TLSConversation(TLSServer("leaf-chain"), trust)
        let facts = TLSFacts(ssl: conversation.rawClient)
        #expect(facts?.version == "TLSv1.2" && facts?.cipher == "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")
    }

    @Test func `a minimum TLS version above the maximum and unknown ciphers are configuration errors`() {
        var policy = SecurityPolicy.default
        policy.minimumTLSVersion = .v1_3
        policy.maximumTLSVersion = .v1_2
        #expect(throws: HTTPSessionError.self) { try PreparedPolicy.of(policy) }
        policy = .default
        policy.cipherList = "ROT13"
        let error = #expect(throws: HTTPSessionError.self) { try PreparedPolicy.of(policy) }
        #expect(error?.reason.contains("“ROT13”") == true)
        policy.cipherList = "aNULL:eNULL:@SECLEVEL=0"
        #expect(throws: HTTPSessionError.self, "ciphers without certificates") { try PreparedPolicy.of(policy) }
        policy = .default
        policy.cipherSuites = "TLS_ROT13"
        #expect(throws: HTTPSessionError.self) { try PreparedPolicy.of(policy) }
    }

    // MARK: Proxies

    /// Marks a context as libcurl marks the context of a proxy before it calls the engine.
    private func mark(_ context: OpaquePointer) {
        netwatch_ssl_ctx_set_versions(context, TLS1_2_VERSION, TLS1_3_VERSION)
    }

    @Test func `a proxy is evaluated by its own policy and name, not by the server's pins`() throws {
        var origin = try Self.pins("**.test", "foreign-leaf")
        origin.hostPins += try Self.pins("localhost", "foreign-leaf").hostPins
        origin.roots = .given([])
        var proxy = SecurityPolicy.default
        proxy.roots = .given(try MintedCertificates.set("root"))
        func trust(_ host: String) throws -> ServerTrust {
            ServerTrust(
                policy: try PreparedPolicy.of(origin), host: "localhost",
                proxy: .init(policy: try PreparedPolicy.of(proxy), host: host))
        }
        let good = try trust("a.example.test")
        #expect(try TLSConversation(TLSServer("leaf-chain"), good, prepare: mark).isComplete)
        let bad = try trust("other.test")
        #expect(try !TLSConversation(TLSServer("leaf-chain"), bad, prepare: mark).isComplete)
        expectEqual(bad.error?.code, .certificateUntrusted)
        #expect(bad.error?.reason.contains("the proxy other.test") == true)
    }

    @Test func `an unexpected TLS proxy is not connected to`() throws {
        let trust = ServerTrust(policy: try PreparedPolicy.of(.default), host: "localhost")
        #expect(throws: HTTPSessionError.self) { try TLSConversation(TLSServer("leaf-chain"), trust, prepare: mark) }
        expectEqual(trust.error?.code, .proxyFailed)
    }

    @Test func `the server behind a proxy is evaluated by the server's policy`() throws {
        var origin = try Self.pins("localhost", "foreign-leaf")
        origin.roots = .given(try MintedCertificates.set("root"))
        let trust = ServerTrust(
            policy: try PreparedPolicy.of(origin), host: "localhost",
            proxy: .init(policy: try PreparedPolicy.of(.default), host: "localhost"))
        #expect(try !TLSConversation(TLSServer("leaf-chain"), trust).isComplete)
        expectEqual(trust.error?.code, .pinMismatch)
    }

    @Test func `a failed handshake with a proxy names the proxy in its error`() throws {
        var origin = SecurityPolicy.default
        origin.minimumTLSVersion = .v1_3
        let trust = ServerTrust(
            policy: try PreparedPolicy.of(origin), host: "localhost",
            proxy: .init(policy: try PreparedPolicy.of(origin), host: "proxy.test"))
        let old = try TLSServer("leaf-chain", versions: TLS1_2_VERSION...TLS1_2_VERSION)
        #expect(try !TLSConversation(old, trust, prepare: mark).isComplete)
        #expect(trust.error?.reason.contains("the proxy proxy.test") == true)
    }

    // MARK: Lifetime

    @Test func `a TLS context keeps its prepared policy until the context is freed`() throws {
        weak var policy: PreparedPolicy?
        do {
            var value = SecurityPolicy.default
            value.roots = .given(try MintedCertificates.set("root", "other-leaf"))
            var trust: ServerTrust? = ServerTrust(policy: try PreparedPolicy.of(value), host: "localhost")
            policy = try PreparedPolicy.of(value)
            guard let context = SSL_CTX_new(TLS_client_method()), let installed = trust else { return }
            #expect(installed.install(on: UnsafeMutableRawPointer(context)))
            #expect(installed.install(on: UnsafeMutableRawPointer(context)), "a second time replaces the first")
            trust = nil
            #expect(policy != nil)
            SSL_CTX_free(context)
        }
        expectNil(policy, "freed with the context")
    }

    @Test func `failures leave OpenSSL's error queue empty`() throws {
        ERR_clear_error()
        _ = try? Certificate(Data("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".utf8))
        _ = try? ClientIdentity(pkcs12: Data([1, 2, 3]), passphrase: "")
        expectEqual(ERR_peek_error(), 0)
    }
}
