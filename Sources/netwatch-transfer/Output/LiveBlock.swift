import Console

/// The lines at the bottom of a terminal that are drawn again and again, and what stays above them.
struct LiveBlock: Hashable {
    /// The lines as they stand, and how wide each is.
    private var lines: [String] = []
    private var widths: [Int] = []

    /// Draws: `permanent` stands above then, and `live` below.
    ///
    /// - Parameters:
    ///   - permanent: lines that stay.
    ///   - live: lines that the next frame replaces; none of them wider than the terminal.
    ///   - columns: of the terminal as it is now: where it has become narrower, it has broken the lines that stand there.
    ///   - isFresh: somebody else has written meanwhile: what was drawn stays where it is.
    /// - Returns: what to write; nothing where nothing has changed.
    mutating func frame(permanent: [String] = [], live: [String], columns: Int, isFresh: Bool = false) -> String {
        guard !permanent.isEmpty || live != lines || isFresh else { return "" }
        var text = ""
        let rows = isFresh ? 0 : widths.reduce(0) { $0 + max(1, ($1 + columns - 1) / max(1, columns)) }
        if rows > 0 { text += "\u{1b}[\(rows)A\r" }
        for line in permanent + live { text += "\(line)\u{1b}[K\n" }
        if rows > 0 { text += "\u{1b}[J" }
        lines = live
        widths = live.map { DisplayWidth.columns(Self.plain($0)) }
        return text
    }

    /// Without colours.
    private static func plain(_ line: String) -> String {
        guard line.contains("\u{1b}") else { return line }
        var result = String.UnicodeScalarView()
        var isSequence = false
        for scalar in line.unicodeScalars {
            if isSequence {
                isSequence = scalar != "m"
            } else if scalar == "\u{1b}" {
                isSequence = true
            } else {
                result.append(scalar)
            }
        }
        return String(result)
    }
}
