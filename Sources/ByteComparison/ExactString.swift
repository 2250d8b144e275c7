internal import Glibc

/// A string that equals only a string of the same bytes in UTF-8.
///
/// Swift compares strings by canonical equivalence (Unicode Standard Annex #15): `é` in one scalar (NFC) equals `é` in two (NFD), and the
/// Kelvin sign equals `K`. For a file system, an HTTP peer, a database or a C library they are different bytes. The keys of caches, paths, and
/// values from or for the wire are therefore compared by their bytes. No comparison allocates memory.
///
/// It is a dictionary's key, or wraps a member of a type with a synthesized `==`:
///
/// ```swift
/// private var secrets: [ExactString: Secret] = [:]
///
/// struct Server: Hashable {
///     @ExactString var address: String
///     var port: Int32
/// }
/// ```
@propertyWrapper
package struct ExactString: Hashable, Sendable {
    package var wrappedValue: String

    package init(wrappedValue: String) { self.wrappedValue = wrappedValue }
    package init(_ text: String) { wrappedValue = text }

    package static func == (one: ExactString, other: ExactString) -> Bool { one.wrappedValue.isExactly(other.wrappedValue) }

    package func hash(into hasher: inout Hasher) { wrappedValue.hashBytes(into: &hasher) }
}

extension ExactString: ExpressibleByStringLiteral {
    package init(stringLiteral text: String) { wrappedValue = text }
}

extension ExactString: Comparable {
    /// Compares bytes, as strcmp(3) and SQLite do.
    package static func < (one: ExactString, other: ExactString) -> Bool {
        one.wrappedValue.utf8.lexicographicallyPrecedes(other.wrappedValue.utf8)
    }
}

extension ExactString: CustomStringConvertible {
    package var description: String { wrappedValue }
}

extension String {
    /// Whether both strings have the same bytes in UTF-8.
    package func isExactly(_ other: String) -> Bool {
        // A copy, because `withUTF8` is mutating. It retains the storage at most: all strings of Linux are contiguous.
        var (one, other) = (self, other)
        return one.withUTF8 { bytes in
            other.withUTF8 { UnsafeRawBufferPointer(bytes).hasSameBytes(as: UnsafeRawBufferPointer($0)) }
        }
    }

    /// Adds the bytes of the string to a hash, for a type that compares them by ``isExactly(_:)``.
    package func hashBytes(into hasher: inout Hasher) {
        var text = self
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        // UTF-8 has no such byte, so the bytes of two members cannot be divided otherwise.
        hasher.combine(0xFF as UInt8)
    }
}

extension String? {
    /// Whether both are `nil`, or have the same bytes in UTF-8.
    package func isExactly(_ other: String?) -> Bool {
        guard let self, let other else { return self == nil && other == nil }
        return self.isExactly(other)
    }
}

extension Sequence<String> {
    /// Whether the sequence has a string of the same bytes.
    package func containsExactly(_ text: String) -> Bool { contains { $0.isExactly(text) } }
}

extension [String] {
    /// Whether both arrays have strings of the same bytes in the same order.
    package func isExactly(_ other: [String]) -> Bool { count == other.count && zip(self, other).allSatisfy { $0.isExactly($1) } }
}

extension UnsafeRawBufferPointer {
    package func hasSameBytes(as other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        guard let here = baseAddress, let there = other.baseAddress, here != there else { return true }
        return memcmp(here, there, count) == 0
    }
}
