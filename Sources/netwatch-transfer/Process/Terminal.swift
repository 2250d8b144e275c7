import CLinux
import Console
import Glibc

/// What standard error is, where it is a terminal.
enum Terminal {
    /// Whether lines can be drawn over: what a dumb terminal or a pipe cannot.
    static func isLive(_ environment: [String: String]) -> Bool {
        guard isatty(2) == 1, let kind = environment["TERM"], !kind.isEmpty else { return false }
        return kind != "dumb"
    }

    /// Columns and rows; 80 and 24 where nobody says.
    static var size: (columns: Int, rows: Int) {
        var (columns, rows): (Int32, Int32) = (0, 0)
        netwatch_terminal_size(2, &columns, &rows)
        return (columns > 0 ? Int(columns) : 80, rows > 0 ? Int(rows) : 24)
    }

    /// Whether the terminal belongs to somebody else for now: then nothing is drawn (a shell's `bg`).
    static var isInBackground: Bool {
        let group = tcgetpgrp(2)
        // Not our controlling terminal: nobody else's either.
        return group > 0 && group != getpgrp()
    }

    /// How far the local time is ahead of UTC, in seconds.
    static func offset(at wallClockNanoseconds: Int64) -> Int {
        var (seconds, parts) = (time_t(wallClockNanoseconds / 1_000_000_000), tm())
        return localtime_r(&seconds, &parts) == nil ? 0 : parts.tm_gmtoff
    }
}
