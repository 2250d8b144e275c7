import CLinux
import Glibc
import Reachability

/// A buffered writer of lines that never waits for its reader: bytes stay in the buffer until poll(2) reports that some can be
/// written.
package final class StandardOutput {
    package enum Outcome: Hashable {
        case wrote
        /// The reader is gone (EPIPE).
        case readerGone
        case failed(errno: Int32)
    }

    package let descriptor: Int32
    /// The maximum bytes of one write. For a pipe or a terminal, poll(2) guarantees only that PIPE_BUF bytes can be written.
    private let chunk: Int
    private var pending: [UInt8] = []
    private var written = 0

    /// - Throws: ``Failure`` with code 74 if the descriptor is closed or not open for writing.
    package init(descriptor: Int32 = 1) throws(Failure) {
        self.descriptor = descriptor
        let flags = fcntl(descriptor, F_GETFL)
        guard flags >= 0 else { throw Failure(ExitCode.inputOutput, "standard output: it is closed") }
        guard flags & O_ACCMODE != O_RDONLY else {
            throw Failure(ExitCode.inputOutput, "standard output: closed, or not open for writing")
        }
        var status = stat()
        let isFile = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        chunk = isFile ? 1 << 16 : Int(PIPE_BUF)
    }

    package var pendingCount: Int { pending.count - written }

    package func append(line: [UInt8]) {
        pending.append(contentsOf: line)
        pending.append(UInt8(ascii: "\n"))
    }

    /// Appends a piece of a line.
    package func append(piece bytes: [UInt8]) { pending.append(contentsOf: bytes) }

    /// Appends text without a newline, for the display of a terminal.
    package func append(_ text: String) { pending.append(contentsOf: text.utf8) }

    /// Writes one chunk. Call it when poll(2) has reported that the descriptor is writable.
    package func write() -> Outcome {
        guard pendingCount > 0 else { return .wrote }
        let count = pending.withUnsafeBytes { bytes in
            Glibc.write(descriptor, bytes.baseAddress?.advanced(by: written), min(pendingCount, chunk))
        }
        guard count >= 0 else { return outcome(errno) }
        written += count
        if written == pending.count {
            pending.removeAll(keepingCapacity: pending.capacity <= 1 << 17)
            written = 0
        } else if written >= 1 << 16 {
            pending.removeSubrange(..<written)
            written = 0
        }
        return .wrote
    }

    private func outcome(_ number: Int32) -> Outcome {
        switch number {
        case EAGAIN, EINTR: .wrote
        case EPIPE: .readerGone
        default: .failed(errno: number)
        }
    }

    /// Writes all pending bytes and waits for the reader, for documents and replays.
    ///
    /// - Throws: ``Failure`` with code 74. If the reader is gone, the program ends by SIGPIPE.
    package func flush() throws(Failure) {
        while pendingCount > 0 {
            var polling = Polling()
            _ = polling.add(descriptor, Int32(POLLOUT))
            polling.wait(until: nil)
            switch write() {
            case .wrote: continue
            case .readerGone: Signals.end(by: SIGPIPE)
            case .failed(let number): throw Self.failure(number)
            }
        }
    }

    package static func failure(_ number: Int32) -> Failure {
        Failure(ExitCode.inputOutput, "standard output: cannot write: \(errorText(number))")
    }
}
