internal import Certificates

/// What a DNS probe asks on a TCP connection, with TLS or without it, and what it expects.
struct DNSStreamPlan: StreamPlan {
    let scheme: Endpoint.Scheme
    let query: DNSQuery
    let isRecursive: Bool
    let expectation: DNSExpectation
    /// The handshake; `nil` without TLS.
    let tls: TLSPlan?

    init(_ endpoint: Endpoint, _ settings: ProbeSettings) {
        scheme = endpoint.scheme
        query = endpoint.query
        isRecursive = settings.dns.requestsRecursion
        expectation = DNSExpectation(settings.dns)
        // The name of ALPN is that of RFC 7858 in the registry of IANA.
        tls = scheme.usesTLS ? TLSPlan(endpoint, settings, defaultProtocols: ["dot"]) : nil
    }

    func makeRun(deadline: Int64) -> any StreamRun { DNSStreamRun(self, deadline: deadline) }
}

/// One question on a TCP connection: messages have their lengths before them (RFC 7766 section 8), over TLS too (RFC 7858 section 3.3).
final class DNSStreamRun: StreamRun {
    /// The number of the question. Nobody else can answer on a connection, so that it need not be random.
    private static let number: UInt16 = 0x6e77

    private(set) var result = LevelResult()
    private(set) var hasEnded = false
    let deadline: Int64
    let context: TLSClientContext?
    private let plan: DNSStreamPlan
    private var client: TLSClient?
    private var output: [UInt8] = []
    private var input: [UInt8] = []
    private var started: Int64 = 0
    private var asked: Int64?
    private var firstByte: Int64?

    init(_ plan: DNSStreamPlan, deadline: Int64) {
        (self.plan, self.deadline) = (plan, deadline)
        context = plan.tls?.makeContext()
    }

    var endsGracefully: Bool { result.facts[DNSFacts.self].answer != nil }
    var beginsWithTLS: Bool { plan.tls != nil }

    func connected(_ now: Int64) {
        started = now
        guard let tls = plan.tls else { return ask(now) }
        client = result.startHandshake(tls, context, output: &output)
        if client == nil { end() }
    }

    func takeOutput() -> [UInt8] {
        defer { output = [] }
        return output
    }

    func noteSent(_ count: Int) { result.bytesSent += count }

    func receive(_ bytes: UnsafeRawBufferPointer, now: Int64) {
        result.bytesReceived += bytes.count
        guard !hasEnded else { return }
        guard let client else { return read(bytes, now) }
        let wasHandshaking = client.state == .handshaking
        let step = client.receive(bytes)
        output += step.bytesToSend
        if wasHandshaking, client.facts.isComplete { handshakeCompleted(client, now) }
        if !step.plaintext.isEmpty { step.plaintext.withUnsafeBytes { read($0, now) } }
        guard !hasEnded else { return }
        switch step.state {
        case .failed: fail(.closed, .protocolError)
        case .closed: fail(.closed, .endOfFile)
        case .established, .handshaking: break
        }
    }

    func inputEnded(_ now: Int64) { fail(.closed, .endOfFile) }

    func connectionFailed(_ number: Int32) { fail(.systemError(number), .systemError(number)) }

    func deadlineReached(_ progress: ConnectionProgress?) {
        guard !hasEnded else { return }
        result.note(progress)
        result.isAtDeadline = true
        fail(.deadline(receivedBytes: input.count), .deadline)
    }

    private func handshakeCompleted(_ client: TLSClient, _ now: Int64) {
        result.handshakeNanoseconds = max(0, now - started)
        // A server whose certificate is not accepted receives no question.
        if plan.tls?.settings.isInsecure == true || client.facts.isCertificateAccepted { ask(now) } else { end() }
    }

    private func ask(_ now: Int64) {
        asked = now
        let question = plan.query.message(number: Self.number, isRecursive: plan.isRecursive)
        let framed = [UInt8(truncatingIfNeeded: question.count >> 8), UInt8(truncatingIfNeeded: question.count)] + question
        output += client?.send(framed) ?? framed
    }

    private func read(_ bytes: UnsafeRawBufferPointer, _ now: Int64) {
        guard let asked, !hasEnded, !bytes.isEmpty else { return }
        if firstByte == nil {
            firstByte = now
            result.processingNanoseconds = max(0, now - asked)
        }
        input += bytes
        guard input.count >= 2 else { return }
        let length = Int(input[0]) << 8 | Int(input[1])
        guard input.count >= length + 2 else { return }
        var facts = DNSFacts()
        let answer = input[2..<(length + 2)]
        if let message = DNSMessage(answer) {
            if message.answers(plan.query, number: Self.number) {
                facts.answer = DNSAnswer(message, plan.expectation)
                result.transferNanoseconds = firstByte.map { max(0, now - $0) }
            } else {
                facts.failure = .unreadable("it answers another question")
            }
        } else {
            facts.failure = .unreadable("its first bytes are \"\(ExternalText.excerpt(answer))\"")
        }
        result.facts[DNSFacts.self] = facts
        end()
    }

    /// Ends the conversation without an answer.
    private func fail(_ failure: DNSFacts.Failure, _ handshakeEnd: TLSHandshakeEnd) {
        guard !hasEnded else { return }
        if asked != nil { result.facts[DNSFacts.self].failure = failure }
        end(handshakeEnd)
    }

    private func end(_ handshakeEnd: TLSHandshakeEnd = .completed) {
        if let client { result.endHandshake(client, handshakeEnd, output: &output) }
        client = nil
        hasEnded = true
    }
}
