internal import CRE2

/// A regular expression that is searched in time linear in the text (RE2's syntax), so that neither an expression nor a text can block
/// the thread.
// @unchecked: RE2 is immutable after its creation, and its matching is safe on several threads.
package final class Expression: @unchecked Sendable {
    /// The reason why a text is not an expression, in one line.
    package struct SyntaxError: Error, Hashable, Sendable {
        package let reason: String
    }

    /// The memory of an expression in bytes. RE2 refuses a larger program, and matches with less memory more slowly.
    private static let memoryLimit = 2 << 20

    /// The expression's text.
    package let pattern: String
    private let compiled: OpaquePointer

    /// Compiles an expression.
    ///
    /// - Parameter pattern: the text in RE2's syntax; it matches anywhere, as in UTF-8.
    /// - Throws: ``SyntaxError``.
    package init(_ pattern: String) throws(SyntaxError) {
        self.pattern = pattern
        var error = [CChar](repeating: 0, count: 256)
        var text = pattern
        let made = text.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) {
                netwatch_expression_new($0.baseAddress, $0.count, Self.memoryLimit, &error, error.count)
            }
        }
        guard let made else {
            let reason = String(decoding: error.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            throw SyntaxError(reason: reason)
        }
        compiled = made
    }

    deinit { netwatch_expression_free(compiled) }

    /// Returns whether the bytes contain a match.
    package func matches(_ bytes: some Sequence<UInt8>) -> Bool {
        let found = bytes.withContiguousStorageIfAvailable { matches($0) }
        return found ?? Array(bytes).withUnsafeBufferPointer { matches($0) }
    }

    private func matches(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        bytes.withMemoryRebound(to: CChar.self) { netwatch_expression_matches(compiled, $0.baseAddress, $0.count) == 1 }
    }
}

extension Expression: Hashable {
    /// Whether both have the same text.
    package static func == (one: Expression, other: Expression) -> Bool { one.pattern == other.pattern }
    /// Hashes the text.
    package func hash(into hasher: inout Hasher) { hasher.combine(pattern) }
}
