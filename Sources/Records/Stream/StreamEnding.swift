package import Console
import Glibc

/// The reason why a loop that writes records or lines ended.
package enum StreamEnding: Hashable {
    /// The requested number of records or results, or the time, is reached.
    case finished
    /// The monitor ended, because its namespace no longer exists.
    case monitorEnded
    case signal(Int32)
    /// The reader of standard output is gone.
    case readerGone
    case outputFailed(errno: Int32)
}

extension StreamEnding {
    /// Ends the program as the stream has ended. Returns after ``finished``.
    ///
    /// - Throws: `monitorEnded` if the monitor has ended by itself, and ``Failure`` with code 74 if the output cannot be written.
    package func end(monitorEnded: @autoclosure () -> Failure) throws(Failure) {
        switch self {
        case .finished: return
        case .monitorEnded: throw monitorEnded()
        case .signal(let number): Signals.end(by: number)
        case .readerGone: Signals.end(by: SIGPIPE)
        case .outputFailed(let number): throw StandardOutput.failure(number)
        }
    }
}
