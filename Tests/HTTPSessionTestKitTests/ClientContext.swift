import COpenSSL
import Certificates
import Expectations
import HTTPSessionTestKit
import NetworkLab
import Testing

/// A client's SSL_CTX that trusts every certificate.
final class ClientContext {
    let pointer: OpaquePointer

    init(maximumVersion: Int32 = TLS1_3_VERSION, minimumVersion: Int32 = TLS1_2_VERSION) throws {
        OpenSSL.prepare()
        pointer = try #require(SSL_CTX_new(TLS_client_method()))
        SSL_CTX_set_security_level(pointer, 0)
        SSL_CTX_ctrl(pointer, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(minimumVersion), nil)
        SSL_CTX_ctrl(pointer, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(maximumVersion), nil)
        SSL_CTX_ctrl(pointer, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_CLIENT), nil)
    }

    deinit { SSL_CTX_free(pointer) }

    func use(_ identity: SelfSignedCertificate) throws {
        let folder = try ScratchDirectory()
        try write(identity.certificate, to: folder.file("chain"))
        try write(identity.privateKey, to: folder.file("key"))
        expectEqual(SSL_CTX_use_certificate_chain_file(pointer, folder.file("chain")), 1)
        expectEqual(SSL_CTX_use_PrivateKey_file(pointer, folder.file("key"), SSL_FILETYPE_PEM), 1)
    }
}
