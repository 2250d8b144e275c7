/// Text in lines that fit a terminal. It is broken at spaces, never within a word, and no character is lost.
package enum WrappedText {
    /// The least columns of text beside an indentation. On a narrower terminal, lines are indented by ``narrowIndentation``.
    private static let leastColumns = 24
    private static let narrowIndentation = 4

    /// Breaks a line that is too wide.
    ///
    /// - Parameters:
    ///   - line: the line, which may have colors. Runs of spaces within a line are kept.
    ///   - columns: the columns of each line. A word that is longer has a line of its own, which the terminal breaks.
    ///   - indentation: the spaces before each line but the first.
    /// - Returns: as many lines as the text needs.
    package static func lines(_ line: String, columns: Int, indentation: Int = 0) -> [String] {
        guard DisplayWidth.paintedColumns(line) > columns else { return [line] }
        let margin = String(
            repeating: " ", count: columns - indentation >= leastColumns ? indentation : min(indentation, narrowIndentation))
        var lines: [String] = []
        var (current, width, hasWord) = ("", 0, false)
        // The escape sequence of the color that is in effect; empty for none.
        var color = ""
        for (spaces, word) in words(line) {
            let wordWidth = DisplayWidth.paintedColumns(word)
            if hasWord, wordWidth > 0, width + spaces + wordWidth > columns {
                lines.append(color.isEmpty ? current : current + reset)
                (current, width) = (margin + color, margin.count)
            } else {
                current += String(repeating: " ", count: spaces)
                width += spaces
            }
            current += word
            width += wordWidth
            hasWord = hasWord || wordWidth > 0
            for sequence in DisplayWidth.escapeSequences(word) { color = sequence == reset ? "" : color + sequence }
        }
        return lines + [current]
    }

    private static let reset = "\u{1b}[0m"

    /// Returns the words, each with the number of spaces before it.
    private static func words(_ line: String) -> [(spaces: Int, word: String)] {
        var words: [(Int, String)] = []
        var (spaces, word) = (0, String.UnicodeScalarView())
        for scalar in line.unicodeScalars {
            guard scalar == " " else {
                word.append(scalar)
                continue
            }
            if !word.isEmpty {
                words.append((spaces, String(word)))
                (spaces, word) = (0, String.UnicodeScalarView())
            }
            spaces += 1
        }
        return word.isEmpty ? words : words + [(spaces, String(word))]
    }
}
