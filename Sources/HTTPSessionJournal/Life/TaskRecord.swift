internal import Foundation

/// A task as the journal has it.
struct TaskRecord: Hashable, Sendable, Identifiable {
    /// Random, of 128 bits, in hexadecimal digits.
    let id: String
    var intent: Intent
    /// Whose events these are.
    var handler: String
    /// The application's own.
    var context: Data
    /// Seconds since 1970.
    var created: Int64
    var expires: Int64
    var state = TaskLife.State.waiting
    /// Where the server says that the upload goes on.
    var place: URL?
}
