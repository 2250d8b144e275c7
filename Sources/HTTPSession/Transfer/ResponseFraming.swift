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
            throw ResponseFraming.refusal("a Content-Length or Transfer-Encoding line is malformed", head)
        }
        let length = head.contentLength
        if case .unreadable(let reason) = length { throw ResponseFraming.refusal(reason, head) }
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
    var contentLength: ContentLength { ContentLength(values(of: "content-length")) }

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
        guard bytes.starts(with: Array("HTTP/1.1 ".utf8)) else { return false }
        return !(values(of: "connection") + values(of: "proxy-connection")).contains { value in
            value.split(separator: ",").contains { $0.lowercased().split { $0 == " " || $0 == "\t" } == ["close"] }
        }
    }

    /// Whether a field that frames the body has a space before its colon (RFC 9112 section 5.1), or continues in the next line (section 5.2).
    /// libcurl parses neither correctly.
    fileprivate var hasUnreadableFramingLine: Bool {
        var (isFramingLine, isUnreadable) = (false, false)
        bytes.withUnsafeBufferPointer { bytes in
            ResponseHead.forEachLine(bytes) { line in
                if line[0] == 0x20 || line[0] == 0x09 {
                    isUnreadable = isFramingLine
                } else if line[0] | 0x20 == UInt8(ascii: "c") || line[0] | 0x20 == UInt8(ascii: "t") {
                    let name = line.prefix { $0 != 0x3A }
                    let word = String(decoding: name.prefix { $0 > 0x20 }, as: UTF8.self).lowercased()
                    isFramingLine = name.count < line.count && (word == "content-length" || word == "transfer-encoding")
                    isUnreadable = isFramingLine && word.utf8.count != name.count
                } else {
                    isFramingLine = false
                }
                return !isUnreadable
            }
        }
        return isUnreadable
    }
}
