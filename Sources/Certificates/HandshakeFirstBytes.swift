/// The first bytes of both sides of a connection, which show whether the server speaks TLS.
struct HandshakeFirstBytes: Hashable, Sendable {
    private(set) var sent: [UInt8] = []
    private(set) var received: [UInt8] = []

    private static let limit = TLSHandshakeFacts.maximumFirstBytes

    mutating func noteSent(_ bytes: some Collection<UInt8>) { sent += bytes.prefix(Self.limit - sent.count) }

    mutating func noteReceived(_ bytes: some Collection<UInt8>) { received += bytes.prefix(Self.limit - received.count) }

    /// The number of further bytes of the server that its protocol needs to be recognized; 0 if it speaks TLS.
    var missingCount: Int { received.isEmpty || isRecord ? 0 : Self.limit - received.count }

    /// Whether the server's bytes begin like a record. The types of records are 20 to 23 (RFC 8446 section 5.1), and all versions
    /// begin with 3.
    private var isRecord: Bool {
        guard let first = received.first else { return false }
        return 20...23 ~= first && (received.count < 2 || received[1] == 3)
    }

    /// Adds the facts that the bytes show.
    func describe(in facts: inout TLSHandshakeFacts) {
        guard !received.isEmpty else { return }
        // The hello has its random bytes from the twelfth on, so no server sends as many of them by chance.
        facts.isEcho = received.count > 20 && sent.starts(with: received)
        facts.hasBegunRecord = isRecord && !facts.isEcho
        if !facts.hasBegunRecord { facts.firstBytes = received }
    }

    /// The version of the server's hello if it is older than TLS 1.2, as OpenSSL names it (RFC 8446 section 4.1.3). The record's
    /// header has 5 bytes, that of the message 4.
    var olderVersion: String? {
        guard received.count >= 11, received[0] == 22, received[5] == 2, received[9] == 3 else { return nil }
        return switch received[10] {
        case 0: "SSLv3"
        case 1: "TLSv1"
        case 2: "TLSv1.1"
        default: nil
        }
    }
}
