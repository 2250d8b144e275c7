internal import Expressions

/// The answer that a user expects.
struct DNSExpectation: Hashable, Sendable {
    /// A rule for the records of a section.
    struct Rule: Hashable, Sendable {
        let section: DNSMessage.Section
        let expression: Expressions.Expression
        /// Whether no record may match. Otherwise at least one has to match.
        let isExcluded: Bool
    }

    /// The response codes that are allowed.
    let codes: [DNSResponseCode]
    let rules: [Rule]

    init(_ settings: DNSSettings) {
        codes = settings.codes.isEmpty ? [.success] : settings.codes
        rules = settings.rules
    }

    /// Returns the first expectation that an answer does not meet: first the response code, then the sections in their order.
    func mismatch(of message: DNSMessage) -> DNSMismatch? {
        guard codes.contains(message.code) else {
            return DNSMismatch(expectation: ExternalText.shortened(codes.map(\.description).joined(separator: ",")))
        }
        for section in DNSMessage.Section.allCases {
            let records = message[section].map { Array($0.text.utf8) }
            for rule in rules where rule.section == section {
                let isMatched = records.contains { rule.expression.matches($0) }
                if isMatched == rule.isExcluded {
                    return DNSMismatch(
                        expectation: ExternalText.shortened(rule.expression.text), section: section,
                        isExcluded: rule.isExcluded ? true : nil)
                }
            }
        }
        return nil
    }
}

/// An expectation that an answer does not meet.
struct DNSMismatch: Hashable, Sendable, Codable {
    /// The allowed response codes, or the expression.
    let expectation: String
    /// The section of the expression; `nil` for the response code.
    var section: DNSMessage.Section?
    /// `true` if no record may match; omitted otherwise.
    var isExcluded: Bool?
}
