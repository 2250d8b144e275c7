public import Foundation
public import HTTPSession

/// A task of a durable session, as it is at one moment.
public struct DurableTask: Sendable, Identifiable, CustomStringConvertible {
    /// What it does.
    @nonexhaustive public enum Kind: Hashable, Sendable {
        case download, upload
    }

    /// Random, and the same in all processes.
    public let id: String
    /// What it does.
    public let kind: Kind
    /// What was asked for, with its query.
    public let url: URL
    /// Where a download goes; `nil` for an upload.
    public let file: URL?
    /// The name of the handler that hears of its end.
    public let handler: String
    /// What the application gave it.
    public let context: Data
    /// When it was made.
    public let created: Date
    /// When it ends, if nothing else has ended it before.
    public let expires: Date
    /// Whether it has ended: its event waits for acknowledgement.
    public let hasEnded: Bool
    /// What does it in this process, for its progress, and to suspend it for a while; `nil`: it has ended, or is about to. To cancel this is to
    /// cancel the durable task, though a crash right after may undo it: ``DurableSession/cancel(_:)`` cannot be undone.
    public let transfer: TransferTask?

    /// The kind, and the address without user, password and query.
    public var description: String {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return "\(kind) \(id)" }
        (parts.user, parts.password, parts.query, parts.fragment) = (nil, nil, nil, nil)
        return "\(kind) \(id) \(parts.string ?? "")"
    }

    init(_ record: TaskRecord, transfer: TransferTask?) {
        id = record.id
        kind = record.intent.kind == .download ? .download : .upload
        url = record.intent.url
        file = record.intent.destination.map { URL(fileURLWithPath: $0.file) }
        handler = record.handler
        context = record.context
        created = Date(timeIntervalSince1970: Double(record.created))
        expires = Date(timeIntervalSince1970: Double(record.expires))
        if case .ended = record.state { hasEnded = true } else { hasEnded = false }
        self.transfer = transfer
    }
}
