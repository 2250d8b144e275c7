import Console
import Glibc
import Reachability

/// A reader of the lines of a file or of standard input, with a limit on their length.
final class LineReader {
    /// The error for a line that cannot be read.
    struct DamageError: Error, Hashable {
        /// The number of the line, counted from 1.
        let line: Int
        let why: String
    }

    /// The maximum length of a line in bytes.
    static let longestLine = 16 << 20

    /// A handler that is called before each read, which may wait for input.
    var beforeReading: () throws -> Void = {}
    private let name: String
    private let descriptor: Int32
    private var buffer: [UInt8] = []
    private var start = 0
    private var lineNumber = 0
    private var isAtEnd = false

    /// - Throws: ``Failure`` with code 66 or 77 if the file cannot be opened.
    init(_ path: String) throws(Failure) {
        name = path == "-" ? "standard input" : path
        descriptor = path == "-" ? dup(0) : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let number = errno
            throw Failure(
                number == EACCES || number == EPERM ? ExitCode.notPermitted : ExitCode.noInput,
                "\(name): cannot open: \(errorText(number))"
            )
        }
    }

    deinit { close(descriptor) }

    /// Reads the next line, without its newline; `nil` at the end.
    func next() throws -> String? {
        var searched = start
        while true {
            if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                defer { start = end + 1 }
                return try line(buffer[start..<end])
            }
            if isAtEnd {
                guard start < buffer.count else { return nil }
                defer { start = buffer.count }
                return try line(buffer[start...])
            }
            buffer.removeSubrange(..<start)
            start = 0
            searched = buffer.count
            guard searched <= Self.longestLine else {
                throw DamageError(line: lineNumber + 1, why: "longer than 16 MiB")
            }
            try read()
        }
    }

    private func line(_ bytes: ArraySlice<UInt8>) throws(DamageError) -> String {
        lineNumber += 1
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw DamageError(line: lineNumber, why: "not UTF-8 text")
        }
        return text
    }

    private func read() throws {
        try beforeReading()
        let space = 1 << 16
        let old = buffer.count
        buffer.append(contentsOf: repeatElement(0, count: space))
        var count = -1
        repeat {
            count = buffer.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress?.advanced(by: old), space) }
        } while count < 0 && errno == EINTR
        let number = errno
        buffer.removeLast(space - max(count, 0))
        guard count >= 0 else { throw Failure(ExitCode.inputOutput, "\(name): cannot read: \(errorText(number))") }
        isAtEnd = count == 0
    }
}
