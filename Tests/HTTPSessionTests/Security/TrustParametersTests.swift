import COpenSSL
import Certificates
import Expectations
import Foundation
@testable import HTTPSession
import Testing

/// Values that are prepared once for several attempts, or read once for several requests on a connection.
@Suite struct TrustParametersTests {
    private func settings(
        proxy: SessionConfiguration.Proxy = .none, environment: [String: String] = [:], identity: ClientIdentity? = nil
    ) throws -> SecuritySettings {
        var configuration = SessionConfiguration()
        configuration.securityPolicy.roots = .given(try MintedCertificates.set("root"))
        configuration.proxySecurityPolicy.roots = .given(try MintedCertificates.set("root"))
        configuration.clientIdentity = identity
        return try SecuritySettings(configuration, ProxyOrigins(proxy, environment: environment), verifiesCertificates: true)
    }

    private func origin(_ url: String) throws -> Origin {
        let url = try #require(URL(string: url))
        return try #require(Origin(url))
    }

    @Test func `attempts at one origin share their parameters, those at another have their own`() throws {
        let settings = try settings()
        func parameters(_ url: String) throws -> TrustParameters {
            try #require(settings.trust(for: origin(url), isSecure: true, decisions: nil)).parameters
        }
        let first = try parameters("https://a.example.test/1")
        #expect(try parameters("https://a.example.test/2") === first)
        let other = try parameters("https://b.example.test/")
        #expect(other !== first && other.host == "b.example.test" && other.connectionTag != first.connectionTag)
    }

    @Test func `the parameters of 256 origins are shared, and one more removes them`() throws {
        let settings = try settings()
        func parameters(_ number: Int) throws -> TrustParameters {
            let origin = try origin("https://\(number).example.test/")
            return try #require(settings.trust(for: origin, isSecure: true, decisions: nil)).parameters
        }
        let first = try parameters(0)
        for number in 1..<256 { _ = try parameters(number) }
        #expect(try parameters(0) === first)
        _ = try parameters(256)
        #expect(try parameters(0) !== first)
    }

    @Test func `the proxy is that of the scheme in use`() throws {
        let settings = try settings(
            proxy: .environment, environment: ["http_proxy": "https://proxy.test:8443", "https_proxy": "http://proxy.test:8080"])
        let origin = try origin("http://a.example.test/")
        for _ in 0..<2 {
            let plain = try #require(settings.trust(for: origin, isSecure: false, decisions: nil))
            let upgraded = try #require(settings.trust(for: origin, isSecure: true, decisions: nil))
            expectEqual(plain.parameters.proxy?.host, "proxy.test")
            expectNil(upgraded.parameters.proxy, "HSTS changes the scheme, and with it the proxy")
        }
    }

    @Test func `parameters with a handler's decisions are made for each attempt, because decisions change`() throws {
        let (settings, decisions) = (try settings(), ServerTrustDecisions())
        let origin = try origin("https://a.example.test/")
        func tag(_ decisions: ServerTrustDecisions?) throws -> String {
            try #require(settings.trust(for: origin, isSecure: true, decisions: decisions)).parameters.connectionTag
        }
        let (without, before) = (try tag(nil), try tag(decisions))
        decisions.removeAll()
        try expectEqual(Set([without, before, tag(decisions)]).count, 3)
        try expectEqual(tag(nil), without)
    }

    @Test func `a handler's choice of an identity is not shared, a configured identity is`() throws {
        let identity = try ClientIdentity(
            certificate: MintedCertificates.data("client.pem"), privateKey: MintedCertificates.data("client.key"))
        let (choices, origin) = (ClientCertificateDecisions(), try origin("https://a.example.test/"))
        let open = try settings()
        func parameters(of settings: SecuritySettings, _ identities: ClientCertificateDecisions?) throws -> TrustParameters {
            try #require(settings.trust(for: origin, isSecure: true, decisions: nil, identities: identities)).parameters
        }
        try expectEqual(parameters(of: open, nil).asksForIdentity, false)
        #expect(try parameters(of: open, choices).asksForIdentity)
        choices.record(identity, for: origin, at: .now)
        try expectEqual(parameters(of: open, choices).identity, identity)
        try expectNil(parameters(of: open, nil).identity)

        let configured = try settings(identity: identity)
        let shared = try parameters(of: configured, choices)
        #expect(try shared.identity == identity && parameters(of: configured, nil) === shared)
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION]) func `the properties of a connection are those that OpenSSL has`(
        _ version: Int32
    ) throws {
        var policy = SecurityPolicy.default
        policy.roots = .given(try MintedCertificates.set("root"))
        let trust = ServerTrust(policy: try PreparedPolicy.of(policy), host: "localhost")
        let conversation = try TLSConversation(TLSServer("leaf-chain", versions: version...version), trust)
        let facts = try #require(HandshakeWatch.facts(of: conversation.rawClient))
        #expect(facts == TLSFacts(ssl: conversation.rawClient) && !facts.isResumed)
        let foreign = try TLSConversation(TLSServer("leaf-chain"), nil)
        expectNil(HandshakeWatch.facts(of: foreign.rawClient), "a connection that no policy has evaluated")
    }

    @Test func `a further handshake of TLS 1.2 changes the properties of the connection`() throws {
        var policy = SecurityPolicy.default
        policy.roots = .given(try MintedCertificates.set("root"))
        let trust = ServerTrust(policy: try PreparedPolicy.of(policy), host: "localhost")
        let server = try TLSServer("leaf-chain", versions: TLS1_2_VERSION...TLS1_2_VERSION)
        let conversation = try TLSConversation(server, trust)
        let before = try #require(HandshakeWatch.facts(of: conversation.rawClient))
        conversation.renegotiate("ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305")
        let after = try #require(HandshakeWatch.facts(of: conversation.rawClient))
        #expect(before.cipher.hasSuffix("AES_256_GCM_SHA384") && after.cipher.hasSuffix("CHACHA20_POLY1305_SHA256"))
        expectEqual(after, TLSFacts(ssl: conversation.rawClient))
    }
}
