/// What a probe of a name server has found out.
package struct DNSFacts: ProbeFacts {
    /// How a conversation ended without an answer.
    enum Failure: Hashable, Sendable, Codable {
        /// The server has closed the connection.
        case closed
        /// The server has accepted the connection, and has sent so many bytes until the deadline.
        case deadline(receivedBytes: Int)
        /// The system has reported an errno, such as ECONNRESET.
        case systemError(Int32)
        /// The bytes are no answer to the question.
        case unreadable(String)
    }

    /// The answer; `nil` if there is none.
    var answer: DNSAnswer?
    var failure: Failure?
    /// The target of the probe that asks again by TCP, because the answer did not fit into a datagram; `nil` if there is none.
    var retry: String?

    private enum CodingKeys: String, CodingKey {
        case answer = "dnsAnswer"
        case failure = "dnsFailure"
        case retry = "dnsRetry"
    }

    package init() {}

    package var isEmpty: Bool { self == DNSFacts() }

    package var continuation: Continuation? {
        guard let retry, let endpoint = try? Endpoint(retry) else { return nil }
        return Continuation(endpoint: endpoint, locations: [], facts: FactsOfKinds())
    }

    package func checkRanges() throws(RecordedNumberError) {
        switch failure {
        case .deadline(let bytes): try RecordedRanges.check("receivedBytes", bytes, RecordedRanges.count)
        case .systemError(let errno): try RecordedRanges.check("systemError", errno, RecordedRanges.errno)
        case .closed, .unreadable, nil: break
        }
        guard let answer else { return }
        try RecordedRanges.check("code", answer.code, 0..<4_096)
        try RecordedRanges.check("ttl", answer.ttl, 0..<1 << 32)
        try RecordedRanges.check("serial", answer.serial, 0..<1 << 32)
        try RecordedRanges.check("signatureEnd", answer.signatureEnd, RecordedRanges.certificateSeconds)
        for section in [answer.answers, answer.authority, answer.additional] {
            try RecordedRanges.check("count", section.count, RecordedRanges.count)
        }
    }
}

/// The facts of an answer.
struct DNSAnswer: Hashable, Sendable, Codable {
    /// The records of a section.
    struct Records: Hashable, Sendable, Codable {
        /// The number of records that the section has.
        let count: Int
        /// The first ones, each shortened.
        let texts: [String]

        fileprivate init(_ section: DNSMessage.Section, of message: DNSMessage) {
            count = message.counts[section] ?? 0
            texts = message[section].prefix(Self.limit).map { ExternalText.shortened($0.text) }
        }

        /// The most records that are kept.
        static let limit = 16
    }

    let code: Int
    /// The names of the flags.
    let flags: [String]
    let answers: Records
    let authority: Records
    let additional: Records
    /// The least TTL of the records that answer the question, in seconds; `nil` without such records.
    let ttl: Int?
    /// The serial number of the zone; `nil` without an SOA record.
    let serial: Int?
    /// The earliest end of the signatures in seconds since 1970; `nil` without one.
    let signatureEnd: Int64?
    /// Why the records could not be read to their end; `nil` if they could.
    let damage: String?
    /// The expectation that the answer does not meet; `nil` if it meets all.
    let mismatch: DNSMismatch?

    init(_ message: DNSMessage, _ expectation: DNSExpectation) {
        code = Int(message.code.number)
        flags = DNSMessage.Flags.names.filter { message.flags & $0.flag != 0 }.map(\.name)
        answers = Records(.answer, of: message)
        authority = Records(.authority, of: message)
        additional = Records(.additional, of: message)
        ttl = message[.answer].map(\.ttl).min().map { Int($0) }
        let records = message[.answer] + message[.authority]
        serial = records.lazy.compactMap(\.serial).first.map { Int($0) }
        signatureEnd = records.compactMap(\.signatureEnd).min().map { Int64($0) }
        damage = message.damage
        mismatch = expectation.mismatch(of: message)
    }

    /// The records of a section.
    subscript(_ section: DNSMessage.Section) -> Records {
        switch section {
        case .answer: answers
        case .authority: authority
        case .additional: additional
        }
    }
}
