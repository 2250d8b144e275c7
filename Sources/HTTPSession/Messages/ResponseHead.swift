internal import Glibc
public import HTTPTypes
internal import Wire

/// The status line and the fields of a response. They are stored as received and parsed on access, because most fields of most
/// responses are never read.
public struct ResponseHead: Hashable, Sendable {
    /// The status code (RFC 9110 section 15).
    public let statusCode: Int
    /// The status line and the field lines as received. HTTP/2 has no reason phrase.
    package let bytes: [UInt8]
    private let names: FieldNameFilter

    /// A head of lines that end in CRLF or LF, the status line first; `nil` if its status does not have three digits.
    package init?(bytes: [UInt8]) {
        guard let code = ResponseHead.statusCode(of: bytes) else { return nil }
        statusCode = code
        self.bytes = bytes
        names = FieldNameFilter(bytes)
    }

    /// Creates a head with these values, for a test or another transport.
    ///
    /// - Parameter response: The status, the reason phrase and the header fields. A status outside of 100 to 999 becomes 500.
    public init(_ response: HTTPResponse) {
        let code = (100...999).contains(response.status.code) ? response.status.code : 500
        var text = "HTTP/1.1 \(code) \(response.status.reasonPhrase)\r\n"
        for field in response.headerFields { text += "\(field.name.rawName): \(field.value)\r\n" }
        statusCode = code
        bytes = Array((text + "\r\n").utf8)
        names = FieldNameFilter(bytes)
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

    /// The field's first value, trimmed, without parsing other fields. The name is in lower case.
    package func firstValue(of name: StaticString) -> String? {
        var first: String?
        forEachValue(of: name) { value in
            first = ResponseHead.text(value)
            return false
        }
        return first
    }

    /// The field's values in order, one for each line.
    package func values(of name: StaticString, limit: Int = .max) -> [String] {
        var values: [String] = []
        forEachValue(of: name) { value in
            values.append(ResponseHead.text(value))
            return values.count < limit
        }
        return values
    }

    /// Whether the field's first value has exactly the bytes of a text; `nil` if the field is absent. A text from ``firstValue(of:)`` may have
    /// other bytes than the field, because it repairs them.
    func firstValue(of name: StaticString, isExactly text: String) -> Bool? {
        var isSame: Bool?
        forEachValue(of: name) { value in
            isSame = ResponseHead.withoutBlanks(value).elementsEqual(text.utf8)
            return false
        }
        return isSame
    }

    /// The field's first value as a URI reference. If it is not UTF-8, its bytes beyond ASCII are percent-encoded as they were received (RFC 3986
    /// section 2.1): a repaired reference would lead to another resource.
    package func firstReference(of name: StaticString) -> String? {
        var reference: String?
        forEachValue(of: name) { value in
            let bytes = ResponseHead.withoutBlanks(value)
            reference =
                String(validating: bytes, as: UTF8.self) == nil
                ? ResponseHead.text(Array(PercentEncoding.encode(bytes) { $0 >= 0x80 }.utf8)) : ResponseHead.text(value)
            return false
        }
        return reference
    }

    /// The field's values in order, one for each line. A value that is not UTF-8 is read as ISO 8859-1, as HTTP once defined it (RFC 9110 section
    /// 5.5), so that values of different bytes stay different.
    func distinctValues(of name: StaticString, limit: Int = .max) -> [(text: String, isLatin1: Bool)] {
        var values: [(String, Bool)] = []
        forEachValue(of: name) { value in
            let bytes = ResponseHead.withoutBlanks(value)
            let isLatin1 = String(validating: bytes, as: UTF8.self) == nil
            let text =
                isLatin1
                ? ResponseHead.text(Array(String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) })).utf8))
                : ResponseHead.text(value)
            values.append((text, isLatin1))
            return values.count < limit
        }
        return values
    }

    /// Whether lines of this field differ in a byte. A field that may have only one value is then invalid (RFC 9110 section 5.3).
    package func hasDifferentValues(of name: StaticString) -> Bool {
        // A part of the head's bytes, which do not move during the loop.
        var first: UnsafeBufferPointer<UInt8>?
        var differs = false
        forEachValue(of: name) { value in
            let value = ResponseHead.withoutBlanks(value)
            guard let first else {
                first = value
                return true
            }
            differs = !first.elementsEqual(value)
            return !differs
        }
        return differs
    }

    /// Whether the field is present, whatever its value.
    package func has(_ name: StaticString) -> Bool {
        var isPresent = false
        forEachValue(of: name) { _ in
            isPresent = true
            return false
        }
        return isPresent
    }

    /// Whether a list (RFC 9110 section 5.6.1) has an element, in any case. `element` and `name` are in lower case.
    func hasElement(_ element: StaticString, in name: StaticString) -> Bool {
        var isPresent = false
        forEachValue(of: name) { value in
            var remaining = value[...]
            while !isPresent, !remaining.isEmpty {
                let end = remaining.firstIndex(of: 0x2C) ?? remaining.endIndex
                let text = ResponseHead.trimmed(remaining[..<end])
                isPresent = text.count == element.utf8CodeUnitCount && ResponseHead.begins(text, with: element)
                remaining = remaining[end...].dropFirst()
            }
            return !isPresent
        }
        return isPresent
    }

    /// Bytes without the whitespace around them, and without bare CR and NUL, which count as whitespace.
    private static func trimmed(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> UnsafeBufferPointer<UInt8> {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x00 }
        var (start, end) = (bytes.startIndex, bytes.endIndex)
        while start < end, isBlank(bytes[start]) { start += 1 }
        while end > start, isBlank(bytes[end - 1]) { end -= 1 }
        return UnsafeBufferPointer(rebasing: bytes[start..<end])
    }

    /// Whether the response is HTTP/1.1 (RFC 9112 section 4).
    var isHTTP11: Bool { bytes.withUnsafeBufferPointer { ResponseHead.begins($0, with: "http/1.1 ") } }

    /// Whether the name of a line has whitespace or control characters around or in it (RFC 9112 section 5.1), or a line continues the one before
    /// it (section 5.2).
    var hasBlankInName: Bool { names.hasBlank }

    /// Calls `body` with each value of the field, without its name and the colon, until it returns `false`.
    func forEachValue(of name: StaticString, _ body: (UnsafeBufferPointer<UInt8>) -> Bool) {
        let nameBytes = UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        guard names.mayContain(nameBytes) else { return }
        bytes.withUnsafeBufferPointer { bytes in
            ResponseHead.forEachLine(bytes) { line in
                guard ResponseHead.line(line, isOf: nameBytes) else { return true }
                return body(UnsafeBufferPointer(rebasing: line[(nameBytes.count + 1)...]))
            }
        }
    }

    /// The head of the complete representation, if this one (304 or 416) confirms that no byte is missing. It has status 200 and
    /// this one's fields (RFC 9111 section 4.3.4) except those that describe its own content.
    package var completeRepresentation: ResponseHead? {
        var lines = Array("HTTP/1.1 200 OK\r\n".utf8)
        let others = ["content-length", "content-range", "content-type", "content-encoding", "transfer-encoding"]
        bytes.withUnsafeBufferPointer { bytes in
            ResponseHead.forEachLine(bytes) { line in
                let name = String(decoding: line.prefix { $0 != 0x3A }, as: UTF8.self).lowercased()
                if !others.contains(name) { lines += Array(line) + [0x0D, 0x0A] }
                return true
            }
        }
        return ResponseHead(bytes: lines + [0x0D, 0x0A])
    }

    /// The length of the body as it is delivered; `nil` if the head does not state it, if there is no body, or if decoding
    /// changes it.
    package var bodyLength: Int64? {
        guard statusCode != 204, statusCode != 304, case .bytes(let length) = contentLength, !has("content-encoding"),
            !has("transfer-encoding")
        else { return nil }
        return length
    }

    /// All fields in order. Invalid field lines (RFC 9112 section 5) are left out.
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

    /// The reason phrase; empty if there is none. Control characters, which a valid phrase does not contain (RFC 9112 section 4),
    /// become spaces, because phrases are printed on terminals as parts of errors.
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

    /// Calls `body` with each line behind the status line, without its end, until it returns `false`.
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

    /// Whether the line is a field with this name, which is in lower case.
    private static func line(_ line: UnsafeBufferPointer<UInt8>, isOf name: UnsafeBufferPointer<UInt8>) -> Bool {
        line.count > name.count && line[name.count] == 0x3A && begins(line, with: name)
    }

    /// Whether bytes begin with a word in any case. `word` is in lower case.
    static func begins(_ bytes: UnsafeBufferPointer<UInt8>, with word: StaticString) -> Bool {
        begins(bytes, with: UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }

    private static func begins(_ bytes: UnsafeBufferPointer<UInt8>, with word: UnsafeBufferPointer<UInt8>) -> Bool {
        guard bytes.count >= word.count else { return false }
        for index in word.indices {
            let byte = bytes[index]
            guard (byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte) == word[index] else { return false }
        }
        return true
    }

    // Bytes beyond ASCII are obs-text (RFC 9110 section 5.5). They are decoded as UTF-8, and invalid ones are repaired.
    private static func text(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        let value = withoutBlanks(bytes)
        // Values reach servers and callers, so they contain neither a bare CR (RFC 9112 section 2.2) nor a NUL (RFC 9110 section
        // 5.5).
        guard value.contains(where: { $0 == 0x0D || $0 == 0x00 }) else { return String(decoding: value, as: UTF8.self) }
        return String(decoding: value.map { $0 == 0x0D || $0 == 0x00 ? 0x20 : $0 }, as: UTF8.self)
    }

    private static func text(_ bytes: [UInt8]) -> String { bytes.withUnsafeBufferPointer(text) }

    /// The bytes of a value without the whitespace around it.
    private static func withoutBlanks(_ bytes: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
        var (start, end) = (0, bytes.count)
        while start < end, bytes[start] == 0x20 || bytes[start] == 0x09 { start += 1 }
        while end > start, bytes[end - 1] == 0x20 || bytes[end - 1] == 0x09 || bytes[end - 1] == 0x0D { end -= 1 }
        return UnsafeBufferPointer(rebasing: bytes[start..<end])
    }

    /// Whether a field's value contains a control byte other than the tab. libcurl quotes parts of a challenge in its answer.
    func hasControlByte(in name: StaticString) -> Bool {
        var isFound = false
        forEachValue(of: name) { value in
            isFound = value.contains { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }
            return !isFound
        }
        return isFound
    }
}
