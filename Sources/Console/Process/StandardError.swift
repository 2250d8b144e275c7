import Glibc

/// Messages for a person: one line each, in one write(2).
package enum StandardError {
    package static func say(_ failure: Failure) {
        say(line: failure.line)
    }

    /// What the program does not do, before its work begins.
    package static func note(_ text: String) { say(Failure(0, text)) }

    /// What is seen is late then, and less of it; whoever reads the records should know.
    package static func sayPolling() {
        say(line: "netwatch: netlink: the system refuses it or its events, so everything is looked at every 2s instead")
    }

    private static func say(line: String) {
        let bytes = Array("\(line)\n".utf8)
        // There is nowhere to report that reports cannot be written.
        _ = bytes.withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
    }
}
