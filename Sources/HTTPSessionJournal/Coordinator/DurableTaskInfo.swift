public import Foundation
public import HTTPSession

/// A snapshot of a durable session's task, as it is at one moment.
public struct DurableTaskInfo: Sendable, Identifiable, CustomStringConvertible {
    /// The direction of a task.
    @nonexhaustive public enum Kind: Hashable, Sendable {
        /// The task downloads a response to a file.
        case download
        /// The task uploads the body of a request.
        case upload
    }

    /// A random identifier, 32 hexadecimal digits, which is the same in all processes.
    public let id: String
    /// The direction of the task.
    public let kind: Kind
    /// The URL of the request, with its query.
    public let url: URL
    /// The destination of a download; `nil` for an upload.
    public let file: URL?
    /// The name of the handler that receives the event; `nil` if ``DurableSession/events`` delivers it.
    public let handler: String?
    /// The bytes that the application gave the task.
    public let context: Data
    /// The time at which the task was made.
    public let created: Date
    /// The time at which the task ends as ``DurableEvent/Outcome/expired``, unless it has ended before.
    public let expires: Date
    /// Whether the task has ended, and its event waits for acknowledgement.
    public let hasEnded: Bool
    /// The `TransferTask` that carries out the task in this process, for progress and suspension; `nil` if the task has ended, or
    /// while no `TransferTask` exists.
    ///
    /// To cancel the `TransferTask` cancels the durable task, but a crash immediately afterwards may undo that.
    /// ``DurableSession/cancel(_:)`` is permanent.
    public let transferTask: TransferTask?

    /// The kind, the identifier, and the URL without user, password, query and fragment.
    public var description: String {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return "\(kind) \(id)" }
        (parts.user, parts.password, parts.query, parts.fragment) = (nil, nil, nil, nil)
        return "\(kind) \(id) \(parts.string ?? "")"
    }

    /// Creates a snapshot, for tests of code that shows tasks or handles events.
    ///
    /// - Parameters:
    ///   - id: the identifier; a session's tasks have 32 random hexadecimal digits.
    ///   - kind: the direction of the task.
    ///   - url: the URL of the request.
    ///   - file: the destination of a download.
    ///   - handler: the name of the handler that receives the event.
    ///   - context: the bytes of the application.
    ///   - created: the time at which the task was made; now by default.
    ///   - expires: the time at which the task expires; `nil` for seven days after `created`.
    ///   - hasEnded: whether the task has ended.
    ///   - transferTask: the transfer in this process.
    public init(
        id: String = "00000000000000000000000000000001", kind: Kind, url: URL, file: URL? = nil, handler: String? = nil,
        context: Data = Data(), created: Date = Date(), expires: Date? = nil, hasEnded: Bool = false,
        transferTask: TransferTask? = nil
    ) {
        (self.id, self.kind, self.url, self.file) = (id, kind, url, file)
        (self.handler, self.context, self.created, self.hasEnded) = (handler, context, created, hasEnded)
        self.expires = expires ?? created.addingTimeInterval(7 * 24 * 3600)
        self.transferTask = transferTask
    }

    init(_ record: TaskRecord, transferTask: TransferTask?) {
        id = record.id
        kind = record.intent.kind == .download ? .download : .upload
        url = record.intent.url
        file = record.intent.destination.map { URL(fileURLWithPath: $0.file) }
        handler = record.handler
        context = record.context
        created = Date(timeIntervalSince1970: Double(record.created))
        expires = Date(timeIntervalSince1970: Double(record.expires))
        if case .ended = record.state { hasEnded = true } else { hasEnded = false }
        self.transferTask = transferTask
    }
}
