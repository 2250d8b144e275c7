internal import ByteComparison
internal import CRE2

/// A regular expression in the syntax of RE2, which is searched in bytes in linear time.
///
/// The text and the searched bytes are UTF-8. A byte that is not UTF-8 matches no character, not even `.`; `\C` matches any byte. A `.`
/// matches no line end, and `^` and `$` match only at the ends of the bytes, unless the expression begins with flags such as `(?s)`,
/// `(?m)` and `(?i)`. The syntax has neither backreferences nor lookaround, because both need more than linear time.
package struct Expression: Hashable, Sendable {
    /// The error for text that is not an expression. The description is one line with the reason.
    package struct ParseError: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// The most bytes of an expression's text: 4 KiB.
    package static let longestText = 4096
    /// The most bytes that a compiled expression and the tables of its searches use: 1 MiB. RE2 builds the tables during searches. If
    /// they reach the limit, RE2 searches without them, still in linear time.
    package static let memoryLimit = 1 << 20

    /// The text of the expression.
    package let text: String
    /// The text that the expression matches, if it was created from one; otherwise the text of the expression.
    package let shownText: String
    private let compiled: CompiledExpression

    /// The most groups of an expression that captures.
    package static let groupLimit = 16

    /// Compiles an expression.
    ///
    /// - Throws: ``ParseError``, if the text is invalid, is longer than ``longestText``, or needs more memory than ``memoryLimit``.
    package init(_ text: String) throws(ParseError) { try self.init(text, shownText: text) }

    /// Compiles an expression whose groups can be read from its matches.
    ///
    /// - Throws: ``ParseError``, as ``init(_:)`` does, and if it has more than ``groupLimit`` groups.
    package init(capturing text: String) throws(ParseError) {
        try self.init(text, shownText: text, captures: true)
        guard compiled.groupNames.count <= Self.groupLimit else {
            throw ParseError(description: "the expression has more than \(Self.groupLimit) groups")
        }
    }

    private init(_ text: String, shownText: String, captures: Bool = false) throws(ParseError) {
        guard text.utf8.count <= Self.longestText else {
            throw ParseError(description: "the expression is longer than \(Self.longestText) bytes")
        }
        compiled = try CompiledExpression(text, captures: captures)
        (self.text, self.shownText) = (text, shownText)
    }

    /// Compiles an expression that matches exactly the text `literal`.
    ///
    /// - Throws: ``ParseError``, if the text is too long.
    package init(literal: String) throws(ParseError) {
        try self.init(Self.quoted(literal), shownText: literal)
    }

    /// Returns whether the expression matches anywhere in the bytes.
    package func matches(_ bytes: UnsafeRawBufferPointer) -> Bool { compiled.matches(bytes) }

    /// Returns whether the expression matches anywhere in the bytes.
    package func matches(_ bytes: [UInt8]) -> Bool { bytes.withUnsafeBytes { compiled.matches($0) } }

    /// Returns whether the expression matches anywhere in the bytes.
    package func matches(_ bytes: ArraySlice<UInt8>) -> Bool { bytes.withUnsafeBytes { compiled.matches($0) } }

    /// A group of a match: its name, if it has one, and what it has captured; nothing for a group that is no part of the match.
    package struct Group: Sendable {
        package let name: String?
        package let bytes: ArraySlice<UInt8>
    }

    /// The number of groups; 0 for an expression that does not capture.
    package var groupCount: Int { compiled.groupNames.count }

    /// Returns the groups of the first match in the bytes, in the order of their parentheses; `nil` without a match.
    package func groups(in bytes: ArraySlice<UInt8>) -> [Group]? {
        compiled.ranges(in: bytes).map { ranges in
            zip(compiled.groupNames, ranges).map { Group(name: $0, bytes: bytes[$1]) }
        }
    }

    /// Returns the expression that matches exactly the text. RE2 takes a backslash before ASCII punctuation as a quote.
    private static func quoted(_ literal: String) -> String {
        var quoted = ""
        for scalar in literal.unicodeScalars {
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9", "_": break
            case "\0":
                quoted += "\\x00"
                continue
            default: if scalar.isASCII { quoted.unicodeScalars.append("\\") }
            }
            quoted.unicodeScalars.append(scalar)
        }
        return quoted
    }
}

extension Expression {
    /// Whether both have the same text.
    package static func == (one: Expression, other: Expression) -> Bool { one.text.isExactly(other.text) }
    /// Hashes the text.
    package func hash(into hasher: inout Hasher) { text.hashBytes(into: &hasher) }
}

extension Expression: CustomStringConvertible {
    /// The text of the expression.
    package var description: String { text }
}

/// The owner of a compiled expression in the heap of C++.
///
/// RE2 locks its tables, and its objects do not change otherwise, so threads may share them ("RE2 objects are thread-safe", re2.h).
private final class CompiledExpression: @unchecked Sendable {
    private let handle: OpaquePointer
    /// The names of the groups; empty for an expression that does not capture.
    let groupNames: [String?]

    init(_ text: String, captures: Bool) throws(Expression.ParseError) {
        var text = text
        // The reason may quote the expression.
        var error = [CChar](repeating: 0, count: 256)
        let handle = text.withUTF8 { text in
            error.withUnsafeMutableBufferPointer { error in
                netwatch_expression_create(
                    text.baseAddress, text.count, Int64(Expression.memoryLimit), captures ? 1 : 0, error.baseAddress, error.count)
            }
        }
        guard let handle else {
            let reason = String(decoding: error.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            let line = String(String.UnicodeScalarView(reason.unicodeScalars.map { Self.isControl($0) ? "\u{FFFD}" : $0 }))
            throw Expression.ParseError(description: line)
        }
        self.handle = handle
        groupNames = (0..<netwatch_expression_group_count(handle)).map { index in
            let name = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
                netwatch_expression_group_name(handle, index + 1, buffer.baseAddress, buffer.count)
                return buffer.baseAddress.map { String(cString: $0) } ?? ""
            }
            return name.isEmpty ? nil : name
        }
    }

    deinit { netwatch_expression_destroy(handle) }

    func matches(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let base = bytes.assumingMemoryBound(to: UInt8.self).baseAddress
        let result = netwatch_expression_search(handle, base, bytes.count)
        // Swift ends a process too if an allocation fails. An invented result would accuse a server.
        precondition(result >= 0, "no memory left to search for an expression")
        return result > 0
    }

    /// Returns the ranges of the groups of the first match; `nil` without a match.
    func ranges(in bytes: ArraySlice<UInt8>) -> [Range<Int>]? {
        var starts = [Int](repeating: 0, count: groupNames.count)
        var sizes = starts
        let result = bytes.withUnsafeBufferPointer { bytes in
            netwatch_expression_capture(handle, bytes.baseAddress, bytes.count, &starts, &sizes, starts.count)
        }
        precondition(result >= 0, "no memory left to search for an expression")
        guard result > 0 else { return nil }
        return zip(starts, sizes).map { bytes.startIndex + $0..<bytes.startIndex + $0 + $1 }
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.generalCategory == .control || scalar.value == 0x2028 || scalar.value == 0x2029
    }
}
