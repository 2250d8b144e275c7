import Wire

/// The width of text in terminal columns (Unicode Standard Annex 11, as in wcwidth(3)), and text fitted to a width.
package enum DisplayWidth {
    /// Returns the width of the text in columns. The text must be ``harmless(_:isUnicode:)``.
    package static func columns(_ text: String) -> Int {
        text.unicodeScalars.reduce(0) { $0 + columns($1) }
    }

    /// Returns the width of a line that may have colors: escape sequences have no width.
    package static func paintedColumns(_ line: String) -> Int {
        guard line.unicodeScalars.contains("\u{1b}") else { return columns(line) }
        var width = 0
        split(line, text: { width += columns($0) }, escape: { _ in })
        return width
    }

    /// Returns the escape sequences of a line, in order.
    static func escapeSequences(_ line: String) -> [String] {
        guard line.unicodeScalars.contains("\u{1b}") else { return [] }
        var sequences: [String] = []
        split(line, text: { _ in }, escape: { sequences.append($0) })
        return sequences
    }

    /// Passes on the parts of a line: its characters, and its control sequences (ECMA-48 section 5.4: ESC [, parameters, a final byte from 0x40).
    private static func split(_ line: String, text: (Unicode.Scalar) -> Void, escape: (String) -> Void) {
        var sequence: String.UnicodeScalarView?
        for scalar in line.unicodeScalars {
            guard var open = sequence else {
                if scalar == "\u{1b}" { sequence = String.UnicodeScalarView([scalar]) } else { text(scalar) }
                continue
            }
            open.append(scalar)
            sequence = open
            guard open.count > 2, (0x40...0x7e).contains(scalar.value) else { continue }
            escape(String(open))
            sequence = nil
        }
    }

    /// Returns the text with a replacement for control characters, marks of direction and joiners, which a terminal would
    /// interpret or display in another place. If the terminal displays only ASCII, question marks replace all other characters.
    package static func harmless(_ text: String, isUnicode: Bool) -> String {
        func isFine(_ scalar: Unicode.Scalar) -> Bool {
            !UnsafeCharacters.contain(scalar) && (scalar.isASCII || (isUnicode && hasKnownWidth(scalar)))
        }
        guard !text.unicodeScalars.allSatisfy(isFine) else { return text }
        let mark: Unicode.Scalar = isUnicode ? "\u{fffd}" : "?"
        return String(String.UnicodeScalarView(text.unicodeScalars.map { isFine($0) ? $0 : mark }))
    }

    /// Returns the text truncated to `columns` columns, with an ellipsis for the missing part.
    package static func cut(_ text: String, to columns: Int, isUnicode: Bool) -> String {
        guard self.columns(text) > columns else { return text }
        let ellipsis = isUnicode ? "…" : "..."
        guard columns > ellipsis.unicodeScalars.count else { return String(repeating: ".", count: max(0, columns)) }
        var kept = String.UnicodeScalarView()
        var left = columns - ellipsis.unicodeScalars.count
        for scalar in text.unicodeScalars {
            left -= self.columns(scalar)
            guard left >= 0 else { break }
            kept.append(scalar)
        }
        return String(kept) + ellipsis
    }

    /// Returns the text truncated, or filled with spaces, to exactly `columns` columns.
    package static func fill(_ text: String, to columns: Int, isUnicode: Bool) -> String {
        let cut = cut(text, to: columns, isUnicode: isUnicode)
        return cut + String(repeating: " ", count: max(0, columns - self.columns(cut)))
    }

    private static func hasKnownWidth(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .privateUse, .unassigned: false
        default: true
        }
    }

    private static func columns(_ scalar: Unicode.Scalar) -> Int {
        guard scalar.value >= 0x300 else { return 1 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: return isWide(scalar.value) ? 2 : 1
        }
    }

    /// Returns whether the character is an East Asian wide or full-width character, or an emoji.
    private static func isWide(_ value: UInt32) -> Bool {
        switch value {
        case 0x1100...0x115f, 0x2e80...0x303e, 0x3041...0x33ff, 0x3400...0x4dbf, 0x4e00...0xa4cf, 0xa960...0xa97f,
            0xac00...0xd7a3,
            0xf900...0xfaff, 0xfe10...0xfe19, 0xfe30...0xfe6f, 0xff00...0xff60, 0xffe0...0xffe6, 0x231a...0x231b, 0x2329...0x232a,
            0x23e9...0x23ec, 0x25fd...0x25fe, 0x2614...0x2615, 0x2648...0x2653, 0x26a1, 0x26bd...0x26be, 0x2705, 0x270a...0x270b,
            0x2728, 0x274c, 0x274e, 0x2753...0x2755, 0x2795...0x2797, 0x2b1b...0x2b1c, 0x2b50, 0x16fe0...0x18cff,
            0x1b000...0x1b2ff, 0x1f004, 0x1f0cf, 0x1f18e, 0x1f191...0x1f19a, 0x1f200...0x1f64f, 0x1f680...0x1f6ff,
            0x1f7e0...0x1f7eb, 0x1f90c...0x1f9ff, 0x1fa70...0x1faff, 0x20000...0x3fffd:
            true
        default: false
        }
    }
}
