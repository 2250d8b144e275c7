internal import FoundationEssentials
internal import Reachability

/// The causes of failures above TLS, as a `ServerMonitor` of the server reports them (``CauseOfHTTP``).
enum CauseOfResponse {
    /// Determines the cause of a response whose status is not accepted.
    ///
    /// - Parameters:
    ///   - head: the response.
    ///   - bodyBytes: the received bytes of its body.
    ///   - url: the URL of the request.
    ///   - accepted: the accepted statuses; `nil` for those that every response without an error has.
    /// - Returns: The cause; `nil` if there is none.
    static func status(_ head: ResponseHead, bodyBytes: Int, from url: URL, accepted: Set<Int>? = nil) -> Cause? {
        let phrase = String(head.reasonPhrase.prefix(100))
        let facts = HTTPResponseFacts(
            status: head.statusCode, version: head.version, reason: phrase.isEmpty ? nil : phrase,
            location: head.firstValue(of: "location").map { String($0.prefix(200)) }, bodyBytes: bodyBytes)
        let expectation = ranges(of: accepted ?? Set(200...299))
        return cause(facts, .exchange, url, mismatch: HTTPMismatch(.status, expectation: expectation))
    }

    /// Returns the cause of a response that is missing when its time has passed.
    static func silence(after head: ResponseHead?, bodyBytes: Int, from url: URL) -> Cause? {
        let facts = HTTPResponseFacts(
            status: head?.statusCode, version: head?.version, receivedBytes: head?.bytes.count ?? 0, bodyBytes: bodyBytes)
        return cause(facts, .deadline, url)
    }

    private static func cause(
        _ response: HTTPResponseFacts, _ ending: HTTPEnding, _ url: URL, mismatch: HTTPMismatch? = nil
    ) -> Cause? {
        // Only a proxy answers 407 (RFC 9110 section 15.5.8).
        let host = response.status == 407 ? "the proxy" : url.host(percentEncoded: false)?.withoutBrackets ?? "the server"
        return CauseOfHTTP(
            facts: HTTPProbeFacts(response: response, mismatch: mismatch), ending: ending, host: host, elapsedNanoseconds: nil
        ).cause
    }

    /// Returns statuses as a list of ranges, such as `200-299,401`.
    private static func ranges(of statuses: Set<Int>) -> String {
        var ranges: [ClosedRange<Int>] = []
        for status in statuses.sorted() {
            if let last = ranges.last, last.upperBound + 1 == status {
                ranges[ranges.count - 1] = last.lowerBound...status
            } else {
                ranges.append(status...status)
            }
        }
        return ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",")
    }
}

extension ResponseHead {
    /// The version of the status line, such as `1.1` or `2`.
    fileprivate var version: String? {
        guard bytes.starts(with: Array("HTTP/".utf8)), let end = bytes.firstIndex(of: 0x20), end > 5, end < 9 else { return nil }
        return String(decoding: bytes[5..<end], as: UTF8.self)
    }
}
