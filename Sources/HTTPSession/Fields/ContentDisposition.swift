internal import FoundationEssentials
internal import Wire

/// The `Content-Disposition` field (RFC 6266): the file name that a server suggests for its response.
package enum ContentDisposition {
    /// The file name that a response suggests; `nil` if there is none, or if there are several fields.
    static func fileName(of head: ResponseHead) -> String? {
        let fields = head.values(of: "content-disposition", limit: 2)
        return fields.count == 1 ? fileName(fields[0]) : nil
    }

    /// The last path component of the name in a field's value; `nil` if there is no name, if the name ends with a slash, `.` or
    /// `..`, or if the field is malformed. `filename*` (RFC 8187, in UTF-8 or ISO-8859-1) takes precedence over `filename`.
    ///
    /// The name is unchanged: it may contain control characters, begin with a hyphen, and have any length.
    package static func fileName(_ text: String) -> String? {
        guard let parameters = parameters(Array(text.unicodeScalars)) else { return nil }
        let names = [parameters["filename*"].flatMap { $0.isQuoted ? nil : extended($0.text) }, parameters["filename"]?.text]
        for name in names {
            guard
                let last = name?.unicodeScalars.split(
                    omittingEmptySubsequences: false, whereSeparator: { "/\\".unicodeScalars.contains($0) }
                ).last
            else { continue }
            let component = String(last)
            if !component.isEmpty, component != ".", component != ".." { return component }
        }
        return nil
    }

    private struct Value {
        var text: String
        var isQuoted: Bool
    }

    /// The parameters behind the disposition type, with names in lower case; `nil` if they are malformed or repeated (section
    /// 4.1).
    private static func parameters(_ scalars: [Unicode.Scalar]) -> [String: Value]? {
        var reader = Reader(scalars: scalars)
        reader.skipSpace()
        guard reader.token() != nil else { return nil }
        var parameters: [String: Value] = [:]
        while true {
            reader.skipSpace()
            guard let scalar = reader.next() else { return parameters }
            guard scalar == ";" else { return nil }
            reader.skipSpace()
            // Many servers end the field with a semicolon.
            if reader.peek == nil || reader.peek == ";" { continue }
            guard let name = reader.token()?.lowercased() else { return nil }
            reader.skipSpace()
            guard reader.next() == "=" else { return nil }
            reader.skipSpace()
            guard let value = reader.value(), parameters.updateValue(value, forKey: name) == nil else { return nil }
        }
    }

    /// The text of `charset'language'value` (RFC 8187 section 3.2.1); `nil` if it is malformed or has another charset.
    private static func extended(_ text: String) -> String? {
        let parts = text.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        var bytes: [UInt8] = []
        var remaining = Substring(parts[2]).utf8[...]
        while let byte = remaining.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                guard HTTPGrammar.isTokenByte(byte), !"*'".utf8.contains(byte) else { return nil }
                bytes.append(byte)
                continue
            }
            guard let high = remaining.popFirst().flatMap(HTTPGrammar.hexadecimalValue),
                let low = remaining.popFirst().flatMap(HTTPGrammar.hexadecimalValue)
            else {
                return nil
            }
            bytes.append(UInt8(high << 4 | low))
        }
        return switch parts[0].lowercased() {
        case "utf-8": String(validating: bytes, as: UTF8.self)
        case "iso-8859-1": String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        default: nil
        }
    }

    private struct Reader {
        let scalars: [Unicode.Scalar]
        private var position = 0

        init(scalars: [Unicode.Scalar]) { self.scalars = scalars }

        var peek: Unicode.Scalar? { position < scalars.count ? scalars[position] : nil }

        mutating func next() -> Unicode.Scalar? {
            defer { position += 1 }
            return peek
        }

        mutating func skipSpace() {
            while let scalar = peek, scalar == " " || scalar == "\t" { position += 1 }
        }

        /// A token (RFC 9110 section 5.6.2).
        mutating func token() -> String? {
            let start = position
            while let scalar = peek, scalar.isASCII, HTTPGrammar.isTokenByte(UInt8(scalar.value)) { position += 1 }
            return start == position ? nil : text(start..<position)
        }

        /// A quoted string (RFC 9110 section 5.6.4), or all text before the next semicolon, because unquoted names with spaces
        /// and non-ASCII letters are common. `nil` if the quotes do not end or the text is empty.
        mutating func value() -> Value? {
            guard peek == "\"" else {
                let start = position
                while let scalar = peek, scalar != ";" { position += 1 }
                var end = position
                while end > start, scalars[end - 1] == " " || scalars[end - 1] == "\t" { end -= 1 }
                return start == end ? nil : Value(text: text(start..<end), isQuoted: false)
            }
            position += 1
            var text = String.UnicodeScalarView()
            while let scalar = next() {
                if scalar == "\"" { return Value(text: String(text), isQuoted: true) }
                guard scalar == "\\" else {
                    text.append(scalar)
                    continue
                }
                guard let escaped = next() else { return nil }
                text.append(escaped)
            }
            return nil
        }

        private func text(_ range: Range<Int>) -> String { String(String.UnicodeScalarView(scalars[range])) }
    }
}
