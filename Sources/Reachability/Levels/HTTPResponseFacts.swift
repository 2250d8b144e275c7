/// The response to an HTTP probe, as far as the verdict needs it.
package struct HTTPResponseFacts: Hashable, Sendable, Codable {
    /// A response that violates HTTP/1.1, or a limit of the probe.
    package struct Violation: Hashable, Sendable, Codable {
        /// One clause without a subject: `sends …`.
        package var detail: String
        /// The limit that the response exceeds; `nil` if none.
        package var limit: String?
    }

    /// An expectation that the response does not meet.
    package enum Mismatch: Hashable, Sendable, Codable {
        case status
        case version
        /// The body does not match this expression, or matches one that it must not match.
        case body(String)
        /// The field does not have an expected value.
        case field(name: String, expectation: String)
    }

    /// The status code; `nil` before the status line.
    package var status: Int?
    /// The version of the status line, such as `1.1`.
    package var version: String?
    /// The field Location (RFC 9110 section 10.2.2), at most 2,048 bytes.
    package var location: String?
    /// The number of bytes of the body that were read.
    package var bodyBytes = 0
    /// The number of bytes that were received at all.
    package var receivedBytes = 0
    package var violation: Violation?
    package var mismatch: Mismatch?
    /// The first bytes of an answer that is not HTTP, at most 32.
    package var firstBytes: [UInt8]?
    /// Whether the complete response has arrived.
    package var isComplete = false

    /// Creates the facts of a request without an answer.
    package init() {}
}
