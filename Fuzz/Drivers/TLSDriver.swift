import FoundationEssentials
import Pacing

@testable import Certificates

extension FuzzDriver {
    /// The bytes of a TLS server, in pieces of any size: two clients with the same bytes have the same facts.
    static let tls = FuzzDriver(name: "tls") { input in
        var random = randomNumbers(for: input)
        let context = TLSClientContext.of(TLSClientSettings(authorities: Authorities(includesSystem: false)))
        let complete = try client(context, [input[...]], of: input)
        let inPieces = try client(context, pieces(of: input, &random), of: input)
        var (facts, others) = (complete.facts, inPieces.facts)
        // A client that has ended does not count the next pieces.
        if complete.state == .failed || complete.state == .closed {
            (facts.bytesReceived, others.bytesReceived) = (0, 0)
            let isBeginning = facts.firstBytes?.starts(with: others.firstBytes ?? []) ?? true
            try require(isBeginning, "first bytes: \(others) instead of \(facts)")
            (facts.firstBytes, others.firstBytes) = (nil, nil)
        }
        try require(facts == others && complete.state == inPieces.state, "pieces: \(others) instead of \(facts)")
    }

    private static func client(
        _ context: TLSClientContext, _ pieces: [ArraySlice<UInt8>], of input: [UInt8]
    ) throws -> TLSClient {
        let client = try TLSClient(context: context, serverName: "a.test", applicationProtocols: ["http/1.1"])
        let hello = client.start()
        try require(!hello.isEmpty && client.start().isEmpty, "the hello is sent once")
        var sent = 0
        for piece in pieces {
            let isEnded = client.state == .failed || client.state == .closed
            let step = piece.withUnsafeBytes { client.receive($0) }
            try require(step.state == client.state, "the state of the step")
            try require(!isEnded || step.bytesToSend.isEmpty && step.plaintext.isEmpty, "a client that has ended goes on")
            try require(step.plaintext.count <= input.count, "more plaintext than bytes")
            sent += step.bytesToSend.count
        }
        // One hello for a HelloRetryRequest, and an alert.
        try require(sent <= 2 * hello.count + 1024, "the client sends \(sent) bytes")
        let facts = client.facts
        try require(facts.bytesReceived <= input.count, "bytes: \(facts)")
        try require((facts.firstBytes?.count ?? 0) <= TLSHandshakeFacts.maximumFirstBytes, "first bytes: \(facts)")
        try require(facts.verificationErrors.count <= 33 && facts.chainLength <= input.count, "chain: \(facts)")
        if let certificate = facts.certificate { try checkFacts(certificate, of: input.count) }
        // A handshake cannot be complete: the server's signature covers the random bytes of the client.
        try require(!facts.isComplete && client.state != .established, "the handshake is complete: \(facts)")
        return client
    }

    /// The limits of the facts of a certificate in `count` bytes.
    static func checkFacts(_ facts: TLSCertificateFacts, of count: Int) throws {
        try require(facts.names.count <= min(facts.nameCount, TLSCertificateFacts.maximumNames), "names: \(facts)")
        try require(facts.nameCount <= count, "more names than bytes: \(facts)")
        try require(facts.names.allSatisfy { $0.utf8.count <= 3 * 255 }, "a long name: \(facts)")
        // A cut sequence of UTF-8 becomes a longer character.
        try require(facts.subject.utf8.count <= 1024 * 3 && facts.issuer.utf8.count <= 1024 * 3, "a long subject: \(facts)")
        try require(facts.sha256.utf8.count == 64, "digest: \(facts)")
        try require(facts.serialNumber.utf8.count <= 128 && facts.serialNumber.utf8.count % 2 == 0, "serial number: \(facts)")
    }
}
