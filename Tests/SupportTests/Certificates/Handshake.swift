import COpenSSL
import Certificates
import FoundationEssentials
import MemoryCertificates

@testable import Reachability

/// The certificates of the tests, created once.
struct TestCertificates {
    static let shared = Result { try TestCertificates() }

    // @unchecked Sendable is not needed: each test creates its own SSL objects, and these certificates never change.
    nonisolated(unsafe) let root: MemoryCertificate
    nonisolated(unsafe) let intermediate: MemoryCertificate
    nonisolated(unsafe) let leaf: MemoryCertificate
    nonisolated(unsafe) let expired: MemoryCertificate
    nonisolated(unsafe) let future: MemoryCertificate
    nonisolated(unsafe) let early: MemoryCertificate
    nonisolated(unsafe) let other: MemoryCertificate
    nonisolated(unsafe) let strangeExpiredOther: MemoryCertificate
    nonisolated(unsafe) let strangeRoot: MemoryCertificate
    nonisolated(unsafe) let selfSigned: MemoryCertificate

    private init() throws {
        let names = ["DNS:a.test", "DNS:*.b.test", "IP:192.0.2.1", "IP:2001:db8::1"]
        root = try MemoryCertificate("Root", isAuthority: true)
        intermediate = try MemoryCertificate("Intermediate", issuer: root, isAuthority: true)
        leaf = try MemoryCertificate("leaf", issuer: intermediate, names: names)
        expired = try MemoryCertificate("expired", issuer: intermediate, names: names, days: -40 ... -24)
        future = try MemoryCertificate("future", issuer: intermediate, names: names, days: 10...20)
        early = try MemoryCertificate("early", issuer: intermediate, names: names, days: -1...5)
        other = try MemoryCertificate("other", issuer: intermediate, names: ["DNS:other.test", "DNS:www.other.test"])
        strangeRoot = try MemoryCertificate("Strange Root", isAuthority: true)
        strangeExpiredOther = try MemoryCertificate("strange", issuer: strangeRoot, names: ["DNS:other.test"], days: -40 ... -24)
        selfSigned = try MemoryCertificate("self", names: names)
    }
}

/// The trust of the tests: their root alone.
func settings(revoking revoked: [MemoryCertificate]? = nil) throws -> TLSClientSettings {
    let certificates = try TestCertificates.shared.get()
    return try TLSClientSettings.reading(
        authorities: (certificates.root.derBytes, "root"),
        revocationLists: try revoked.map { (try certificates.intermediate.revocationList(of: $0), "list") })
}

/// The processor time with which a client begins whose own time is not the subject: on a busy machine, and with a sanitizer, an honest handshake
/// may take longer than the limit.
let patientStart: Int64 = -10_000_000_000

/// Exchanges bytes until neither side has more. Each `size` bytes of the server are received at once.
@discardableResult
func converse(_ client: TLSClient, _ server: MemoryServer, size: Int = .max) -> [UInt8] {
    var toServer = client.start()
    var plaintext: [UInt8] = []
    for _ in 0..<20 {
        var toClient = server.receive(toServer)[...]
        toServer = []
        while !toClient.isEmpty {
            let step = client.receive(Array(toClient.prefix(size)))
            toClient = toClient.dropFirst(size)
            toServer += step.bytesToSend
            plaintext += step.plaintext
        }
        if toServer.isEmpty { break }
    }
    return plaintext
}

/// Returns the cause of a handshake, as the prober asks for it.
func causeOf(
    _ client: TLSClient, _ end: TLSHandshakeEnd? = nil, isInsecure: Bool = false, host: String = "203.0.113.5"
) -> Cause? {
    let now = Int64(Date().timeIntervalSince1970)
    let end = end ?? client.handshakeEnd ?? .deadline
    return FinishedHandshake(facts: client.facts, end: end, host: host, now: now, isInsecure: isInsecure).cause
}

func name(_ cause: Cause?) -> String { cause.map { "\($0.layer)/\($0.code)" } ?? "none" }
