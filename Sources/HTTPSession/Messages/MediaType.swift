internal import Wire

/// A media type: `type/subtype` and its parameters (RFC 9110 section 8.3.1).
public struct MediaType: Hashable, Sendable, CustomStringConvertible {
    /// The `type/subtype` in lower case, without parameters.
    public let essence: String
    /// The parameters by name in lower case. If a name is repeated, its first parameter counts.
    public let parameters: [String: String]

    /// Parses the value of a `Content-Type`; `nil` if the value does not begin with `type/subtype`. Invalid parameters are ignored.
    public init?(_ text: String) {
        // By bytes: every response is asked for its type, and characters cost many times as much.
        let end = text.utf8.firstIndex(of: UInt8(ascii: ";")) ?? text.endIndex
        let essence = text[..<end].trimmingSpaces().lowercased()
        guard let slash = essence.utf8.firstIndex(of: UInt8(ascii: "/")), essence[..<slash].isToken,
            essence[essence.utf8.index(after: slash)...].isToken
        else { return nil }
        self.essence = essence
        parameters = Self.parameters(text[end...])
    }

    /// The media type as a field value.
    public var description: String {
        parameters.sorted { $0.key < $1.key }.reduce(essence) { text, parameter in
            let needsQuotes = !Substring(parameter.value).isToken
            let escaped = parameter.value.flatMap { $0 == "\"" || $0 == "\\" ? ["\\", $0] : [$0] }
            return "\(text); \(parameter.key)=\(needsQuotes ? "\"\(String(escaped))\"" : parameter.value)"
        }
    }

    /// Returns whether the media type matches `range`: `type/subtype`, `type/*` or `*/*`. Parameters are ignored.
    public func matches(_ range: String) -> Bool {
        let range = range.prefix { $0 != ";" }.trimmingSpaces().lowercased()
        if range == "*/*" || range == essence { return true }
        guard range.hasSuffix("/*") else { return false }
        return essence.hasPrefix(range.dropLast())
    }

    private static func parameters(_ text: Substring) -> [String: String] {
        var parameters: [String: String] = [:]
        var rest = text
        while let semicolon = rest.firstIndex(of: ";") {
            rest = rest[rest.index(after: semicolon)...].drop { $0 == " " || $0 == "\t" }
            let name = rest.prefix { $0 != "=" && $0 != ";" }
            rest = rest.dropFirst(name.count)
            guard rest.first == "=" else { continue }
            rest = rest.dropFirst()
            let value: String
            if rest.first == "\"" {
                value = quoted(&rest)
            } else {
                let plain = rest.prefix { $0 != ";" }
                rest = rest.dropFirst(plain.count)
                value = String(plain.trimmingSpaces())
            }
            let key = name.trimmingSpaces().lowercased()
            if Substring(key).isToken && !value.isEmpty && parameters[key] == nil { parameters[key] = value }
        }
        return parameters
    }

    /// Returns a quoted string without its quotes and escapes. If the closing quote is missing, the string ends with the text.
    private static func quoted(_ rest: inout Substring) -> String {
        var value = ""
        rest = rest.dropFirst()
        while let character = rest.popFirst(), character != "\"" {
            if character == "\\", let escaped = rest.popFirst() {
                value.append(escaped)
            } else {
                value.append(character)
            }
        }
        return value
    }
}

extension Substring {
    fileprivate var isToken: Bool { HTTPGrammar.isToken(utf8) }

    fileprivate func trimmingSpaces() -> Substring {
        var bytes = utf8
        while let last = bytes.last, last == 0x20 || last == 0x09 { bytes.removeLast() }
        return Substring(bytes.drop { $0 == 0x20 || $0 == 0x09 })
    }
}
