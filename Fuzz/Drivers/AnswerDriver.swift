@testable import Reachability

extension FuzzDriver {
    /// Answers to the question of a `dns://` target, as datagrams and on a connection, whole and in pieces.
    static let answer = FuzzDriver(name: "answer") { input in
        let settings = ProbeSettings()
        let endpoint = try Endpoint("dns://192.0.2.1/a.test?type=TXT")
        guard let message = DNSMessage(input) else {
            try require(input.count < 12 || input[4] > 0 || input[5] > 0, "a header without a question is not read")
            return try checkStream(input, settings)
        }
        try require(input.count >= 12, "a message of \(input.count) bytes")
        let records = DNSMessage.Section.allCases.flatMap { message[$0] }
        // A record has at least the root, its type, class, TTL and length.
        try require(records.count <= min(DNSMessage.recordLimit, input.count / 11), "records: \(records.count)")
        for section in DNSMessage.Section.allCases {
            try require(message[section].count <= message.counts[section] ?? 0, "more records than announced: \(section)")
        }
        // Each byte of a name has at most four characters, and each of the data at most four and its share of the words.
        for record in records {
            try require(record.text.utf8.allSatisfy { (0x20...0x7E).contains($0) }, "a record is not visible: \(record.text)")
            try require(record.text.utf8.count <= 8 * 1_024 + 8 * input.count, "a record of \(record.text.utf8.count) bytes")
            try require(record.serial == nil || record.type == .soa, "a serial number of \(record.type)")
            try require(record.signatureEnd == nil || record.type == .rrsig, "an end of \(record.type)")
        }
        let answer = DNSAnswer(message, DNSExpectation(settings.dns))
        try require((0..<4_096).contains(answer.code), "code: \(answer.code)")
        let run = DNSRun(DNSPlan(endpoint, settings), number: message.number)
        run.begin(1)
        input.withUnsafeBytes { run.receive($0, now: 2) }
        try require(run.hasEnded == message.answers(endpoint.query, number: message.number), "the conversation ends wrongly")
        if run.hasEnded {
            let facts = run.result.facts[DNSFacts.self]
            try facts.checkRanges()
            try require(facts.answer == answer, "the conversation has another answer")
        }
        try checkStream(input, settings)
    }

    /// The same bytes on a connection give the same result in pieces of any size.
    private static func checkStream(_ input: [UInt8], _ settings: ProbeSettings) throws {
        let plan = DNSStreamPlan(try Endpoint("dns+tcp://192.0.2.1/a.test?type=TXT"), settings)
        func result(_ pieces: [ArraySlice<UInt8>]) -> DNSFacts {
            let run = DNSStreamRun(plan, deadline: 9)
            run.connected(1)
            for piece in pieces { piece.withUnsafeBytes { run.receive($0, now: 1) } }
            run.inputEnded(1)
            return run.result.facts[DNSFacts.self]
        }
        var random = randomNumbers(for: input)
        let whole = result([input[...]])
        try require(whole == result(pieces(of: input, &random)), "pieces give another result")
        try require((whole.answer == nil) != (whole.failure == nil), "neither an answer nor a failure: \(whole)")
    }
}
