import COpenSSL
import Glibc

/// The TLS settings of a server.
public struct ServerTLS: Sendable {
    /// PEM text (RFC 7468), or a file with such text.
    @nonexhaustive public enum PEM: Hashable, Sendable {
        /// The text itself.
        case text(String)
        /// The path of a file, read when the server starts.
        case file(String)
    }

    /// A version of TLS.
    @nonexhaustive public enum Version: Int, Hashable, Sendable {
        /// TLS 1.0 (RFC 2246). TLS 1.0 and 1.1 lower OpenSSL's security level to 0 for the complete server.
        case v1_0 = 0x0301
        /// TLS 1.1; see ``v1_0``.
        case v1_1 = 0x0302
        /// TLS 1.2 (RFC 5246).
        case v1_2 = 0x0303
        /// TLS 1.3 (RFC 8446).
        case v1_3 = 0x0304
    }

    /// The certificates that the server asks its clients for.
    @nonexhaustive public enum ClientCertificates: Hashable, Sendable {
        /// The server asks for none.
        case notRequested
        /// The server asks for a certificate, accepts any or none, and records it.
        case requested
        /// The server refuses a connection without a certificate that these authorities have signed; `nil` accepts any certificate.
        case required(authorities: PEM?)
    }

    /// The server's certificate, then the others that it sends, in their order.
    public var certificateChain: PEM
    /// The private key of the first certificate, without a passphrase.
    public var privateKey: PEM
    /// The oldest version that the server accepts; TLS 1.2 by default.
    public var minimumVersion = Version.v1_2
    /// The newest version that the server accepts; TLS 1.3 by default.
    public var maximumVersion = Version.v1_3
    /// The rule for certificates of clients; none is requested by default.
    public var clientCertificates = ClientCertificates.notRequested
    /// Whether sessions of earlier connections may be resumed; `true` by default.
    public var resumesSessions = true
    /// The protocol that the server selects by ALPN (RFC 7301), whether the client lists it or not; `nil` selects none. The server speaks
    /// HTTP/1.1 in any case.
    public var applicationProtocol: String?

    /// Creates the settings of a server with this certificate and key.
    public init(certificateChain: PEM, privateKey: PEM) {
        self.certificateChain = certificateChain
        self.privateKey = privateKey
    }
}

extension ServerTLS.PEM {
    /// - Throws: ``TestServerError`` when the file cannot be read.
    func contents() throws -> String {
        switch self {
        case .text(let text): return text
        case .file(let path):
            let file = try Descriptor(open(path, O_RDONLY | O_CLOEXEC), path)
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 65536)
            while case let count = read(file.number, &buffer, buffer.count), count > 0, bytes.count < 1 << 24 {
                bytes += buffer[..<count]
            }
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    /// Calls `body` with each certificate, an X509 that lives until `body` returns. There is at least one.
    func forEachCertificate(_ body: (_ index: Int, OpaquePointer) throws -> Void) throws {
        try withMemoryBIO(contents()) { bio in
            var count = 0
            while let certificate = PEM_read_bio_X509(bio, nil, nil, nil) {
                defer { X509_free(certificate) }
                try body(count, certificate)
                count += 1
            }
            // OpenSSL reports the end of the text as an error too.
            ERR_clear_error()
            if count == 0 { throw TestServerError("no certificate in the PEM text") }
        }
    }
}

func withMemoryBIO<Result>(_ text: String, _ body: (OpaquePointer) throws -> Result) throws -> Result {
    let bytes = Array(text.utf8)
    return try bytes.withUnsafeBytes { bytes in
        guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else {
            throw TestServerError(openSSL: "BIO_new_mem_buf")
        }
        defer { BIO_free(bio) }
        return try body(bio)
    }
}

extension TestServerError {
    /// The oldest error of the thread's error queue; the others are dropped.
    init(openSSL call: String) {
        let code = ERR_get_error()
        ERR_clear_error()
        var text = [CChar](repeating: 0, count: 256)
        ERR_error_string_n(code, &text, text.count)
        self.init("\(call): \(text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" })")
    }
}
