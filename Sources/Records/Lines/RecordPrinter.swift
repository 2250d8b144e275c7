package import Console
import FoundationEssentials
import Reachability

/// The output format of a stream.
package enum OutputFormat: Hashable {
    /// One line of JSON per record.
    case json
    /// One line of text per record, for pipes and files.
    case plain(TextStyle)
    /// Lines with details and relative times, for terminals.
    case live(TextStyle)
}

/// A printer that converts the records of one stream to lines.
package struct RecordPrinter {
    private let encoder: RecordEncoder
    private var plain: PlainLines?
    private var live: LiveLines?

    /// Creates a printer. - Parameter time: the times of text; `nil` for relative ones on a terminal, and UTC in a pipe.
    package init(format: OutputFormat, header: StreamHeader, isVerbose: Bool = false, time: TimeText? = nil) {
        encoder = RecordEncoder(header: header)
        switch format {
        case .json: (plain, live) = (nil, nil)
        case .plain(let style): (plain, live) = (PlainLines(header: header, style: style, isVerbose: isVerbose, time: time), nil)
        case .live(let style): (plain, live) = (nil, LiveLines(header: header, style: style, isVerbose: isVerbose, time: time))
        }
    }

    /// Whether the lines are for a terminal, and wrapped to ``columns``.
    package var isLive: Bool { live != nil }

    /// The terminal's columns.
    package var columns: Int? {
        get { live?.columns }
        set { live?.columns = newValue }
    }

    /// Returns the record's lines without their newlines.
    package mutating func lines(_ record: Record) -> [[UInt8]] {
        if let lines = live?.lines(record) { return lines.map { Array($0.utf8) } }
        if let line = plain?.line(record) { return [Array(line.utf8)] }
        // Most records are shorter.
        return [encoder.encode(record, capacity: 1 << 10)]
    }
}
