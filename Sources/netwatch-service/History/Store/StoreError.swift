/// The reason why the history cannot be opened, read or written.
struct StoreError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of the failure.
    enum Code: Hashable, Sendable {
        /// Another process has the state directory open.
        case inUse
        /// A later version of this program has written the history.
        case newer
        /// No history is in the directory. Only readers throw it.
        case missing
        /// The directory or a file cannot be opened, or belongs to somebody else.
        case refused
        /// The user may not read the directory or a file.
        case notPermitted
        /// The disk is full, or reading or writing failed.
        case inputOutput
        /// A query exceeded its time.
        case timedOut
        /// The store is closed.
        case closed
        /// The history has no such target.
        case unknownTarget
        /// The question is not valid.
        case invalid
    }

    let code: Code
    /// One line that names the path and the reason.
    let reason: String

    init(_ code: Code, _ reason: String) { (self.code, self.reason) = (code, reason) }

    var description: String { reason }
}
