/// A lexer for the rules: it cuts lines of Swift into names, braces, dots, and the prose of comments and strings.
///
/// It does not know regular expressions: a quotation mark in one begins a string, which ends with the line.
struct SwiftScanner {
    /// The kind of a token.
    enum Kind {
        /// A name, a brace or a dot.
        case code
        /// A name in backticks: a keyword, or the title of a test.
        case rawIdentifier
        /// A piece of a comment, with its slashes.
        case comment
        /// A piece of a string literal, without interpolations and escapes.
        case string
    }

    /// The construct that contains the next character.
    private enum Place: Equatable {
        case blockComment
        case string(quotes: Int, pounds: Int)
        /// Within `\(`, with so many parentheses open.
        case interpolation(Int)
    }

    /// From the outermost construct to the innermost.
    private var places: [Place] = []

    mutating func scan(_ line: Substring, _ take: (Kind, Substring) -> Void) {
        var rest = line
        while !rest.isEmpty {
            switch places.last {
            case .blockComment: scanBlockComment(&rest, take)
            case .string(let quotes, let pounds): scanString(&rest, quotes, String(repeating: "#", count: pounds), take)
            case .interpolation(let open) where rest.hasPrefix("(") || rest.hasPrefix(")"):
                let isOpening = rest.removeFirst() == "("
                places.removeLast()
                if isOpening || open > 0 { places.append(.interpolation(open + (isOpening ? 1 : -1))) }
            case .interpolation, nil: scanCode(&rest, take)
            }
        }
        // A string of one line ends with it, also where this scanner has misread it (a regular expression).
        let string = places.firstIndex { place in
            if case .string(quotes: 1, _) = place { true } else { false }
        }
        if let string { places.removeSubrange(string...) }
    }

    private mutating func scanBlockComment(_ rest: inout Substring, _ take: (Kind, Substring) -> Void) {
        guard let end = rest.firstRange(of: "*/") else {
            take(.comment, rest)
            rest = ""
            return
        }
        take(.comment, rest[..<end.lowerBound])
        places.removeLast()
        rest = rest[end.upperBound...]
    }

    private mutating func scanString(
        _ rest: inout Substring, _ quotes: Int, _ pounds: String, _ take: (Kind, Substring) -> Void
    ) {
        let end = String(repeating: "\"", count: quotes) + pounds
        var text = rest.startIndex
        func takeText(_ end: Substring.Index) {
            if text < end { take(.string, rest[text..<end]) }
        }
        while text < rest.endIndex {
            var index = text
            while index < rest.endIndex, !rest[index...].hasPrefix(end), !rest[index...].hasPrefix("\\" + pounds) {
                index = rest.index(after: index)
            }
            takeText(index)
            guard index < rest.endIndex else { break }
            if rest[index...].hasPrefix(end) {
                places.removeLast()
                rest = rest[index...].dropFirst(end.count)
                return
            }
            let escape = rest[index...].dropFirst(pounds.count + 1)
            if escape.first == "(" {
                places.append(.interpolation(0))
                rest = escape.dropFirst()
                return
            }
            text = escape.dropFirst().startIndex
        }
        rest = ""
    }

    private mutating func scanCode(_ rest: inout Substring, _ take: (Kind, Substring) -> Void) {
        let pounds = rest.prefix { $0 == "#" }.count
        let quotes = rest.dropFirst(pounds).prefix { $0 == "\"" }.count
        if rest.hasPrefix("//") {
            take(.comment, rest)
            rest = ""
        } else if rest.hasPrefix("/*") {
            places.append(.blockComment)
            rest.removeFirst(2)
        } else if quotes > 0 {
            let count = quotes >= 3 ? 3 : 1
            places.append(.string(quotes: count, pounds: pounds))
            rest.removeFirst(pounds + count)
        } else if rest.first == "`", let end = rest.dropFirst().firstIndex(of: "`") {
            take(.rawIdentifier, rest[rest.index(after: rest.startIndex)..<end])
            rest = rest[rest.index(after: end)...]
        } else if let first = rest.first, first.isLetter || first == "_" {
            let name = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
            take(.code, name)
            rest = rest[name.endIndex...]
        } else {
            if let first = rest.first, "{}.".contains(first) { take(.code, rest.prefix(1)) }
            rest.removeFirst()
        }
    }
}
