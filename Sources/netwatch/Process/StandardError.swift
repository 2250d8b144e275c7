import Glibc

/// Messages for a person: one line each, in one write(2).
enum StandardError {
    static func say(_ failure: Failure) {
        say(line: failure.line)
    }

    private static func say(line: String) {
        let bytes = Array("\(line)\n".utf8)
        // There is nowhere to report that reports cannot be written.
        _ = bytes.withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
    }
}
