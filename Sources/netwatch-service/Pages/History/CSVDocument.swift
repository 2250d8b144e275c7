/// A document of comma-separated values (RFC 4180), which spreadsheets open as text only.
struct CSVDocument {
    static let contentType = "text/csv; charset=utf-8"

    /// The characters with which a formula begins, also in their wide forms, which spreadsheets for Japanese accept.
    private static let starts = "=+-@\t\r\n＝＋－＠".unicodeScalars

    private(set) var bytes: [UInt8] = []

    /// Adds a line. A missing value is an empty cell.
    mutating func add(_ cells: [String?]) {
        for (index, cell) in cells.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            bytes += Self.cell(cell ?? "").utf8
        }
        bytes += "\r\n".utf8
    }

    /// Returns the text of a cell.
    ///
    /// A spreadsheet runs a cell that begins with `=`, `+`, `-`, `@`, a tab or a carriage return as a formula. An apostrophe before it makes
    /// it text (OWASP, "CSV Injection"). Control characters become U+FFFD.
    static func cell(_ text: String) -> String {
        var scalars = String.UnicodeScalarView()
        if let first = text.unicodeScalars.first(where: { $0 != " " && $0 != "\u{feff}" }), Self.starts.contains(first) {
            scalars.append("'")
        }
        // By scalars: a combining mark makes one character with a quotation mark.
        for scalar in text.unicodeScalars {
            scalars.append(MarkupText.isHarmless(scalar) ? scalar : "\u{fffd}")
            if scalar == "\"" { scalars.append(scalar) }
        }
        let isQuoted = scalars.contains { ",;\"'".unicodeScalars.contains($0) }
        return isQuoted ? "\"\(String(scalars))\"" : String(scalars)
    }
}
