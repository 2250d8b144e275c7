import FoundationEssentials
import HTTPTypes

/// One part of a form: its header as it is sent, and what follows.
struct MultipartPart: Sendable {
    /// With the empty line that ends it.
    let header: Data
    let content: BodySegment

    /// A part of a form, with `Content-Disposition` and, where given, `Content-Type`.
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

    /// A part whose fields the caller has chosen.
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

    /// The HTML standard's rule: a quotation mark, a line feed and a carriage return become `%22`, `%0A` and `%0D`. Other control
    /// characters, of which it says nothing, are escaped in the same way: no field has them. A field's name (not a file's) has each of its line breaks made CRLF before.
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
