package import Wire

/// The response of the service, as its bytes arrive. The service is a program of this package, so only what it writes is understood
/// (``HTTPResponseReader/Grammar/strict``). Its documents are limited by their reader, and its stream has no end.
package struct ServiceResponse {
    private static let limits = HTTPResponseReader.Limits(
        head: 64 << 10, fields: 512, interimResponses: 10, body: .max, knownBody: .max, chunkLine: 1 << 10, chunkFraming: .max,
        trailers: 16 << 10)

    private var reader = HTTPResponseReader(method: "GET", .strict, limits: limits)
    /// The status code; `nil` before the head is complete.
    package private(set) var status: Int?
    /// Whether the response is complete.
    package private(set) var isComplete = false

    package init() {}

    /// Adds bytes. - Returns: the bytes of the body that are known now.
    package mutating func append(_ bytes: [UInt8]) throws(HTTPResponseReader.Failure) -> [UInt8] {
        var (body, failure) = ([UInt8](), HTTPResponseReader.Failure?.none)
        bytes.withUnsafeBytes { bytes in
            var input = bytes[...]
            do throws(HTTPResponseReader.Failure) {
                while let event = try reader.next(&input) {
                    switch event {
                    case .head(let head): status = head.status
                    case .body(let piece): body.append(contentsOf: piece)
                    case .end: isComplete = true
                    }
                }
            } catch { failure = error }
        }
        if let failure { throw failure }
        return body
    }

    /// Takes the end of the connection. - Returns: whether the response is complete: a body without a length ends here.
    package mutating func isCompleteAtEnd() -> Bool {
        if case .end? = try? reader.endOfInput() { isComplete = true }
        return isComplete
    }
}
