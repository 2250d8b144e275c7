import COpenSSL
import Certificates
import Foundation
@testable import HTTPSession

/// An OpenSSL server with a certificate chain that the test chooses.
final class TLSServer {
    let context: OpaquePointer

    // `chain` is the name of a PEM file; the private key has the name before `-chain`.
    init(
        _ chain: String, extra: [String] = [], asksFor clientRoot: String? = nil, requires: Bool = false,
        versions: ClosedRange<Int32> = TLS1_2_VERSION...TLS1_3_VERSION
    ) throws {
        OpenSSL.prepare()
        guard let context = SSL_CTX_new(TLS_server_method()) else { throw MintedCertificates.Failure(message: "no context") }
        self.context = context
        let certificates = try Certificate.all(in: MintedCertificates.data("\(chain).pem")) + extra.map(MintedCertificates.one)
        let name = chain.hasSuffix("-chain") ? String(chain.dropLast(6)) : chain
        let key = try PrivateKey(pem: MintedCertificates.data("\(name).key"), passphrase: nil, named: name)
        guard key.use(for: certificates[0].x509, chain: certificates.dropFirst().map(\.x509), on: context),
            netwatch_ssl_ctx_set_versions(context, versions.lowerBound, versions.upperBound) == 1
        else { throw MintedCertificates.Failure(message: "the server takes no \(chain)") }
        SSL_CTX_set_session_id_context(context, [1], 1)
        if let clientRoot {
            SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (requires ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nil)
            let root = CertificateDecoding.x509(try MintedCertificates.one(clientRoot).x509)
            X509_STORE_add_cert(SSL_CTX_get_cert_store(context), root)
            X509_free(root)
        }
    }

    deinit { SSL_CTX_free(context) }
}

/// A handshake in memory between a server and a ``ServerTrust``, installed as libcurl would do it, and one byte from the server.
final class TLSConversation {
    let client: OpaquePointer
    private let server: OpaquePointer
    /// Whether both sides have finished the handshake and the client has read the server's byte.
    private(set) var isComplete = false

    init(
        _ server: TLSServer, _ trust: ServerTrust?, session: OpaquePointer? = nil, sni: String? = nil,
        prepare: (OpaquePointer) -> Void = { _ in }
    ) throws {
        guard let context = SSL_CTX_new(TLS_client_method()) else { throw MintedCertificates.Failure(message: "no context") }
        // libcurl sets this mode before it calls the function. SSL_new retains the context from then on.
        SSL_CTX_set_session_cache_mode(context)
        defer { SSL_CTX_free(context) }
        prepare(context)
        if let trust, !trust.install(on: UnsafeMutableRawPointer(context)) {
            throw trust.error ?? HTTPSessionError(.misuse, "not installed, and no error")
        }
        var (near, far): (OpaquePointer?, OpaquePointer?)
        guard let client = SSL_new(context), let server = SSL_new(server.context), BIO_new_bio_pair(&near, 0, &far, 0) == 1 else {
            throw MintedCertificates.Failure(message: "no SSL")
        }
        self.client = client
        self.server = server
        SSL_set_bio(client, near, near)
        SSL_set_bio(server, far, far)
        SSL_set_connect_state(client)
        SSL_set_accept_state(server)
        if let session { SSL_set_session(client, session) }
        drive()
    }

    deinit {
        // Without close_notify, OpenSSL marks the session as not resumable.
        SSL_set_shutdown(client, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
        SSL_set_shutdown(server, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
        SSL_free(client)
        SSL_free(server)
    }

    private func drive() {
        var byte: UInt8 = 42
        var wrote = false
        for _ in 0..<20 {
            ERR_clear_error()
            if SSL_do_handshake(client) == 1, SSL_read(client, &byte, 1) == 1 { isComplete = true }
            ERR_clear_error()
            if SSL_do_handshake(server) == 1, !wrote { wrote = SSL_write(server, &byte, 1) == 1 }
            if isComplete { return }
        }
        ERR_clear_error()
    }

    /// The server asks for another handshake with these ciphers (RFC 5246 section 7.4.1.1).
    func renegotiate(_ ciphers: String) {
        SSL_set_cipher_list(server, ciphers)
        // SSL_OP_NO_SESSION_RESUMPTION_ON_RENEGOTIATION, which Swift does not import: a resumed session keeps its cipher.
        SSL_set_options(server, 1 << 16)
        SSL_renegotiate(server)
        var byte: UInt8 = 0
        for _ in 0..<20 {
            SSL_do_handshake(server)
            SSL_read(client, &byte, 1)
            SSL_read(server, &byte, 1)
        }
        ERR_clear_error()
    }

    var isResumed: Bool { SSL_session_reused(client) == 1 }

    /// The TLS session as libcurl would store it. The caller frees it.
    func takeSession() -> OpaquePointer? { SSL_get1_session(client) }

    var rawClient: UnsafeMutableRawPointer { UnsafeMutableRawPointer(client) }
}

private func SSL_CTX_set_session_cache_mode(_ context: OpaquePointer) {
    SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE), nil)
}

extension ServerTrust {
    convenience init(
        policy: PreparedPolicy, host: String?, proxy: TrustParameters.Proxy? = nil, identity: ClientIdentity? = nil,
        decisions: ServerTrustDecisions? = nil
    ) {
        self.init(TrustParameters(policy: policy, host: host, proxy: proxy, identity: identity, decisions: decisions))
    }
}

/// The result of a connection.
enum Outcome: Equatable {
    case accepted
    case refused(HTTPSessionError.Code)
}

/// Connects to a server that presents `chain`, and returns the result. The tests' root is the only root.
func connect(
    _ policy: SecurityPolicy, to chain: String, extra: [String] = [], host: String?, roots: String = "root",
    versions: ClosedRange<Int32> = TLS1_2_VERSION...TLS1_3_VERSION
) throws -> Outcome {
    switch try connectWithError(policy, to: chain, extra: extra, host: host, roots: roots, versions: versions) {
    case nil: .accepted
    case let error?: .refused(error.code)
    }
}

func connectWithError(
    _ policy: SecurityPolicy, to chain: String, extra: [String] = [], host: String?, roots: String = "root",
    versions: ClosedRange<Int32> = TLS1_2_VERSION...TLS1_3_VERSION
) throws -> HTTPSessionError? {
    var policy = policy
    if policy.roots == .system { policy.roots = .given(try MintedCertificates.set(roots)) }
    let trust = ServerTrust(policy: try PreparedPolicy.of(policy), host: host)
    let conversation = try TLSConversation(TLSServer(chain, extra: extra, versions: versions), trust)
    guard !conversation.isComplete else {
        guard case .trusted? = trust.verdict else { throw MintedCertificates.Failure(message: "connected without a verdict") }
        return nil
    }
    guard let error = trust.error else { throw MintedCertificates.Failure(message: "refused without an error") }
    return error
}
