internal import Glibc
public import HTTPTypes

/// A response's status line and fields, kept as they came and read when somebody asks: most fields of most responses are never read.
public struct ResponseHead: Hashable, Sendable {
    /// RFC 9110 section 15.
    public let statusCode: Int
    /// The status line and the field lines, as received; HTTP/2 has no reason phrase.
    package let bytes: [UInt8]

    /// Lines that end in CRLF or LF, the first being the status line; `nil` when that has no status of three digits.
    package init?(bytes: [UInt8]) {
        guard let code = ResponseHead.statusCode(of: bytes) else { return nil }
        statusCode = code
        self.bytes = bytes
    }

    /// A head with these values, as a test or another transport makes it.
    ///
    /// - Parameter response: The status, the reason phrase and the header fields. A status outside of 100 to 999 becomes 500.
    public init(_ response: HTTPResponse) {
        let code = (100...999).contains(response.status.code) ? response.status.code : 500
        var text = "HTTP/1.1 \(code) \(response.status.reasonPhrase)\r\n"
        for field in response.headerFields { text += "\(field.name.rawName): \(field.value)\r\n" }
        statusCode = code
        bytes = Array((text + "\r\n").utf8)
    }

    private static func statusCode(of bytes: [UInt8]) -> Int? {
        // `HTTP/1.1 200 OK`, `HTTP/2 200 `: three digits after the first space (RFC 9112 section 4).
        guard let space = bytes.firstIndex(of: 0x20), bytes.count >= space + 4 else { return nil }
        var code = 0
        for byte in bytes[(space + 1)...(space + 3)] {
            guard byte >= 0x30, byte <= 0x39 else { return nil }
            code = code * 10 + Int(byte - 0x30)
        }
        return code
    }

    /// The field's first value, trimmed; the name in lower case. Without building all the others.
    package func firstValue(of name: StaticString) -> String? {
        var first: String?
        forEachValue(of: name) { value in
            first = ResponseHead.text(value)
            return false
        }
        return first
    }

    /// The field's values in their order, one for each line.
    package func values(of name: StaticString, limit: Int = .max) -> [String] {
        var values: [String] = []
        forEachValue(of: name) { value in
            values.append(ResponseHead.text(value))
            return values.count < limit
        }
        return values
    }

    /// Whether lines of this field differ. One that has a single value then says nothing (RFC 9110 section 5.3).
    package func hasDifferentValues(of name: StaticString) -> Bool {
        let values = values(of: name)
        return values.contains { $0 != values[0] }
    }

    /// Whether there is such a field, whatever its value.
    package func has(_ name: StaticString) -> Bool {
        var isThere = false
        forEachValue(of: name) { _ in
            isThere = true
            return false
        }
        return isThere
    }

    /// Until `body` wants no more.
    private func forEachValue(of name: StaticString, _ body: (UnsafeBufferPointer<UInt8>) -> Bool) {
        let wanted = UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        bytes.withUnsafeBufferPointer { bytes in
            ResponseHead.forEachLine(bytes) { line in
                guard ResponseHead.line(line, isOf: wanted) else { return true }
                return body(UnsafeBufferPointer(rebasing: line[(wanted.count + 1)...]))
            }
        }
    }

    /// The head of the whole representation, where this one (304 or 416) says that nothing of it is missing: status 200 with this one's fields
    /// (RFC 9111 section 4.3.4), but for those of its own content.
    package var ofWhole: ResponseHead? {
        var whole = Array("HTTP/1.1 200 OK\r\n".utf8)
        let others = ["content-length", "content-range", "content-type", "content-encoding", "transfer-encoding"]
        bytes.withUnsafeBufferPointer { bytes in
            ResponseHead.forEachLine(bytes) { line in
                let name = String(decoding: line.prefix { $0 != 0x3A }, as: UTF8.self).lowercased()
                if !others.contains(name) { whole += Array(line) + [0x0D, 0x0A] }
                return true
            }
        }
        return ResponseHead(bytes: whole + [0x0D, 0x0A])
    }

