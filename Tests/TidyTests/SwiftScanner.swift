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
        var (text, index) = (rest.startIndex, rest.startIndex)
        while let mark = rest.utf8[index...].firstIndex(where: { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }) {
            let tail = rest[mark...]
            let isEnd = tail.hasPrefix(end)
            guard isEnd || tail.hasPrefix("\\" + pounds) else {
                index = rest.index(after: mark)
                continue
            }
            if text < mark { take(.string, rest[text..<mark]) }
            let escape = tail.dropFirst(isEnd ? end.count : pounds.count + 1)
            if isEnd {
                places.removeLast()
                rest = escape
                return
            }
            if escape.first == "(" {
                places.append(.interpolation(0))
                rest = escape.dropFirst()
                return
            }
            text = escape.dropFirst().startIndex
            index = text
        }
        if text < rest.endIndex { take(.string, rest[text...]) }
        rest = ""
    }

    private mutating func scanCode(_ rest: inout Substring, _ take: (Kind, Substring) -> Void) {
        switch rest.first {
        case "/" where rest.hasPrefix("//"):
            take(.comment, rest)
            rest = ""
        case "/" where rest.hasPrefix("/*"):
            places.append(.blockComment)
            rest.removeFirst(2)
        case "\"", "#":
            let pounds = rest.prefix { $0 == "#" }.count
            let quotes = rest.dropFirst(pounds).prefix { $0 == "\"" }.count
            let count = quotes >= 3 ? 3 : min(1, quotes)
            if count > 0 { places.append(.string(quotes: count, pounds: pounds)) }
            rest.removeFirst(pounds + count)
        case "`":
            let name = rest.dropFirst().prefix { $0 != "`" }
            take(.rawIdentifier, name)
            rest = rest[name.endIndex...].dropFirst()
        case let first? where first.isLetter || first == "_":
            let name = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
            take(.code, name)
            rest = rest[name.endIndex...]
        case "{", "}", ".":
            take(.code, rest.prefix(1))
            rest.removeFirst()
        default: rest.removeFirst()
        }
    }
}
