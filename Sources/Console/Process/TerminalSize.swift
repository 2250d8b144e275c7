import CLinux

/// The size of a terminal.
package enum TerminalSize {
    /// Returns the columns of a descriptor's terminal; 80 if they are unknown.
    package static func columns(of descriptor: Int32) -> Int {
        var (columns, rows): (Int32, Int32) = (0, 0)
        netwatch_terminal_size(descriptor, &columns, &rows)
        return columns > 0 ? Int(columns) : 80
    }
}
