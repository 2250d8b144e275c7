/// The rule by which the end of a body is found (RFC 9112 section 6.3).
enum HTTPFraming: Hashable, Sendable {
    /// The response has no body.
    case none
    /// Content-Length.
    case counted(Int)
    /// Transfer-Encoding ends with `chunked`.
    case chunked
    /// The body ends with the connection.
    case untilClose

    /// The framing of a final response. `toHEAD` is whether the request's method was HEAD.
    ///
    /// A response of HTTP/1.0 may be chunked too: common clients accept it.
    init(of head: HTTPResponseHead, toHEAD: Bool) throws(HTTPExchangeFailure) {
        guard !toHEAD, head.status != 204, head.status != 304 else {
            self = .none
            return
        }
        let codings = head.values(of: "transfer-encoding").flatMap(Self.elements)
        if !codings.isEmpty {
            // `identity` was removed by RFC 7230, and common clients ignore it.
            let used = codings.filter { !HTTPGrammar.isName($0, "identity") }
            let chunked = used.count { HTTPGrammar.isName($0, "chunked") }
            guard chunked <= 1 else { throw .transferEncoding }
            let isLast = used.last.map { HTTPGrammar.isName($0, "chunked") } ?? false
            self = isLast ? .chunked : .untilClose
            return
        }
        let lengths = head.values(of: "content-length")
        guard !lengths.isEmpty else {
            self = .untilClose
            return
        }
        var length: Int?
        for element in lengths.flatMap({ $0.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) }) {
            guard let number = Self.length(HTTPGrammar.trimmed(element)), length == nil || length == number else { throw .length }
            length = number
        }
        // A field without a value has one empty element, which is no number.
        guard let length else { throw .length }
        self = .counted(length)
    }

    /// Returns the elements of a list (RFC 9110 section 5.6.1), without their parameters. Empty elements are removed.
    private static func elements(_ value: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        value.split(separator: UInt8(ascii: ",")).map { element in
            HTTPGrammar.trimmed(element.prefix { $0 != UInt8(ascii: ";") })
        }.filter { !$0.isEmpty }
    }

    private static func length(_ digits: ArraySlice<UInt8>) -> Int? {
        guard !digits.isEmpty, digits.allSatisfy(HTTPGrammar.isDigit) else { return nil }
        return Int(String(decoding: digits, as: UTF8.self))
    }
}
