import Console
import FoundationEssentials
import Reachability

/// How the records of a stream are written.
enum OutputFormat: Hashable {
    /// A line of JSON each.
    case json
    /// A line of text each, for pipes and files.
    case plain(TextStyle)
    /// Lines with detail and relative times, for terminals.
    case live(TextStyle)
}

/// Turns records into the lines of one stream.
struct RecordPrinter {
    private let encoder: RecordEncoder
    private var plain: PlainLines?
    private var live: LiveLines?

    init(format: OutputFormat, header: StreamHeader, isVerbose: Bool = false) {
        encoder = RecordEncoder(header: header)
        switch format {
        case .json: (plain, live) = (nil, nil)
        case .plain(let style): (plain, live) = (PlainLines(header: header, style: style, isVerbose: isVerbose), nil)
        case .live(let style): (plain, live) = (nil, LiveLines(header: header, style: style, isVerbose: isVerbose))
        }
    }

    /// Whether lines are for a terminal, and cut to ``columns``.
    var isLive: Bool { live != nil }

    /// The terminal's columns.
    var columns: Int? {
        get { live?.columns }
        set { live?.columns = newValue }
    }

    /// The record's lines without their newlines.
    mutating func lines(_ record: Record) -> [[UInt8]] {
        if let lines = live?.lines(record) { return lines.map { Array($0.utf8) } }
        if let line = plain?.line(record) { return [Array(line.utf8)] }
        return [encoder.encode(record)]
    }
}
