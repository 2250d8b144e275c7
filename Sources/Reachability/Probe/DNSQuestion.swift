internal import CAres
internal import Glibc

/// A question that c-ares asks, and the evidence of its messages.
final class DNSQuestion {
    let asked: NameQuestion
    /// The number in the header of the message (RFC 1035 section 4.1.1).
    let number: UInt16
    /// The complete message without a length.
    let message: [UInt8]
    private(set) var exchanges: [NameServerExchange] = []
    // For each exchange, the server's count of messages that answered no question, at the time of sending.
    private var strayCounts: [Int] = []
    // The server that the question was last sent to.
    private var present: (server: ResolverConfiguration.Nameserver, isOverTCP: Bool)?
    private let ended: (DNSQuestion, NameQuestionResult) -> Void

    /// Creates a question. `ended` receives its result.
    init(
        _ asked: NameQuestion, number: UInt16, message: [UInt8], ended: @escaping (DNSQuestion, NameQuestionResult) -> Void
    ) {
        self.asked = asked
        self.number = number
        self.message = message
        self.ended = ended
    }

    /// Notes that the question was sent to a server.
    func sent(to server: DNSSockets.Server, overTCP: Bool) {
        let index = place(of: server)
        exchanges[index].isOverTCP = overTCP
        present = (server.address, overTCP)
    }

    /// Notes that an answer was truncated. c-ares asks the same server again over TCP.
    func truncated(by server: DNSSockets.Server) { sent(to: server, overTCP: true) }

    /// Notes that a call for this question failed. An answer says more than a later error.
    func failed(_ server: DNSSockets.Server, _ call: String, errno: Int32, _ reporter: ProbeResult.Reporter?) {
        let index = place(of: server)
        guard exchanges[index].outcome != .answered else { return }
        exchanges[index].outcome = .failed
        exchanges[index].call = call
        exchanges[index].errno = errno
        // A repeated attempt may fail before its message arrives.
        exchanges[index].reporter = reporter ?? exchanges[index].reporter
        if reporter != nil { exchanges[index].scope = nil }
    }

    func refused(by server: DNSSockets.Server, scope: NameServerExchange.Scope) { exchanges[place(of: server)].scope = scope }

    /// Notes the response code of an answer, and whether it only refers to other servers.
    func answered(by server: DNSSockets.Server, rcode: UInt8, isReferral: Bool) {
        let index = place(of: server)
        exchanges[index] = NameServerExchange(
            server.address, .answered, rcode: rcode, isOverTCP: exchanges[index].isOverTCP)
        if isReferral { exchanges[index].isReferral = true }
    }

    /// Whether the question waits for this server.
    func waits(for server: DNSSockets.Server, overTCP: Bool) -> Bool {
        present.map { $0.server == server.address && $0.isOverTCP == overTCP } ?? false
    }

    /// Returns the evidence so far. Servers to which no socket could be opened are included.
    func evidence(_ servers: [DNSSockets.Server]) -> [NameServerExchange] {
        var evidence = exchanges
        for server in servers {
            if let index = evidence.firstIndex(where: { $0.server == server.address }) {
                guard evidence[index].outcome == .silent, index < strayCounts.count else { continue }
                if server.strayCount > strayCounts[index] { evidence[index].outcome = .invalid }
            } else if let failure = server.failure {
                evidence.append(
                    NameServerExchange(server.address, .failed, errno: failure.errno, call: failure.call))
            }
        }
        return evidence
    }

    private func place(of server: DNSSockets.Server) -> Int {
        if let index = exchanges.firstIndex(where: { $0.server == server.address }) { return index }
        exchanges.append(NameServerExchange(server.address, .silent))
        strayCounts.append(server.strayCount)
        return exchanges.count - 1
    }

    /// Ends the question with the status of c-ares, and with the message if a server answered.
    func end(_ status: Int32, _ answer: UnsafeBufferPointer<UInt8>?) {
        var result = NameQuestionResult(id: asked.id, .failed)
        if status == ARES_SUCCESS, let answer, answer.count >= DNSSockets.headerSize {
            switch answer[3] & 0x0f {
            case 0: read(answer, &result)
            case 3:
                result.result = .nameNotFound
                noteAuthority(answer)
            default: break
            }
        }
        ended(self, result)
    }

    /// Notes whether an authority is the source of the answer, which has no address.
    private func noteAuthority(_ answer: UnsafeBufferPointer<UInt8>) {
        let isAuthoritative = NegativeAnswer.isAuthoritative(answer)
        for index in exchanges.indices where exchanges[index].isNegative {
            exchanges[index].isAuthoritative = isAuthoritative
        }
    }

    /// Reads the addresses of an answer. c-ares follows the aliases (CNAME).
    private func read(_ answer: UnsafeBufferPointer<UInt8>, _ result: inout NameQuestionResult) {
        var count = Int32(NameTable.addressLimit)
        let status: Int32
        switch asked.family {
        case .v4:
            var records = [ares_addrttl](repeating: ares_addrttl(), count: Int(count))
            status = ares_parse_a_reply(answer.baseAddress, Int32(answer.count), nil, &records, &count)
            let found = records.prefix(Int(max(0, count)))
            result.addresses = found.compactMap { record in withUnsafeBytes(of: record.ipaddr) { IPAddress(bytes: $0) } }
            result.ttl = UInt32(clamping: found.lazy.map(\.ttl).min() ?? 0)
        case .v6:
            var records = [ares_addr6ttl](repeating: ares_addr6ttl(), count: Int(count))
            status = ares_parse_aaaa_reply(answer.baseAddress, Int32(answer.count), nil, &records, &count)
            let found = records.prefix(Int(max(0, count)))
            result.addresses = found.compactMap { record in
                withUnsafeBytes(of: record.ip6addr) { IPAddress(bytes: $0)?.unmapped }
            }
            result.ttl = UInt32(clamping: found.lazy.map(\.ttl).min() ?? 0)
        }
        if !result.addresses.isEmpty {
            result.result = .addresses
        } else if status == ARES_SUCCESS || status == ARES_ENODATA {
            result.result = .noData
            noteAuthority(answer)
            guard let loop = NegativeAnswer.aliasLoop(in: answer) else { return }
            // The records of a loop are an authority's.
            for index in exchanges.indices where exchanges[index].isNegative {
                (exchanges[index].aliasLoop, exchanges[index].isAuthoritative) = (loop, true)
            }
        } else {
            // The header belongs to the question, and the records are damaged.
            for index in exchanges.indices where exchanges[index].outcome == .answered {
                exchanges[index] = NameServerExchange(
                    exchanges[index].server, .invalid, isOverTCP: exchanges[index].isOverTCP)
            }
        }
    }
}
