public import HTTPTypes

/// A response's status line and fields, kept as they came and read when somebody asks: most fields of most responses are never read.
public struct ResponseHead: Hashable, Sendable {
    /// RFC 9110 section 15.
    public let statusCode: Int
    /// The status line and the field lines, as received; HTTP/2 has no reason phrase.
    package let bytes: [UInt8]

    /// - Parameter bytes: lines that end in CRLF or LF, the first being the status line.
    /// - Returns: `nil` when there is no status line with three digits.
    package init?(bytes: [UInt8]) {
        guard let code = ResponseHead.statusCode(of: bytes) else { return nil }
        statusCode = code
        self.bytes = bytes
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
        values(of: name, limit: 1).first
    }

    /// The field's values in their order, one for each line.
    package func values(of name: StaticString, limit: Int = .max) -> [String] {
        var values: [String] = []
        forEachLine { line in
            guard values.count < limit, line.count > name.utf8CodeUnitCount, line[line.startIndex + name.utf8CodeUnitCount] == 0x3A
            else { return }
            let matches = name.withUTF8Buffer { wanted in
                zip(line, wanted).allSatisfy { byte, other in (byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte) == other }
            }
            if matches { values.append(ResponseHead.text(line[(line.startIndex + name.utf8CodeUnitCount + 1)...])) }
        }
        return values
    }

    /// Every field, in its order. Lines that are no fields (RFC 9112 section 5) are left out.
    public var headerFields: HTTPFields {
        var fields = HTTPFields()
        forEachLine { line in
            guard let colon = line.firstIndex(of: 0x3A),
                let name = HTTPField.Name(String(decoding: line[..<colon], as: UTF8.self))
            else { return }
            fields.append(HTTPField(name: name, value: ResponseHead.text(line[(colon + 1)...])))
        }
        return fields
    }

    /// Status, reason phrase and fields.
    public var response: HTTPResponse {
        HTTPResponse(
            status: .init(code: statusCode, reasonPhrase: reasonPhrase), headerFields: headerFields)
    }

    /// The reason phrase, or nothing.
    public var reasonPhrase: String {
        let line = bytes.prefix { $0 != 0x0D && $0 != 0x0A }
        let parts = line.split(separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false)
        return parts.count == 3 ? ResponseHead.text(parts[2]) : ""
    }

    /// The media type's text before any parameter, in lower case.
    public var mediaType: String? {
        firstValue(of: "content-type").map {
            String($0.prefix { $0 != ";" }).trimmingSuffix { $0 == " " || $0 == "\t" }.lowercased()
        }
    }

    private func forEachLine(_ body: (ArraySlice<UInt8>) -> Void) {
        var start = bytes.firstIndex(of: 0x0A).map { $0 + 1 } ?? bytes.endIndex
        while start < bytes.endIndex {
            let end = bytes[start...].firstIndex(of: 0x0A) ?? bytes.endIndex
            var line = bytes[start..<end]
            if line.last == 0x0D { line.removeLast() }
            if !line.isEmpty { body(line) }
            start = end + 1
        }
    }

    // Bytes beyond ASCII are obs-text (RFC 9110 section 5.5): UTF-8 where they are, else repaired.
    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        var bytes = bytes
        while let first = bytes.first, first == 0x20 || first == 0x09 { bytes.removeFirst() }
        while let last = bytes.last, last == 0x20 || last == 0x09 || last == 0x0D { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension String {
    fileprivate func trimmingSuffix(_ isDropped: (Character) -> Bool) -> String {
        var text = self
        while let last = text.last, isDropped(last) { text.removeLast() }
        return text
    }
}
