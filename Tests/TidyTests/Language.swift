/// The rules for words: the names of the code, the first words of its documentation, and the spelling of everything.
///
/// docs/glossary.md has the words themselves.
enum Language {
    /// Words that no identifier contains, as whole words of camel case; each has a plain one in docs/glossary.md.
    static let refusedWords: Set<String> = ["fate", "departure", "parcel", "wish", "told", "anew", "ways"]

    /// Words with which no documentation comment begins: they lead to a phrase that does not name its subject.
    static let refusedBeginnings = ["Of", "Where", "What", "Who", "The same"]

    /// A word that a rule refuses and that a file may have.
    struct Exception {
        /// A file, or a folder and everything below it.
        let path: String
        /// In lower case; `nil` for any word.
        let word: String?
        let reason: String

        func covers(_ file: SourceFile, _ word: String) -> Bool {
            (file.path == path || file.isIn([path])) && (self.word == nil || self.word == word)
        }
    }

    static let exceptions: [Exception] = [
        Exception(path: "Tests/TidyTests/Language.swift", word: nil, reason: "It lists the words."),
        Exception(path: "Tests/TidyTests/BritishSpelling.swift", word: nil, reason: "It lists the words."),
        Exception(path: "Tests/TidyTests/LanguageTests.swift", word: nil, reason: "Its samples break the rules."),
        Exception(path: "docs/glossary.md", word: nil, reason: "It lists the words that are not used."),
        Exception(path: "Sources/CLibnl/shim.h", word: "neighbour", reason: "A header of libnl has this name."),
        Exception(path: "Sources/CLinux/shim.h", word: "neighbour", reason: "A header of the kernel has this name."),
        Exception(
            path: "Sources/Reachability/Recording/RecordedInput.swift", word: "neighbour",
            reason: "Older recordings have this spelling."),
        Exception(
            path: "Tests/ReachabilityTests/Recording/RecordedInputTests.swift", word: "neighbour",
            reason: "Older recordings have this spelling."),
    ]

    /// Names in Swift and C code, declared or used, also the titles of tests, have no refused word.
    static func identifiers(_ file: SourceFile) -> [Finding] {
        guard file.isSwift || file.isC else { return [] }
        return findings(in: file, isScanned: true) { kind, text in
            guard kind == .code || kind == .rawIdentifier else { return [] }
            return words(text).map { $0.text.lowercased() }.filter(refusedWords.contains).map {
                ($0, "the word \($0) in \(text)")
            }
        }
    }

    /// A documentation comment (`///`, `/** */`, any comment before code in C) begins with a phrase that names its subject.
    static func documentation(_ file: SourceFile) -> [Finding] {
        guard file.isSwift || file.isC else { return [] }
        return documentationBeginnings(file).compactMap { index, text in
            guard
                let beginning = refusedBeginnings.first(where: { beginning in
                    text.hasPrefix(beginning) && text.dropFirst(beginning.count).first?.isLetter != true
                }), !exceptions.contains(where: { $0.covers(file, beginning.lowercased()) })
            else { return nil }
            return Finding(
                path: file.path, line: index + 1,
                what: "documentation that begins with \"\(beginning)\": begin with a phrase that names the subject")
        }
    }

    /// The index and the text of the first line with text of each documentation comment.
    private static func documentationBeginnings(_ file: SourceFile) -> [(index: Int, text: Substring)] {
        // C has no comments for documentation alone.
        let (line, block) = file.isC ? ("//", "/*") : ("///", "/**")
        var beginnings: [(Int, Substring)] = []
        // Whether the next text of a comment is its first, and whether a block comment is open.
        var (isAwaited, isInBlock) = (true, false)
        for (index, content) in file.lines.enumerated() {
            var text = content.drop(while: \.isWhitespace)
            if isInBlock {
                text = text.hasPrefix("*/") ? text : text.drop { $0 == "*" }
            } else if text.hasPrefix(line) {
                text = text.drop { $0 == "/" }
            } else if text.hasPrefix(block), !text.hasPrefix("/**/") {
                text = text.dropFirst().drop { $0 == "*" }
                (isAwaited, isInBlock) = (true, true)
            } else {
                isAwaited = true
                continue
            }
            let end = isInBlock ? text.firstRange(of: "*/") : nil
            text = text[..<(end?.lowerBound ?? text.endIndex)].drop(while: \.isWhitespace)
            if isAwaited, !text.isEmpty {
                beginnings.append((index, text))
                isAwaited = false
            }
            if end != nil { (isAwaited, isInBlock) = (true, false) }
        }
        return beginnings
    }

