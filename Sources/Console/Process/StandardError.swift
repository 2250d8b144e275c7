import Glibc

/// Messages for a person on standard error: one line each, broken at words on a
/// terminal, in one write(2).
package enum StandardError {
    package static func report(_ failure: Failure) {
        write(line: failure.line)
    }

    /// Reports a limitation that does not end the program.
    package static func note(_ text: String) { report(Failure(0, text)) }

    /// Reports that the monitor polls: changes are reported later, and fewer of them.
    package static func reportPolling() {
        write(line: "netwatch: netlink: the system refuses it or its events; interfaces and routes are polled every 2s instead")
    }

    /// Writes a line. On a terminal it is broken at words.
    package static func write(line: String) { write(lines(line).map { "\($0)\n" }.joined()) }

    /// Returns the lines of a message: on a terminal as many as its width needs, otherwise one.
    package static func lines(_ line: String) -> [String] {
        guard isatty(STDERR_FILENO) == 1 else { return [line] }
        return WrappedText.lines(line, columns: max(1, TerminalSize.columns(of: STDERR_FILENO) - 1), indentation: 2)
    }

    /// Writes text without a newline of its own, for the display of a terminal.
    package static func write(_ text: String) {
        guard !text.isEmpty else { return }
        let bytes = Array(text.utf8)
        // If standard error cannot be written, there is no other place for the message.
        _ = bytes.withUnsafeBytes { Glibc.write(2, $0.baseAddress, $0.count) }
    }
}
