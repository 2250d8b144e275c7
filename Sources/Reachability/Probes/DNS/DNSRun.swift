/// What a DNS probe asks by UDP, and what it expects.
struct DNSPlan: DatagramPlan {
    let scheme: Endpoint.Scheme
    let query: DNSQuery
    let isRecursive: Bool
    let expectation: DNSExpectation
    /// The same target over TCP, for an answer that does not fit into a datagram.
    private let overTCP: Endpoint

    init(_ endpoint: Endpoint, _ settings: ProbeSettings) {
        scheme = endpoint.scheme
        query = endpoint.query
        isRecursive = settings.dns.requestsRecursion
        expectation = DNSExpectation(settings.dns)
        overTCP = Endpoint(
            Endpoint.Values(host: endpoint.host, port: endpoint.port, scheme: .dnsOverTCP, path: query.path, text: nil))
    }

    func makeRun(number: UInt64) -> any DatagramRun { DNSRun(self, number: UInt16(truncatingIfNeeded: number)) }

    /// The text of the same target over TCP.
    var textOverTCP: String { overTCP.text }
}

/// One question by UDP. The socket is connected, so that only the server's own datagrams arrive.
final class DNSRun: DatagramRun {
    private(set) var result = LevelResult()
    private(set) var hasEnded = false
    private let plan: DNSPlan
    private let number: UInt16
    private var output: [[UInt8]] = []
    private var started: Int64 = 0

    init(_ plan: DNSPlan, number: UInt16) { (self.plan, self.number) = (plan, number) }

    func begin(_ now: Int64) {
        started = now
        let question = plan.query.message(number: number, isRecursive: plan.isRecursive)
        result.bytesSent += question.count
        output.append(question)
    }

    func takeOutput() -> [[UInt8]] {
        defer { output = [] }
        return output
    }

    func receive(_ datagram: UnsafeRawBufferPointer, now: Int64) {
        result.bytesReceived += datagram.count
        guard !hasEnded, let message = DNSMessage(datagram), message.answers(plan.query, number: number) else { return }
        result.answerNanoseconds = max(1, now - started)
        var facts = DNSFacts()
        // The part of the records that fits is no basis for a judgment, but a code is.
        if message.isTruncated, plan.expectation.codes.contains(message.code) { facts.retry = plan.textOverTCP }
        facts.answer = DNSAnswer(message, plan.expectation)
        result.facts[DNSFacts.self] = facts
        hasEnded = true
    }
}