    /// Spelling is American. `cancelled`, `cancelling` and `cancellable` stay in code, because Swift's `Task.isCancelled` and
    /// Foundation's `URLError.cancelled` have that spelling; prose has `canceled`.
    static func spelling(_ file: SourceFile) -> [Finding] {
        findings(in: file) { kind, text in
            words(text).compactMap { word -> (String, String)? in
                let lowercase = word.text.lowercased()
                guard let american = BritishSpelling.american[lowercase] else { return nil }
                if BritishSpelling.mirrored.contains(lowercase), kind == .code || isCode(word.text, in: text) { return nil }
                return (lowercase, "\(word.text): American spelling is \(american)")
            }
        }
    }

    /// Whether a word of a sentence is quoted from code: it is part of a longer identifier, stands in quotation marks or backticks, or is a
    /// code that follows a verb (`fails as cancelled`, and `end cancelled` in transcripts).
    private static func isCode(_ word: Substring, in text: Substring) -> Bool {
        if !text.contains(where: \.isWhitespace) { return true }
        if let former = text[..<word.startIndex].split(separator: " ").last, ["as", "end", "failed"].contains(former) {
            return true
        }
        let before = text[..<word.startIndex].last
        let after = text[word.endIndex...].first
        let marks = "\"'`_."
        return before.map { $0.isLetter || marks.contains($0) } == true
            || after.map { $0.isLetter || "\"'`_(".contains($0) } == true
    }

    /// The findings of a rule in each token of a Swift file, or in each line of another file. The rule returns a word and a complaint.
    ///
    /// With `isScanned`, a file of C is cut into tokens too: its comments, strings and names are like those of Swift.
    private static func findings(
        in file: SourceFile, isScanned: Bool = false,
        _ rule: (SwiftScanner.Kind, Substring) -> [(word: String, complaint: String)]
    ) -> [Finding] {
        if exceptions.contains(where: { $0.word == nil && $0.covers(file, "") }) { return [] }
        var scanner = SwiftScanner()
        return zip(1..., file.lines).flatMap { number, line in
            var found: [(word: String, complaint: String)] = []
            if file.isSwift || isScanned {
                scanner.scan(line) { kind, text in found += rule(kind, text) }
            } else {
                found = rule(.comment, line)
            }
            let complaints = found.filter { entry in !exceptions.contains { $0.covers(file, entry.word) } }.map(\.complaint)
            return Set(complaints).sorted().map { Finding(path: file.path, line: number, what: $0) }
        }
    }

    /// A word of an identifier or of a sentence, as a part of the text.
    struct Word: Equatable {
        let text: Substring
    }

    /// The words of a text: separated by characters that are not letters, and by the capital letters of camel case (`HTTPSession`
    /// has `HTTP` and `Session`).
    static func words(_ text: Substring) -> [Word] {
        let letters = text.utf8
        var words: [Word] = []
        var start: Substring.Index?
        var (isAfterSmall, isAfterCapital) = (false, false)
        func end(at index: Substring.Index) {
            if let from = start { words.append(Word(text: text[from..<index])) }
            start = nil
        }
        for index in letters.indices {
            let isSmall = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(letters[index])
            let isCapital = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(letters[index])
            if !isSmall && !isCapital || isCapital && isAfterSmall { end(at: index) }
            if isSmall && isAfterCapital {
                // The last of several capital letters begins the next word.
                let previous = letters.index(before: index)
                if let from = start, from < previous {
                    end(at: previous)
                    start = previous
                }
            }
            if isSmall || isCapital, start == nil { start = index }
            (isAfterSmall, isAfterCapital) = (isSmall, isCapital)
        }
        end(at: letters.endIndex)
        return words
    }
}
