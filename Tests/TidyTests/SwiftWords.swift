/// The capitalized names in a Swift file: the types that it declares, and the names that it uses. Names in comments and string
/// literals do not count, except in interpolations.
struct SwiftWords {
    /// The types declared at the top level.
    private(set) var types: Set<Substring> = []
    /// The types declared inside other types. The same name elsewhere means another type.
    private(set) var nestedTypes: Set<Substring> = []
    /// The names used, each with the line of its first use. `A.B` uses `A`.
    private(set) var names: [Substring: Int] = [:]

    private static let declarations: Set<Substring> = ["struct", "class", "enum", "protocol", "actor", "typealias"]

    init(_ file: SourceFile) {
        var (depth, last) = (0, Substring())
        var scanner = Scanner()
        for (number, line) in zip(1..., file.lines) {
            scanner.scan(line) { token in
                switch token {
                case "{": depth += 1
                case "}": depth -= 1
                case _ where SwiftWords.declarations.contains(last):
                    if depth == 0 { types.insert(token) } else { nestedTypes.insert(token) }
                case _ where token.first?.isUppercase == true && last != ".":
                    if names[token] == nil { names[token] = number }
                default: break
                }
                last = token
            }
        }
    }
}

/// A scanner that splits lines of Swift into names, braces and dots.
private struct Scanner {
    /// An enclosing construct of the next character. The list of places begins with the outermost.
    private enum Place: Equatable {
        case blockComment
        case text(quotes: Int)
        /// The text within `\(`, with the number of open parentheses.
        case interpolation(Int)
    }

    private var places: [Place] = []

    mutating func scan(_ line: Substring, _ take: (Substring) -> Void) {
        var rest = line
        while let character = rest.first {
            switch places.last {
            case .blockComment:
                if rest.hasPrefix("*/") { places.removeLast() }
                rest.removeFirst(rest.hasPrefix("*/") ? 2 : 1)
            case .text(let quotes):
                let end = String(repeating: "\"", count: quotes)
                if rest.hasPrefix("\\(") {
                    places.append(.interpolation(0))
                    rest.removeFirst(2)
                } else if character == "\\" {
                    rest = rest.dropFirst(2)
                } else if rest.hasPrefix(end) {
                    places.removeLast()
                    rest.removeFirst(quotes)
                } else {
                    rest.removeFirst()
                }
            case .interpolation(let open) where character == "(" || character == ")":
                places.removeLast()
                if character == "(" || open > 0 { places.append(.interpolation(open + (character == "(" ? 1 : -1))) }
                rest.removeFirst()
            case .interpolation, nil:
                if rest.hasPrefix("//") { return endLine() }
                if rest.hasPrefix("/*") {
                    places.append(.blockComment)
                    rest.removeFirst(2)
                } else if character == "\"" {
                    let quotes = rest.hasPrefix("\"\"\"") ? 3 : 1
                    places.append(.text(quotes: quotes))
                    rest.removeFirst(quotes)
                } else if character.isLetter || character == "_" {
                    let name = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
                    take(name)
                    rest = rest[name.endIndex...]
                } else {
                    if "{}.".contains(character) { take(rest.prefix(1)) }
                    rest.removeFirst()
                }
            }
        }
        endLine()
    }

    /// A single-line string literal ends with its line, even if this scanner has misread it (a regular expression).
    private mutating func endLine() {
        if let first = places.firstIndex(of: .text(quotes: 1)) { places.removeSubrange(first...) }
    }
}
