import EventLoop
import Expectations
import Foundation
import Glibc
import HTTPSession
import HTTPSessionTestKit
import MemoryCertificates
import NetworkLab
import Reachability
import Testing

/// The error of a session has the cause that a monitor of the same server reports: layer, code, sentence and evidence.
@Suite(.timeLimit(.minutes(20))) struct CauseTests {
    /// A server with a fault, and the code of its cause.
    struct Fault: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let code: Cause.Code
        let server: @Sendable () throws -> any Sendable & ServerOfFault
        var isSilent = false

        init(
            _ name: String, _ code: Cause.Code, isSilent: Bool = false,
            _ server: @escaping @Sendable () throws -> any Sendable & ServerOfFault
        ) {
            (testDescription, self.code, self.server, self.isSilent) = (name, code, server, isSilent)
        }
    }

    static let faults: [Fault] = [
        Fault("the certificate has expired", .certificateExpired) { try tls("expired-chain") },
        Fault("the certificate is not valid yet", .certificateNotYetValid) { try tls("not-yet-valid-chain") },
        Fault("the certificate has another name", .hostnameMismatch) { try tls("other-leaf-chain") },
        Fault("the authority is unknown", .certificateUntrusted) { try tls("foreign-leaf-chain") },
        Fault("the certificate is self-signed", .certificateUntrusted) { try tls("self-signed-san") },
        Fault("the intermediate certificate is missing", .certificateUntrusted) { try tls("leaf") },
        Fault("a client certificate is required, TLS 1.2", .clientCertificateRequired) {
            try tls("leaf-chain", .v1_2) { $0.clientCertificates = .required(authorities: nil) }
        },
        Fault("a client certificate is required, TLS 1.3", .clientCertificateRequired) {
            try tls("leaf-chain", .v1_3) { $0.clientCertificates = .required(authorities: nil) }
        },
        Fault("the server supports TLS 1.1 only", .protocolMismatch) { try tls("leaf-chain", .v1_1) },
        Fault("a certificate has a costly key", .excessiveCost) {
            let root = try MemoryCertificate("Root", isAuthority: true)
            let costly = try MemoryCertificate(
                "Intermediate", issuer: root, isAuthority: true, publicKey: .rsa(bits: 3072, exponentBits: 3071))
            let leaf = try MemoryCertificate("leaf", issuer: root, names: ["IP:127.0.0.1"])
            return try tls(chain: leaf.pem + costly.pem, key: leaf.keyPEM)
        },
        Fault("the server sends more than 32 KiB of certificates", .excessiveCost) {
            let names = (1...600).map { "DNS:host-\($0).a-rather-long-name-of-a-domain-for-tests.example.test" }
            let leaf = try MemoryCertificate("leaf", names: names)
            return try tls(chain: leaf.pem, key: leaf.keyPEM)
        },
        Fault("the server sends an alert", .handshakeRefused) { try spoken([0x15, 3, 3, 0, 2, 2, 40], after: 1) },
        Fault("the server has no certificate for the name", .handshakeRefused) {
            try spoken([0x15, 3, 3, 0, 2, 2, 112], after: 1)
        },
        Fault("the server speaks SSH", .protocolMismatch) { try spoken(Array("SSH-2.0-OpenSSH_9.2\r\n".utf8), after: 1) },
        Fault("the server speaks HTTP", .protocolMismatch) {
            try spoken(Array("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n".utf8), after: 1)
        },
        Fault("the server speaks SMTP", .protocolMismatch) { try spoken(Array("220 mail.example ESMTP\r\n".utf8), after: 0) },
        Fault("the server sends five bytes, and closes later", .protocolMismatch) {
            try spoken(Array("220 m".utf8), after: 0, closesAfter: 100)
        },
        Fault("the server speaks SMTP, and closes later", .protocolMismatch) {
            try spoken(Array("220 mail ESMTP\r\n".utf8), after: 0, closesAfter: 100)
        },
        Fault("the server sends two bytes, and closes", .protocolMismatch) { try spoken(Array("22".utf8), after: 1) },
        Fault("the server closes", .handshakeRefused) { try spoken([], after: 1) },
        Fault("the server resets", .handshakeRefused) {
            try LoopbackListener { client, _ in
                var (byte, isOn): (UInt8, linger) = (0, linger(l_onoff: 1, l_linger: 0))
                recv(client, &byte, 1, 0)
                setsockopt(client, SOL_SOCKET, SO_LINGER, &isOn, socklen_t(MemoryLayout<linger>.size))
            }
        },
        Fault("the server offers TLS 1.1", .protocolMismatch) {
            let hello: [UInt8] = [2, 0, 0, 38, 3, 2] + [UInt8](repeating: 7, count: 32) + [0, 0xC0, 0x09, 0]
            return try spoken([0x16, 3, 2, 0, UInt8(hello.count)] + hello, after: 1)
        },
        Fault("the server is silent", .handshakeStalled, isSilent: true) { try spoken(nil, after: 0) },
        Fault("the server sends a part of its hello", .handshakeTimeout, isSilent: true) {
            try spoken([0x16, 3, 3], after: 1, closes: false)
        },
    ]

    private static func tls(
        _ chain: String, _ version: ServerTLS.Version? = nil, _ change: (inout ServerTLS) -> Void = { _ in }
    ) throws -> TestServer {
        var tls = try ServerTLS.minted(chain)
        if let version { (tls.minimumVersion, tls.maximumVersion) = (version, version) }
        change(&tls)
        return try TestServer(tls: tls) { _ in StubResponse(body: "x") }
    }

    private static func tls(chain: String, key: String) throws -> TestServer {
        try TestServer(tls: ServerTLS(certificateChain: .text(chain), privateKey: .text(key))) { _ in StubResponse(body: "x") }
    }

    /// A server that sends these bytes after it has received a number of segments; `nil` sends none, and keeps the connection.
    private static func spoken(
        _ bytes: [UInt8]?, after count: Int, closes: Bool = true, closesAfter milliseconds: Int32 = 0
    ) throws -> LoopbackListener {
        try LoopbackListener { client, _ in
            var buffer = [UInt8](repeating: 0, count: 4_096)
            for _ in 0..<count where recv(client, &buffer, buffer.count, 0) <= 0 { return }
            if let bytes, !bytes.isEmpty { send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }
            // The client has read the bytes, and waits for an event.
            if milliseconds > 0 { poll(nil, 0, milliseconds) }
            if bytes != nil, closes { shutdown(client, Int32(SHUT_WR)) }
            while recv(client, &buffer, buffer.count, 0) > 0 {}
        }
    }

    @Test(arguments: faults) func `the error of a failed handshake has the cause of the server's monitor`(fault: Fault)
        async throws
    {
        let server = try fault.server()
        let url = try #require(URL(string: "https://127.0.0.1:\(server.port)/"))
        async let error = sessionError(url, isSilent: fault.isSilent)
        let cause = try await monitoredCause(url, isSilent: fault.isSilent)
        #expect(cause.layer == .tls && cause.code == fault.code, "\(cause)")
        let failure = try #require(try await error)
        expectEqual(failure.cause, cause, "\(failure): \(String(describing: failure.cause))")
        withExtendedLifetime(server) {}
    }

    @Test func `the errors of a status and of a missing response have the causes of HTTP`() async throws {
        let server = try TestServer { $0.target == "/slow" ? .never : StubResponse($0.target == "/login" ? 511 : 503) }
        defer { server.stop() }
        let session = try localSession()
        func unacceptable(_ path: String) async throws -> HTTPSessionError? {
            let response = try await session.dataTask(for: TransferRequest(url: server.url(path))).response
            return #expect(throws: HTTPSessionError.self) { try ResponseValidation().validate(response) }
        }
        let status = try #require(try await unacceptable("/down"))
        #expect(status.cause?.layer == .http && status.cause?.code == .status)
        expectEqual(status.cause?.detail, "127.0.0.1 answers 503 Service Unavailable, not 200-299")
        let login = try #require(try await unacceptable("/login"))
        expectEqual(login.cause?.code, .captivePortal)
        let impatient = try localSession { $0.requestTimeout = .milliseconds(500) }
        let slow = try #require(
            await failure(impatient.dataTask(for: TransferRequest(url: server.url("/slow")), handlers: .init())))
        #expect(slow.code == .timedOut && slow.cause?.code == .timeout && slow.cause?.layer == .http, "\(slow)")
        expectEqual(slow.cause?.detail, "127.0.0.1 does not answer the request in time")
    }

    private func sessionError(_ url: URL, isSilent: Bool) async throws -> HTTPSessionError? {
        let roots = try MintedCertificates.set("root")
        let session = try localSession {
            $0.securityPolicy.roots = .given(roots)
            if isSilent { $0.requestTimeout = .seconds(1) }
        }
        return await failure(session.dataTask(for: TransferRequest(url: url), handlers: .init()))
    }

    private func monitoredCause(_ url: URL, isSilent: Bool) async throws -> Cause {
        let settings = try MintedCertificates.inDirectory(["root.pem": MintedCertificates.data("root.pem")]) { directory in
            var settings = ProbeSettings(
                interval: .milliseconds(100), timeout: isSilent ? .seconds(1) : .seconds(60), failAfter: 1)
            try settings.tls.trustAuthorities(in: "\(directory)/root.pem")
            return settings
        }
        let monitor = try ServerMonitor(url.absoluteString, settings: settings)
        for await update in monitor.updates {
            if let cause = update.cause { return cause }
        }
        throw CancellationError()
    }
}

/// A server of a test, which exists as long as this object.
protocol ServerOfFault {
    var port: UInt16 { get }
}

extension TestServer: ServerOfFault {}
extension LoopbackListener: ServerOfFault {}
