internal import ContentCodings
package import Expressions
internal import Wire

/// The response that a user expects.
///
/// Expressions are searched in linear time: in the first 64 KiB of the body (``HTTPExchange/keptBytes``) without gzip and deflate, and in
/// each value of a field.
package struct HTTPExpectation: Hashable, Sendable {
    /// A rule for the values of a field.
    package struct FieldRule: Hashable, Sendable {
        /// The name of the field, in lower case.
        package let name: String
        package let expression: Expression
        /// Whether no value may match. Otherwise the field has to exist, and one of its values has to match.
        package let isExcluded: Bool

        package init(_ name: String, _ expression: Expression, isExcluded: Bool = false) {
            self.name = name.lowercased()
            self.expression = expression
            self.isExcluded = isExcluded
        }
    }

    /// The accepted statuses; `nil` if the user declares none, so that 200-299 are accepted.
    package var statuses: StatusRanges?
    /// The accepted versions, such as `1.1`; empty accepts all.
    package var versions: [String]
    /// The expression that the body has to match.
    package var body: Expression?
    /// The expression that the body must not match.
    package var excludedBody: Expression?
    package var fields: [FieldRule]
    /// The values that the body has as a JSON text.
    package var json: [JSONExpectation]
    /// The accepted numbers of bytes of the body, as they are received; `nil` accepts all.
    package var sizes: ClosedRange<Int>?

    package init(
        statuses: StatusRanges? = nil, versions: [String] = [], body: Expression? = nil, excludedBody: Expression? = nil,
        fields: [FieldRule] = [], json: [JSONExpectation] = [], sizes: ClosedRange<Int>? = nil
    ) {
        (self.json, self.sizes) = (json, sizes)
        self.statuses = statuses
        self.versions = versions
        self.body = body
        self.excludedBody = excludedBody
        self.fields = fields
    }

    /// The accepted statuses.
    package var acceptedStatuses: StatusRanges { statuses ?? .successful }

    /// Whether the user declares anything.
    package var isDeclared: Bool { self != HTTPExpectation() }

    /// Whether the body is compared.
    var needsBody: Bool { body != nil || excludedBody != nil || !json.isEmpty }

    /// Returns the first expectation that the response does not meet, in the order status, version, fields, size, body, JSON. The body is compared
    /// only if the exchange is complete. The result is `nil` before the head.
    package func mismatch(of exchange: HTTPExchange) -> HTTPMismatch? {
        guard let head = exchange.head else { return nil }
        if !acceptedStatuses.contains(head.status) { return HTTPMismatch(.status, expectation: acceptedStatuses.description) }
        if !versions.isEmpty, !versions.contains(head.version) {
            return HTTPMismatch(.version, expectation: ExternalText.shortened(versions.joined(separator: ",")))
        }
        for rule in fields {
            let isMatched = head.values(of: rule.name).contains { rule.expression.matches($0) }
            if isMatched == rule.isExcluded {
                let kind = rule.isExcluded ? HTTPMismatch.Kind.excludedHeader : .header
                return HTTPMismatch(
                    kind, expectation: ExternalText.shortened(rule.expression.text), field: ExternalText.shortened(rule.name))
            }
        }
        guard exchange.progress == .complete else { return nil }
        if let sizes, !sizes.contains(exchange.bodyBytes) {
            let limit =
                exchange.bodyBytes < sizes.lowerBound ? "at least \(sizes.lowerBound) bytes" : "at most \(sizes.upperBound) bytes"
            return HTTPMismatch(.size, expectation: limit)
        }
        guard needsBody else { return nil }
        let bytes: [UInt8]
        do { bytes = try exchange.decodedBody() } catch {
            let expectation = ExternalText.shortened(body?.shownText ?? excludedBody?.text ?? json.first?.text ?? "")
            return switch error {
            case .unsupported(let name):
                HTTPMismatch(.unsupportedCoding, expectation: expectation, coding: ExternalText.shortened(name))
            case .damaged(let coding): HTTPMismatch(.damagedCoding, expectation: expectation, coding: coding.rawValue)
            case .truncated(let coding): HTTPMismatch(.truncatedCoding, expectation: expectation, coding: coding.rawValue)
            }
        }
        if let body, !body.matches(bytes) {
            return HTTPMismatch(.body, expectation: ExternalText.shortened(body.shownText))
        }
        if let excludedBody, excludedBody.matches(bytes) {
            return HTTPMismatch(.excludedBody, expectation: ExternalText.shortened(excludedBody.text))
        }
        guard !json.isEmpty else { return nil }
        switch JSONExpectation.compare(json, with: bytes) {
        case .met: return nil
        case .unreadable: return HTTPMismatch(.notJSON, expectation: ExternalText.shortened(json.first?.text ?? ""))
        case .unmet(let expectation, let found):
            var mismatch = HTTPMismatch(.json, expectation: ExternalText.shortened(expectation.text))
            mismatch.found = ExternalText.shortened(found)
            return mismatch
        }
    }
}
