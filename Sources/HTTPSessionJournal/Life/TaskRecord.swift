internal import Foundation

/// A task as the journal stores it.
struct TaskRecord: Hashable, Sendable, Identifiable {
    /// A random number of 128 bits, in hexadecimal digits.
    let id: String
    var intent: Intent
    /// The name of the handler that receives the event; `nil` for the session's sequence of events.
    var handler: String?
    /// The bytes that the application gave the task.
    var context: Data
    /// Seconds since 1970.
    var created: Int64
    /// Seconds since 1970.
    var expires: Int64
    var state = TaskLifecycle.State.waiting
    /// The URL at which the server continues the upload, as the server has announced it.
    var uploadLocation: URL?
}
