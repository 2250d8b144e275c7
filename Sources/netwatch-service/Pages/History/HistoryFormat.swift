import Console

/// A document with a form for programs, for spreadsheets and for people.
protocol HistoryText: SendableMetatype {
    /// The parts of one line of JSON, without the newline.
    var jsonParts: [PartedDocument<JSONWriter>.Part] { get }
    /// The parts of lines of CSV.
    var csvParts: [PartedDocument<CSVDocument>.Part] { get }
    /// The parts of lines for people.
    var lineParts: [PartedDocument<[HistoryLine]>.Part] { get }
    /// Returns the lines in their order.
    static func ordered(_ lines: [HistoryLine]) -> [String]
}

/// A line for people, with the time by which some documents order them, in milliseconds since 1970.
struct HistoryLine: Hashable, Sendable {
    var time: Int64 = 0
    var text: String
}

extension HistoryText {
    func json() -> [UInt8] { HistoryFormat.json.document(self).rendered() }
    func csv() -> [UInt8] { HistoryFormat.csv.document(self).rendered() }
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

    /// Returns a document in this form, in pieces.
    func document<Text: HistoryText>(_ document: Text) -> any PiecewiseDocument {
        switch self {
        case .json: PartedDocument(JSONWriter(), document.jsonParts) { $0.bytes }
        case .csv: PartedDocument(CSVDocument(), document.csvParts) { $0.bytes }
        case .text: PartedDocument([], document.lineParts) { Array(Text.ordered($0).joined(separator: "\n").utf8) }
        }
    }

    /// Returns a document in this form.
    func bytes(_ document: some HistoryText) -> [UInt8] { self.document(document).rendered() }
}
