internal import ByteComparison
import FoundationEssentials
public import HTTPTypes
internal import Reachability

extension HTTPFields {
    /// Creates header fields from untrusted text.
    ///
    /// swift-http-types alone would replace invalid characters by spaces.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidRequest`` if a name is not a token, or if there are more than 1,000 fields. The same error is for
    ///   a value with CR, LF, NUL or another control character (RFC 9110 section 5.5), or with a space at an end. The error names the field, never
    ///   the value.
    public init(checking fields: [String: String]) throws(HTTPSessionError) {
        self.init()
        guard fields.count <= 1000 else {
            throw HTTPSessionError(.invalidRequest, "more than 1000 header fields")
        }
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { try set(value, forFieldNamed: name) }
    }

    /// Sets one field, checked as by ``init(checking:)``; `nil` removes it.
    package mutating func set(_ value: String?, forFieldNamed name: String) throws(HTTPSessionError) {
        guard let fieldName = HTTPField.Name(name) else {
            throw HTTPSessionError(.invalidRequest, "\(name.debugDescription) is not a valid name of a header field")
        }
        if let value { try Self.checkValue(value, of: fieldName.rawName) }
        self[fieldName] = value
    }

    /// Throws if swift-http-types would silently change the value.
    static func checkValue(_ value: String, of name: String) throws(HTTPSessionError) {
        guard HTTPField.isValidValue(value) else {
            throw HTTPSessionError(
                .invalidRequest, "the value of \(name) has a line break, NUL or another control character, or a space at an end")
        }
    }
}

extension HTTPFields {
    /// A field that occurs several times although it may occur only once; `nil` if there is none. Recipients join such lines, or take one of them.
    package var repeatedSingleton: HTTPField.Name? {
        guard count > 1 else { return nil }
        for (index, field) in enumerated() where HTTPProbeSettings.singleFields.contains(ExactString(field.name.canonicalName)) {
            if prefix(index).contains(where: { $0.name == field.name }) { return field.name }
        }
        return nil
    }
}

/// The values of fields that every request carries.
public enum RequestFields {
    /// The value of `Accept-Language` for languages in the order of preference (RFC 9110 section 12.5.4); `nil` for none.
    ///
    /// The first language has no weight, the next five have `q=0.9` down to `q=0.5`, and further ones are left out. Texts that are not language
    /// ranges are left out too.
    public static func acceptLanguage(preferring languages: [String]) -> String? {
        let ranges = languages.filter { language in
            !language.isEmpty && language.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
        }
        let weighted = ranges.prefix(6).enumerated().map { place, language in
            place == 0 ? language : "\(language);q=0.\(10 - place)"
        }
        return weighted.isEmpty ? nil : weighted.joined(separator: ", ")
    }

    /// The value of `User-Agent` (RFC 9110 section 10.1.5): `product/version (system)`.
    ///
    /// Diacritics are removed (`Ünï` is `Uni`), and characters of other scripts are left out. Foundation's
    /// `applyingTransform(_:reverse:)` can write these in Latin letters first.
    public static func userAgent(product: String, version: String?, system: String?) -> String {
        let product = token(product)
        let version = version.map(token)
        let system = system.map(ascii)?.filter { !"()\\".contains($0) }
        return (product.isEmpty ? "HTTPSession" : product)
            + (version.map { $0.isEmpty ? "" : "/\($0)" } ?? "")
            + (system.map { $0.isEmpty ? "" : " (\($0))" } ?? "")
    }

    /// The value of `Authorization` for Basic authentication (RFC 7617), in UTF-8.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidRequest`` for a user name with a colon, which separates it from the password, and for control
    ///   characters.
    public static func basicAuthorization(username: String, password: String) throws(HTTPSessionError) -> String {
        let hasControls = (username + password).unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F }
        guard !username.utf8.contains(UInt8(ascii: ":")), !hasControls else {
            throw HTTPSessionError(
                .invalidRequest, "Basic authentication allows no colon in the user name, and no control characters")
        }
        return "Basic \(Data("\(username):\(password)".utf8).base64EncodedString())"
    }

    private static func token(_ text: String) -> String {
        String(ascii(text).map { $0 == " " ? "-" : $0 }.filter { HTTPField.Name(String($0)) != nil })
    }

    private static func ascii(_ text: String) -> String {
        TextConversion.ascii(text).filter { $0 >= " " && $0 != "\u{7F}" }
    }
}
