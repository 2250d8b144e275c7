import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

extension ServerTLS {
    /// The minted certificates of `chain`, then `extra`; the private key belongs to the name before `-chain`.
    static func minted(_ chain: String, extra: [String] = []) throws -> ServerTLS {
        let name = chain.hasSuffix("-chain") ? String(chain.dropLast(6)) : chain
        let texts = try ([chain] + extra).map { String(decoding: try MintedCertificates.data("\($0).pem"), as: UTF8.self) }
        return ServerTLS(
            certificateChain: .text(texts.joined(separator: "\n")),
            privateKey: .text(String(decoding: try MintedCertificates.data("\(name).key"), as: UTF8.self)))
    }
}

private func outcome(_ task: TransferTask) async -> Outcome {
    await failure(task).map { .refused($0.code) } ?? .accepted
}

/// A policy whose only root is the tests' root.
private func policy(
    _ mode: SecurityPolicy.PinningMode = .none, _ pins: String..., allows: Bool = false, names: Bool = true,
    roots: String = "root"
) throws -> SecurityPolicy {
    var policy = SecurityPolicy(pinningMode: mode, pinnedCertificates: Set(try pins.map(MintedCertificates.one)))
    policy.allowsInvalidCertificates = allows
    policy.validatesDomainName = names
    policy.roots = .given(try MintedCertificates.set(roots))
    return policy
}

private func hostPins(_ pattern: String, _ names: String...) throws -> SecurityPolicy {
    var policy = try policy()
    policy.hostPins = [try HostPins(pattern, pins: names.map { try MintedCertificates.one($0).publicKeyPin.description })]
    return policy
}

