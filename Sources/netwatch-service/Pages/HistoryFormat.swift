/// A document with a form for programs, for spreadsheets and for people.
protocol HistoryText {
    func json() -> [UInt8]
    func csv() -> [UInt8]
    func lines() -> [String]
}

extension HistoryDocument: HistoryText {}
extension ReportDocument: HistoryText {}

/// The form of an answer about the history.
enum HistoryFormat: String, Hashable, Sendable, CaseIterable {
    case json, csv, text

    var contentType: String {
        switch self {
        case .json: "application/json"
        case .csv: CSVDocument.contentType
        case .text: "text/plain; charset=utf-8"
        }
    }

    /// Returns the document in this form.
    func bytes(_ document: some HistoryText) -> [UInt8] {
        switch self {
        case .json: document.json()
        case .csv: document.csv()
        case .text: Array(document.lines().joined(separator: "\n").utf8)
        }
    }
}
