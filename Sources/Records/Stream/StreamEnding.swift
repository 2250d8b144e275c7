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