/// Security policies, tested through the complete library against servers on this machine.
@Suite(.timeLimit(.minutes(20))) struct TrustTests {
    /// A session in which every name in `hosts` resolves to this machine.
    private func session(
        _ policy: SecurityPolicy, hosts: [String] = [], port: UInt16 = 0, handlers: TransferHandlers = .init(),
        _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> HTTPSessionManager {
        try HTTPSessionManager(
            baseURL: "https://localhost/",
            configuration: localConfiguration {
                $0.securityPolicy = policy
                $0.hostOverrides = hosts.map { .init(host: $0, port: Int(port), addresses: ["127.0.0.1"]) }
                change(&$0)
            }, handlers: handlers)
    }

    private func server(_ tls: ServerTLS) throws -> TestServer {
        try TestServer(tls: tls) { _ in StubResponse(body: "x") }
    }

    private func url(_ server: TestServer, _ host: String = "localhost") throws -> URL {
        try #require(URL(string: "https://\(host):\(server.port)/"))
    }

    struct Row: CustomTestStringConvertible, Sendable {
        let number: Int
        let label: String
        let chain: String
        var extra: [String] = []
        var host = "localhost"
        let policy: @Sendable () throws -> SecurityPolicy
        let answer: HTTPSessionError.Code?

        var testDescription: String { "row \(number): \(label)" }
    }

    static let rows: [Row] = [
        Row(
            number: 1, label: "invalid ones allowed, nothing pinned", chain: "leaf-chain", policy: { try policy(allows: true) },
            answer: .certificateUntrusted),
        Row(
            number: 2, label: "keys, none given", chain: "leaf-chain", policy: { try policy(.publicKey, allows: true) },
            answer: .certificateUntrusted),
        Row(
            number: 2, label: "certificates, none given", chain: "leaf-chain", policy: { try policy(.certificate, allows: true) },
            answer: .certificateUntrusted),
        Row(number: 3, label: "a valid chain", chain: "leaf-chain", policy: { try policy() }, answer: nil),
        Row(number: 3, label: "expired", chain: "expired-chain", policy: { try policy() }, answer: .certificateExpired),
        Row(
            number: 3, label: "not yet valid", chain: "not-yet-valid-chain", policy: { try policy() },
            answer: .certificateNotYetValid),
        Row(
            number: 3, label: "another's root", chain: "foreign-leaf-chain", policy: { try policy() },
            answer: .certificateHasUnknownRoot),
        Row(
            number: 3, label: "self-signed", chain: "self-signed-san", host: "foobar.com", policy: { try policy() },
            answer: .certificateHasUnknownRoot),
        Row(number: 3, label: "no intermediate", chain: "leaf", policy: { try policy() }, answer: .certificateHasUnknownRoot),
        Row(
            number: 3, label: "another's name", chain: "other-leaf-chain", policy: { try policy() }, answer: .certificateUntrusted
        ),
        Row(
            number: 3, label: "another's name, not looked at", chain: "other-leaf-chain", policy: { try policy(names: false) },
            answer: nil),
        Row(
            number: 4, label: "nothing looked at", chain: "self-signed-expired",
            policy: { try policy(allows: true, names: false) }, answer: nil),
        Row(
            number: 5, label: "a pinned key without a valid chain", chain: "foreign-leaf-chain",
            policy: { try policy(.publicKey, "foreign-leaf") }, answer: .certificateHasUnknownRoot),
        Row(
            number: 5, label: "a pinned certificate without a valid chain", chain: "foreign-leaf-chain",
            policy: { try policy(.certificate, "foreign-root") }, answer: .certificateHasUnknownRoot),
        Row(number: 6, label: "a pinned root", chain: "leaf-chain", policy: { try policy(.certificate, "root") }, answer: nil),
        Row(
            number: 6, label: "another pinned", chain: "leaf-chain", policy: { try policy(.certificate, "foreign-root") },
            answer: .pinMismatch),
        Row(
            number: 6, label: "a pinned self-signed one", chain: "self-signed-san", host: "foobar.com",
            policy: { try policy(.certificate, "self-signed-san", allows: true) }, answer: nil),
        Row(
            number: 6, label: "a pinned one with a common name and no alternative name", chain: "self-signed-cn",
            host: "foobar.com",
            policy: { try policy(.certificate, "self-signed-cn", allows: true) }, answer: .certificateUntrusted),
        Row(
            number: 6, label: "a pinned one that has expired", chain: "self-signed-expired", host: "foobar.com",
            policy: { try policy(.certificate, "self-signed-expired", allows: true) }, answer: .certificateExpired),
        Row(
            number: 6, label: "a pinned one without a name", chain: "self-signed-none", host: "foobar.com",
            policy: { try policy(.certificate, "self-signed-none", allows: true) }, answer: .certificateUntrusted),
        Row(
            number: 7, label: "certificates, none given", chain: "leaf-chain", policy: { try policy(.certificate) },
            answer: .pinMismatch),
        Row(number: 8, label: "the leaf's key", chain: "leaf-chain", policy: { try policy(.publicKey, "leaf") }, answer: nil),
        Row(
            number: 8, label: "the root's key, which is not sent", chain: "leaf-chain",
            policy: { try policy(.publicKey, "root") },
            answer: nil),
        Row(
            number: 8, label: "another key", chain: "leaf-chain", policy: { try policy(.publicKey, "foreign-leaf") },
            answer: .pinMismatch),
        Row(
            number: 8, label: "a key that is sent, not of the chain", chain: "leaf-chain", extra: ["foreign-leaf"],
            policy: { try policy(.publicKey, "foreign-leaf") }, answer: .pinMismatch),
        Row(
            number: 9, label: "the leaf's key", chain: "foreign-leaf-chain",
            policy: { try policy(.publicKey, "foreign-leaf", allows: true) }, answer: nil),
        Row(
            number: 9, label: "the true one behind an attacker's", chain: "foreign-leaf-chain", extra: ["leaf", "intermediate"],
            policy: { try policy(.publicKey, "leaf", allows: true) }, answer: .pinMismatch),
        Row(
            number: 9, label: "another's name", chain: "other-leaf-chain",
            policy: { try policy(.publicKey, "other-leaf", allows: true) }, answer: .certificateUntrusted),
        Row(number: 10, label: "keys, none given", chain: "leaf-chain", policy: { try policy(.publicKey) }, answer: .pinMismatch),
        Row(
            number: 10, label: "keys, none given, nothing else looked at", chain: "leaf-chain",
            policy: { try policy(.publicKey, allows: true, names: false) }, answer: .pinMismatch),
    ]

    @Test(arguments: rows) func `the decision table of trust and pinning holds over a TLS connection`(_ row: Row) async throws {
        let server = try server(.minted(row.chain, extra: row.extra))
        let session = try session(row.policy(), hosts: [row.host], port: server.port)
        let result = await outcome(session.dataTask(for: TransferRequest(url: try url(server, row.host))))
        expectEqual(result, row.answer.map { .refused($0) } ?? .accepted)
        expectEqual(server.requests.count, (row.answer == nil ? 1 : 0))
    }

    // MARK: Names and patterns

    @Test(arguments: [
        ("localhost", "localhost"), ("LocalHost", "localhost"), ("localhost", "LOCALHOST"), ("localhost.", "localhost"),
        ("*.example.test", "a.example.test"), ("**.example.test", "A.Example.TEST"),
        ("127.0.0.1", "127.0.0.1"), ("[::1]", "[::1]"), ("::1", "[::1]"), ("::1", "[0:0:0:0:0:0:0:1]"),
        ("[0:0::1]", "[::1]"), ("127.0.0.1", "127.1"), ("127.0.0.1", "0x7f000001"), ("127.0.0.1", "2130706433"),
        ("localhost", "local%68ost"),
    ]) func `host pins apply to every spelling of the host`(_ pattern: String, _ host: String) async throws {
        for names in [true, false] {
            let server =
                host.contains("[")
                ? try TestServer(at: .loopbackIPv6, tls: .minted("leaf-chain")) { _ in StubResponse(body: "x") }
                : try server(.minted("leaf-chain"))
            var wrong = try hostPins(pattern, "foreign-leaf")
            wrong.validatesDomainName = names
            let hosts =
                host.lowercased().contains("example") || host.hasPrefix("local") || host.hasPrefix("Local")
                    || host.hasPrefix("LOCAL") ? ["localhost", "a.example.test"] : []
            let session = try session(wrong, hosts: hosts, port: server.port)
            let error = await failure(session.dataTask(for: TransferRequest(url: try url(server, host))))
            #expect(error != nil, "\(pattern) \(host) names \(names)")
            expectEmpty(server.requests)
        }
    }

    @Test(arguments: [
        ("bücher.example", HTTPSessionError.Code.pinMismatch), ("B\u{fc}CHER.example", .pinMismatch),
        ("xn--bcher-kva.example", .pinMismatch), ("b%C3%BCcher.example", .pinMismatch),
    ]) func `host pins apply to international host names`(_ host: String, _ code: HTTPSessionError.Code) async throws {
        let server = try server(.minted("leaf-chain"))
        var wrong = try hostPins("xn--bcher-kva.example", "foreign-leaf")
        wrong.validatesDomainName = false
        let session = try session(wrong, hosts: ["xn--bcher-kva.example"], port: server.port)
        await expectEqual(outcome(session.dataTask(for: TransferRequest(url: try url(server, host)))), .refused(code))
        expectEmpty(server.requests)
    }

    // MARK: Isolation

    @Test func `each of many concurrent tasks gets its server's pin mismatch as its error`() async throws {
        let server = try server(.minted("leaf-chain"))
        let session = try session(hostPins("localhost", "foreign-leaf"), hosts: ["localhost"], port: server.port)
        let url = try url(server)
        let tasks = (0..<20).map { _ in session.dataTask(for: TransferRequest(url: url)) }
        for task in tasks { await expectEqual(outcome(task), .refused(.pinMismatch)) }
        expectEmpty(server.requests)
    }

    @Test(arguments: [ServerTLS.Version.v1_2, .v1_3])
    func `a resumed TLS session does not bypass another session's pins`(_ version: ServerTLS.Version)
        async throws
    {
        var tls = try ServerTLS.minted("leaf-chain")
        (tls.minimumVersion, tls.maximumVersion) = (version, version)
        let server = try TestServer(tls: tls) { _ in StubResponse(body: "x").closing() }
        let trusting = try session(policy(), hosts: ["localhost"], port: server.port)
        let refusing = try session(hostPins("localhost", "foreign-leaf"), hosts: ["localhost"], port: server.port)
        for _ in 0..<3 {
            await expectEqual(outcome(trusting.dataTask(for: TransferRequest(url: try url(server)))), .accepted)
            await expectEqual(outcome(refusing.dataTask(for: TransferRequest(url: try url(server)))), .refused(.pinMismatch))
        }
        let seen = try await server.awaitSeen { $0.failedHandshakes >= 3 }
        expectEqual(seen.resumedHandshakes, 2, "each new connection of the first session resumes")
        expectEqual(seen.requestCount, 3)
        expectEqual(seen.failedHandshakes, 3)
    }
}
