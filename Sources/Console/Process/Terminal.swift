import CLinux
import Glibc

/// The properties of the terminal on a descriptor.
package enum Terminal {
    /// Returns whether lines can be redrawn, which a dumb terminal or a pipe cannot do.
    package static func isLive(_ environment: [String: String], on descriptor: Int32 = 2) -> Bool {
        guard isatty(descriptor) == 1, let kind = environment["TERM"], !kind.isEmpty else { return false }
        return kind != "dumb"
    }

    /// Returns the columns and rows; 80 and 24 if they are unknown.
    package static func size(of descriptor: Int32 = 2) -> (columns: Int, rows: Int) {
        var (columns, rows): (Int32, Int32) = (0, 0)
        netwatch_terminal_size(descriptor, &columns, &rows)
        return (columns > 0 ? Int(columns) : 80, rows > 0 ? Int(rows) : 24)
    }

    /// Returns whether the program runs in the background of the terminal (a shell's `bg`): the display is not drawn then.
    package static func isInBackground(of descriptor: Int32 = 2) -> Bool {
        let group = tcgetpgrp(descriptor)
        // If it is not the controlling terminal, tcgetpgrp(3) fails, and no other group owns it.
        return group > 0 && group != getpgrp()
    }

    /// Returns the local time's offset from UTC in seconds.
    package static func offset(at wallClockNanoseconds: Int64) -> Int {
        var (seconds, parts) = (time_t(wallClockNanoseconds / 1_000_000_000), tm())
        return localtime_r(&seconds, &parts) == nil ? 0 : parts.tm_gmtoff
    }
}
