internal import Wire

/// Status codes of HTTP, as a list of codes and ranges: `200-299,401`.
package struct StatusRanges: Hashable, Sendable {
    /// The error for text that is no such list. The description is one line with the reason.
    package struct ParseError: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String

        init(_ description: String) { self.description = ExternalText.shortened(description) }
    }

    /// The most elements of a list.
    package static let longestList = 64
    /// The codes that are accepted by default: 200-299 (RFC 9110 section 15.3).
    package static let successful = StatusRanges([200...299])
    /// The code 204, No Content (RFC 9110 section 15.3.5).
    static let noContent = StatusRanges([204...204])

    private let ranges: [ClosedRange<Int>]

    private init(_ ranges: [ClosedRange<Int>]) { self.ranges = ranges }

    /// Creates the list from text. Codes are from 100 to 599; spaces around elements are ignored.
    ///
    /// - Throws: ``ParseError`` with the reason.
    package init(_ text: String) throws(ParseError) {
        let elements = text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        guard elements.count <= Self.longestList else {
            throw ParseError("more than \(Self.longestList) status codes and ranges")
        }
        var ranges: [ClosedRange<Int>] = []
        for element in elements {
            let shown = String(decoding: HTTPGrammar.trimmed(Array(element)[...]), as: UTF8.self)
            let ends = shown.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
            guard ends.count <= 2, let first = ends.first.flatMap(Self.code), let last = ends.last.flatMap(Self.code) else {
                throw ParseError("'\(shown)' is neither a status code from 100 to 599 nor a range like 200-299")
            }
            guard first <= last else { throw ParseError("'\(shown)' is a range that ends before it begins") }
            ranges.append(first...last)
        }
        self.ranges = ranges
    }

    /// Returns whether the list has the status code.
    package func contains(_ status: Int) -> Bool { ranges.contains { $0.contains(status) } }

    private static func code(_ text: Substring.UTF8View) -> Int? {
        guard text.count == 3, text.allSatisfy(HTTPGrammar.isDigit), let code = Int(Substring(text)) else { return nil }
        return (100...599).contains(code) ? code : nil
    }
}

extension StatusRanges: CustomStringConvertible {
    /// The list as text.
    package var description: String {
        ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",")
    }
}