    /// The length of the body as it will be handed on; `nil` if the head does not give it, if there is no body, or if decoding changes it.
    package var bodyLength: Int64? {
        guard statusCode != 204, statusCode != 304, case .bytes(let length) = contentLength, !has("content-encoding"),
            !has("transfer-encoding")
        else { return nil }
        return length
    }

    /// Every field, in its order. Lines that are no fields (RFC 9112 section 5) are left out.
    public var headerFields: HTTPFields {
        var fields = HTTPFields()
        bytes.withUnsafeBufferPointer { bytes in
            ResponseHead.forEachLine(bytes) { line in
                guard let colon = line.firstIndex(of: 0x3A),
                    let name = HTTPField.Name(String(decoding: line[..<colon], as: UTF8.self))
                else { return true }
                fields.append(
                    HTTPField(name: name, value: ResponseHead.text(UnsafeBufferPointer(rebasing: line[(colon + 1)...]))))
                return true
            }
        }
        return fields
    }

    /// The status, the reason phrase and the header fields.
    public var httpResponse: HTTPResponse {
        HTTPResponse(
            status: .init(code: statusCode, reasonPhrase: reasonPhrase), headerFields: headerFields)
    }

    /// The reason phrase, or nothing. Control characters, which no phrase has (RFC 9112 section 4), are spaces in it: phrases end up in
    /// errors, and those on terminals.
    public var reasonPhrase: String {
        let line = bytes.prefix { $0 != 0x0D && $0 != 0x0A }
        let parts = line.split(separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return "" }
        return parts[2].map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 }.withUnsafeBufferPointer(ResponseHead.text)
    }

    /// The media type of the body; `nil` if the response has none, or one that cannot be parsed.
    public var mediaType: MediaType? {
        // The last of several fields counts (Fetch standard, "extract a MIME type").
        values(of: "content-type").last.flatMap(MediaType.init)
    }

    /// The lines behind the status line, without their ends, until `body` wants no more.
    static func forEachLine(_ bytes: UnsafeBufferPointer<UInt8>, _ body: (UnsafeBufferPointer<UInt8>) -> Bool) {
        var start = endOfLine(bytes, from: 0) + 1
        while start < bytes.count {
            let end = endOfLine(bytes, from: start)
            let length = end > start && bytes[end - 1] == 0x0D ? end - 1 - start : end - start
            if length > 0, !body(UnsafeBufferPointer(rebasing: bytes[start..<(start + length)])) { return }
            start = end + 1
        }
    }

    private static func endOfLine(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        guard let base = bytes.baseAddress, let found = memchr(base + start, 0x0A, bytes.count - start) else {
            return bytes.count
        }
        return UnsafeRawPointer(base).distance(to: found)
    }

    /// Whether the line is a field of this name, given in lower case.
    private static func line(_ line: UnsafeBufferPointer<UInt8>, isOf name: UnsafeBufferPointer<UInt8>) -> Bool {
        guard line.count > name.count, line[name.count] == 0x3A else { return false }
        for index in name.indices {
            let byte = line[index]
            guard (byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte) == name[index] else { return false }
        }
        return true
    }

    // Bytes beyond ASCII are obs-text (RFC 9110 section 5.5): UTF-8 where they are, else repaired.
    private static func text(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        var (start, end) = (0, bytes.count)
        while start < end, bytes[start] == 0x20 || bytes[start] == 0x09 { start += 1 }
        while end > start, [0x20, 0x09, 0x0D].contains(bytes[end - 1]) { end -= 1 }
        let value = UnsafeBufferPointer(rebasing: bytes[start..<end])
        // What returns to a server or reaches a caller has neither a bare CR (RFC 9112 section 2.2) nor a NUL (RFC 9110 section 5.5).
        guard value.contains(where: { $0 == 0x0D || $0 == 0x00 }) else { return String(decoding: value, as: UTF8.self) }
        return String(decoding: value.map { $0 == 0x0D || $0 == 0x00 ? 0x20 : $0 }, as: UTF8.self)
    }

    /// Whether a field's value has a control byte other than the tab. libcurl quotes what a challenge says in its answer.
    func hasControlByte(in name: StaticString) -> Bool {
        var isFound = false
        forEachValue(of: name) { value in
            isFound = value.contains { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }
            return !isFound
        }
        return isFound
    }
}
