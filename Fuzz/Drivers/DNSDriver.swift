@testable import Reachability

extension FuzzDriver {
    /// Answers of name servers.
    static let dns = FuzzDriver(name: "dns") { input in
        try checkLoop(input)
        for family in [IPAddress.Family.v4, .v6] {
            var result: NameQuestionResult?
            let asked = NameQuestion(id: 7, name: "a.test", family: family)
            let question = DNSQuestion(asked, number: 7, message: []) { _, ended in result = ended }
            // c-ares passes the success of an answer, and other statuses without one.
            input.withUnsafeBufferPointer { question.end(0, $0) }
            guard let result else { throw BrokenRule(description: "a question without a result") }
            try require(result.id == 7 && result.exchanges.isEmpty, "another question: \(result)")
            try require((result.result == .addresses) == !result.addresses.isEmpty, "result: \(result)")
            // A record of an address has at least its name, type, class, TTL, length and four bytes.
            let size = family == .v4 ? 15 : 27
            try require(result.addresses.count <= min(NameTable.addressLimit, input.count / size), "addresses: \(result)")
            try require(result.addresses.isEmpty || input[3] & 15 == 0, "addresses of a failure: \(result)")
            if family == .v4 { try require(result.addresses.allSatisfy { $0.family == .v4 }, "family: \(result)") }
            try require(result.ttl == 0 || !result.addresses.isEmpty, "a TTL without an address: \(result)")
        }
    }

    private static func checkLoop(_ input: [UInt8]) throws {
        let isMarked = input.count > 2 && input[2] & 0x04 != 0
        try require(NegativeAnswer.isAuthoritative(input) || !isMarked, "the flag AA is not seen")
        if NegativeAnswer.isReferral(input) {
            try require(
                !isMarked && input.count >= 12 && input[3] & 0x0f == 0, "a referral with AA, a code or a part of a header")
        }
        guard let loop = NegativeAnswer.aliasLoop(in: input) else { return }
        try require((1...16).contains(loop.count) && Set(loop).count == loop.count, "loop: \(loop)")
        // A byte is shown by at most four characters, between visible ones.
        let isShown = loop.allSatisfy { $0.utf8.count <= 4 * 255 && $0.utf8.allSatisfy { (0x21...0x7E).contains($0) } }
        try require(isShown, "loop: \(loop)")
        try require(loop.count * 12 <= input.count, "more aliases than records: \(loop)")
    }
}
