import CLinux
import Glibc
import Reachability

/// A descriptor to write lines to without ever waiting for its reader: bytes are kept until poll(2) says that some fit.
package final class StandardOutput {
    package enum Outcome: Hashable {
        case wrote
        /// Nobody reads any more (EPIPE).
        case readerGone
        case failed(errno: Int32)
    }

    package let descriptor: Int32
    /// How much is written at once. poll(2) says of a pipe or terminal only that PIPE_BUF bytes fit.
    private let chunk: Int
    private var pending: [UInt8] = []
    private var written = 0

    /// - Throws: ``Failure`` with code 74 when the descriptor is closed or not open for writing.
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

    /// What is no line: a terminal's picture.
    package func append(_ text: String) { pending.append(contentsOf: text.utf8) }

    /// Writes one chunk; to be called when poll(2) said that the descriptor is writable.
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

    /// Writes everything, waiting for the reader: for documents and replays, which have nothing else to do.
    ///
    /// - Throws: ``Failure`` with code 74. Where nobody reads any more, the program ends as by SIGPIPE.
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
