import FoundationEssentials
import HTTPTypes

/// A part of a form: its header as it is sent, and its content.
struct MultipartPart: Sendable {
    /// The header fields, with the empty line that ends them.
    let header: Data
    let content: BodySegment

    /// Creates a part with `Content-Disposition`, and with `Content-Type` if there is a type.
    init(name: String, fileName: String?, mimeType: String?, content: BodySegment) throws(HTTPSessionError) {
        var disposition = "form-data; name=\"\(try Self.escape(name, normalizingLineBreaks: true))\""
        if let fileName {
            disposition += "; filename=\"\(try Self.escape(fileName, normalizingLineBreaks: false))\""
        }
        var header = "Content-Disposition: \(disposition)\r\n"
        if let mimeType {
            try HTTPFields.checkValue(mimeType, of: "a part's Content-Type")
            header += "Content-Type: \(mimeType)\r\n"
        }
        self.header = Data("\(header)\r\n".utf8)
        self.content = content
    }

    /// Creates a part with header fields of the caller's.
    init(headers: HTTPFields, content: BodySegment) {
        var header = Data()
        for field in headers {
            header += Data("\(field.name.rawName): ".utf8)
            field.withUnsafeBytesOfValue { header.append(contentsOf: $0) }
            header += Data("\r\n".utf8)
        }
        self.header = header + Data("\r\n".utf8)
        self.content = content
    }

    /// Escapes a name by the HTML standard: a quotation mark, a line feed and a carriage return become `%22`, `%0A` and `%0D`. Other control characters
    /// are escaped in the same way, because no header field may have them. The line breaks of a field's name, not of a file's, become CRLF first.
    private static func escape(_ text: String, normalizingLineBreaks: Bool) throws(HTTPSessionError) -> String {
        guard !text.utf8.contains(0) else {
            throw HTTPSessionError(.invalidRequest, "the name of a part has NUL in it")
        }
        var escaped = ""
        var previous: Unicode.Scalar?
        let scalars = Array(text.unicodeScalars)
        for (place, scalar) in scalars.enumerated() {
            switch scalar {
            case "\"": escaped += "%22"
            case "\r":
                escaped += "%0D"
                let isBare = place + 1 == scalars.count || scalars[place + 1] != "\n"
                if normalizingLineBreaks && isBare { escaped += "%0A" }
            case "\n": escaped += normalizingLineBreaks && previous != "\r" ? "%0D%0A" : "%0A"
            case "\u{1}"..."\u{1F}", "\u{7F}":
                escaped += "%" + (scalar.value < 0x10 ? "0" : "") + String(scalar.value, radix: 16, uppercase: true)
            default: escaped.unicodeScalars.append(scalar)
            }
            previous = scalar
        }
        return escaped
    }
}
