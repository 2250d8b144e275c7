internal import ByteComparison
package import Expressions
internal import FoundationEssentials

/// What a user expects of one value in a JSON text.
///
/// A value is compared as the user writes it: `ok` with the string `ok`, `3` with the number 3 or the string `3`, `true` with the boolean or the string,
/// and `null` with null or the string.
package struct JSONExpectation: Hashable, Sendable {
    package enum Comparison: Hashable, Sendable {
        case equals(String)
        case differs(String)
        case above(Double)
        case below(Double)
        /// A string, a number, a boolean or null whose text matches.
        case matches(Expressions.Expression)
        /// Whether the value exists, of whatever type.
        case exists(Bool)
    }

    /// The place of the value (RFC 6901), such as `/checks/0/status`; empty for the whole text.
    package let pointer: String
    package let comparison: Comparison
    /// The names and indices of the pointer, without its escapes.
    fileprivate let names: [String]

    /// Creates an expectation. - Returns: `nil` for a pointer that RFC 6901 does not allow.
    package init?(_ pointer: String, _ comparison: Comparison) {
        guard pointer.isEmpty || pointer.hasPrefix("/") else { return nil }
        let parts = pointer.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        var names: [String] = []
        for part in parts {
            guard let name = Self.unescaped(part) else { return nil }
            names.append(name)
        }
        (self.pointer, self.comparison, self.names) = (pointer, comparison, names)
    }

    /// `~0` stands for `~`, and `~1` for `/`.
    private static func unescaped(_ part: Substring) -> String? {
        var (name, rest) = ("", part)
        while let tilde = rest.firstIndex(of: "~") {
            name += rest[..<tilde]
            let next = rest.index(after: tilde)
            guard next < rest.endIndex, rest[next] == "0" || rest[next] == "1" else { return nil }
            name += rest[next] == "0" ? "~" : "/"
            rest = rest[rest.index(after: next)...]
        }
        return name + rest
    }

    /// The expectation in words: `/status equals ok`.
    package var text: String {
        let place = pointer.isEmpty ? "the text" : pointer
        return switch comparison {
        case .equals(let value): "\(place) equals \(value)"
        case .differs(let value): "\(place) differs from \(value)"
        case .above(let value): "\(place) above \(value)"
        case .below(let value): "\(place) below \(value)"
        case .matches(let expression): "\(place) matches \(expression.text)"
        case .exists(let exists): exists ? "\(place) exists" : "\(place) does not exist"
        }
    }

    fileprivate func isMet(by value: JSONLeaf?) -> Bool {
        switch (comparison, value) {
        case (.exists(let exists), _): exists == (value != nil)
        case (_, nil): false
        case (.equals(let text), let value?): value.equals(text)
        case (.differs(let text), let value?): !value.equals(text)
        case (.above(let limit), .number(_, let value)?): value > limit
        case (.below(let limit), .number(_, let value)?): value < limit
        case (.above, _), (.below, _): false
        case (.matches(let expression), let value?): value.text.map { expression.matches(Array($0.utf8)) } ?? false
        }
    }

    /// The result of a comparison with a text.
    package enum Result: Hashable, Sendable {
        case met
        /// The first expectation that is not met, and the value in its place.
        case unmet(JSONExpectation, found: String)
        /// The bytes are no JSON text (RFC 8259).
        case unreadable
    }

    /// Compares a text, which is parsed once.
    package static func compare(_ expectations: [JSONExpectation], with bytes: [UInt8]) -> Result {
        do { return try JSONDecoder().decode(JSONSearch.self, from: Data(bytes), configuration: expectations).result } catch {
            return .unreadable
        }
    }
}

/// The comparison of a text with expectations. Only values on the ways of the pointers are decoded.
private struct JSONSearch: DecodableWithConfiguration {
    let result: JSONExpectation.Result

    init(from decoder: any Decoder, configuration expectations: [JSONExpectation]) throws {
        for expectation in expectations {
            let value = try JSONPlace(from: decoder, configuration: expectation.names[...]).leaf
            guard expectation.isMet(by: value) else {
                result = .unmet(expectation, found: value.map { $0.text ?? "an object or an array" } ?? "nothing")
                return
            }
        }
        result = .met
    }
}

/// The value at a way through names and indices. A decoder is valid only while it decodes, so that the way continues inside of it.
private struct JSONPlace: DecodableWithConfiguration {
    let leaf: JSONLeaf?

    init(from decoder: any Decoder, configuration way: ArraySlice<String>) throws {
        guard let name = way.first else {
            leaf = try JSONLeaf(from: decoder)
            return
        }
        if let members = try? decoder.container(keyedBy: Name.self) {
            let key = Name(stringValue: name)
            leaf =
                members.contains(key)
                ? try members.decode(JSONPlace.self, forKey: key, configuration: way.dropFirst()).leaf : nil
        } else if var elements = try? decoder.unkeyedContainer(), let index = Self.index(name), index < elements.count ?? 0 {
            for _ in 0..<index { _ = try elements.decode(Skipped.self) }
            leaf = try elements.decode(JSONPlace.self, configuration: way.dropFirst()).leaf
        } else {
            leaf = nil
        }
    }

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    private struct Skipped: Decodable {
        init(from decoder: any Decoder) {}
    }

    /// RFC 6901 section 4: digits without a leading zero.
    private static func index(_ name: String) -> Int? {
        guard name.utf8.allSatisfy({ 0x30...0x39 ~= $0 }), name == "0" || name.utf8.first != 0x30 else { return nil }
        return Int(name)
    }
}

/// A value at the end of a pointer.
private enum JSONLeaf {
    case string(String)
    case number(String, Double)
    case bool(Bool)
    case null
    case container

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let text = try? value.decode(String.self) {
            self = .string(text)
        } else if let flag = try? value.decode(Bool.self) {
            self = .bool(flag)
        } else if let number = try? value.decode(Int64.self) {
            self = .number("\(number)", Double(number))
        } else if let number = try? value.decode(Double.self) {
            self = .number("\(number)", number)
        } else {
            self = .container
        }
    }

    /// The value as text; `nil` for an object or an array.
    var text: String? {
        switch self {
        case .string(let text), .number(let text, _): text
        case .bool(let flag): "\(flag)"
        case .null: "null"
        case .container: nil
        }
    }

    func equals(_ other: String) -> Bool {
        if case .number(let text, let value) = self { return text.isExactly(other) || Double(other) == value }
        return text?.isExactly(other) ?? false
    }
}
