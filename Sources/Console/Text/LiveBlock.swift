/// The lines at the bottom of a terminal that are redrawn, below permanent lines.
package struct LiveBlock: Hashable {
    /// The lines on the screen, and the width of each.
    private var lines: [String] = []
    private var widths: [Int] = []

    package init() {}

    /// Returns the text that draws the next frame: permanent lines above, live lines below.
    ///
    /// - Parameters:
    ///   - permanent: The lines that stay.
    ///   - live: The lines that the next frame replaces; none of them is wider than the terminal.
    ///   - columns: The current columns of the terminal. A terminal that became narrower has wrapped the lines on the screen.
    ///   - isFresh: Whether another program has written to the terminal meanwhile: the lines on the screen are not replaced then.
    /// - Returns: The text to write; empty if nothing has changed.
    package mutating func frame(permanent: [String] = [], live: [String], columns: Int, isFresh: Bool = false) -> String {
        guard !permanent.isEmpty || live != lines || isFresh else { return "" }
        var text = ""
        let rows = isFresh ? 0 : widths.reduce(0) { $0 + max(1, ($1 + columns - 1) / max(1, columns)) }
        if rows > 0 { text += "\u{1b}[\(rows)A\r" }
        for line in permanent + live { text += "\(line)\u{1b}[K\n" }
        if rows > 0 { text += "\u{1b}[J" }
        lines = live
        widths = live.map { DisplayWidth.paintedColumns($0) }
        return text
    }
}
