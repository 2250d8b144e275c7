internal import Expressions

/// The response that a target must give. Without further settings it is a status from 200 to 299.
struct HTTPExpectation: Hashable, Sendable {
    /// An expression that a value must match, or must not match.
    struct Rule: Hashable, Sendable {
        let expression: Expression
        let mustMatch: Bool

        /// Returns whether a value meets the rule.
        func isMet(by bytes: some Sequence<UInt8>) -> Bool { expression.matches(bytes) == mustMatch }

        var text: String { (mustMatch ? "" : "not ") + expression.pattern }
    }

    var statuses = StatusCodes.success
    /// The accepted versions; empty for any.
    var versions: Set<String> = []
    var body: [Rule] = []
    var fields: [(name: String, rule: Rule)] { zip(fieldNames, fieldRules).map { ($0, $1) } }
    /// Whether a recording had rules for the body or for fields, which it does not contain.
    var hasFurtherRules = false
    private var fieldNames: [String] = []
    private var fieldRules: [Rule] = []

    /// Adds a rule for a field, which must be met by one of its values. A rule that must not match must be met by all.
    mutating func add(field name: String, _ rule: Rule) {
        fieldNames.append(name.lowercased())
        fieldRules.append(rule)
    }

    /// Whether more than a successful status is expected, so that a foreign answer may be a captive portal's.
    var isDeclared: Bool {
        statuses != .success || !versions.isEmpty || !body.isEmpty || !fieldNames.isEmpty || hasFurtherRules
    }

    /// Returns the first expectation that a complete response does not meet; `nil` if all are met.
    func mismatch(of exchange: HTTPExchange) -> HTTPResponseFacts.Mismatch? {
        guard let status = exchange.facts.status, statuses.contains(status) else { return .status }
        if !versions.isEmpty, !versions.contains(exchange.facts.version ?? "") { return .version }
        for (name, rule) in fields {
            let values = exchange.values(of: name)
            let isMet =
                rule.mustMatch ? values.contains { rule.isMet(by: $0.utf8) } : values.allSatisfy { rule.isMet(by: $0.utf8) }
            if !isMet { return .field(name: name, expectation: rule.text) }
        }
        for rule in body where !rule.isMet(by: exchange.body) { return .body(rule.text) }
        return nil
    }
}
