internal import Wire

/// The rule by which a response's body ends (RFC 9112 section 6.3).
package enum ResponseFraming: Hashable, Sendable {
    case noBody
    case length(Int64)
    case chunked
    /// The end of an HTTP/2 stream.
    case stream
    /// The end of the connection, which TLS has to confirm by close_notify (RFC 9112 section 9.8).
    case untilClose

    /// The framing of the final response to a request with `method`. Throws ``HTTPSessionError/Code/badServerResponse`` if the length of
    /// its body cannot be known.
    package init(_ head: ResponseHead, method: String) throws(HTTPSessionError) {
        if method == "HEAD" || head.statusCode == 204 || head.statusCode == 304 {
            self = .noBody
            return
        }
        if head.hasUnreadableFramingLine {
            throw ResponseFraming.refusal("a Content-Length, Transfer-Encoding or Content-Encoding line is malformed", head)
        }
        let length = head.contentLength
        switch length {
        case .malformed:
            throw ResponseFraming.refusal("the Content-Length \(excerpt(of: head.malformedLength)) is no number of bytes", head)
        case .conflicting: throw ResponseFraming.refusal("the response has several different Content-Length values", head)
        case .absent, .bytes: break
        }
        if head.isMultiplexed {
            self = .stream
        } else if head.isChunked {
            self = .chunked
        } else if case .bytes(let count) = length, !head.has("transfer-encoding") {
            self = .length(count)
        } else {
            self = .untilClose
        }
    }

    private static func refusal(_ reason: String, _ head: ResponseHead) -> HTTPSessionError {
        HTTPSessionError(.badServerResponse, reason, context: .init(statusCode: head.statusCode))
    }
}

extension ResponseHead {
    var contentLength: ContentLength {
        var (count, length) = (0, Int64?.none)
        forEachValue(of: "content-length") { value in
            count += 1
            length = ContentLength.number(value)
            return count == 1
        }
        if count == 1, let length { return .bytes(length) }
        return count == 0 ? .absent : ContentLength(values(of: "content-length").map(\.utf8))
    }

    /// The first value of Content-Length that is no number of bytes.
    fileprivate var malformedLength: String {
        values(of: "content-length").first { ContentLength([$0.utf8]) == .malformed } ?? ""
    }

    /// Whether the response uses HTTP/2 or newer: `HTTP/2 200`.
    fileprivate var isMultiplexed: Bool { bytes.count > 5 && (bytes[5] == 0x32 || bytes[5] == 0x33) }

    /// Whether libcurl reads the body in chunks. It does so if any transfer coding has this name, not only the last.
    fileprivate var isChunked: Bool {
        values(of: "transfer-encoding").contains { value in
            value.split(separator: ",").contains {
                $0.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }.lowercased() == "chunked"
            }
        }
    }

    /// Whether two recipients may disagree about the end of the body (RFC 9112 section 6.1). The connection then carries no further request.
    var hasAmbiguousFraming: Bool { !isMultiplexed && has("content-length") && has("transfer-encoding") }

    /// Whether the connection may carry another request (RFC 9112 section 9.3).
    var keepsConnection: Bool {
        isHTTP11 && !hasElement("close", in: "connection") && !hasElement("close", in: "proxy-connection")
    }

    /// The fields that say how the body is read.
    private static let framingNames: [StaticString] = ["content-length", "transfer-encoding", "content-encoding"]

    /// Whether a line begins with the name of a field that says how the body is read.
    static func isFramingLine(_ line: ArraySlice<UInt8>) -> Bool {
        line.withUnsafeBufferPointer { line in framingNames.contains { begins(line, with: $0) } }
    }

    /// Whether a field that frames the body, or names its coding, has a space before its colon (RFC 9112 section 5.1), or continues in the next line (section 5.2).
    /// libcurl parses neither correctly.
    fileprivate var hasUnreadableFramingLine: Bool {
        guard hasBlankInName else { return false }
        var (isFramingLine, isUnreadable) = (false, false)
        bytes.withUnsafeBufferPointer { bytes in
            ResponseHead.forEachLine(bytes) { line in
                if line[0] == 0x20 || line[0] == 0x09 {
                    isUnreadable = isFramingLine
                } else {
                    (isFramingLine, isUnreadable) = ResponseHead.framing(of: line)
                }
                return !isUnreadable
            }
        }
        return isUnreadable
    }

    /// Whether a field line frames the body, and whether something is between the name and its colon.
    private static func framing(of line: UnsafeBufferPointer<UInt8>) -> (isFraming: Bool, isUnreadable: Bool) {
        for name in framingNames where begins(line, with: name) {
            let end = name.utf8CodeUnitCount
            if line.count > end, line[end] == 0x3A { return (true, false) }
            if line.count > end, line[end] <= 0x20, line[end...].contains(0x3A) { return (true, true) }
        }
        return (false, false)
    }
}
