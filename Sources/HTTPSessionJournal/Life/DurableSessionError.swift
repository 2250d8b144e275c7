public import Foundation

/// Why a durable session could not be opened, or did not take a task.
///
/// `code` is for programs, `reason` for people, ``metricLabel`` for counters. Nothing in it holds a secret.
public struct DurableSessionError: Error, Sendable, CustomStringConvertible {
    /// What went wrong, as one of a bounded set of names.
    public enum Code: String, Hashable, Sendable, CaseIterable {
        /// Another session, of this process or another, has this identifier open.
        case inUse = "in-use"
        /// A later version of this library has written the journal: it is left as it is.
        case journalIsNewer = "journal-is-newer"
        /// The journal, or its directory, cannot be read or written.
        case journalFailed = "journal-failed"
        /// Not 1 to 100 letters, digits, `.`, `-` and `_` of ASCII, or begins with a dot.
        case invalidIdentifier = "invalid-identifier"
        /// What ``HTTPSession/HTTPSessionManager`` said to the configuration; ``DurableSessionError/underlying`` is its error.
        case invalidConfiguration = "invalid-configuration"
        /// The task cannot be written down, or not without secrets.
        case invalidTask = "invalid-task"
        /// No handler has been registered under this name.
        case unknownHandler = "unknown-handler"
        /// One of ``DurableLimits``.
        case limitReached = "limit-reached"
        /// There is no such task, or it has not ended, or its event has been acknowledged.
        case unknownTask = "unknown-task"
        /// The session has been closed.
        case closed = "closed"
    }

    /// What went wrong.
    public let code: Code
    /// One line for a person, without a full stop.
    public let reason: String
    /// The error below this one.
    public let underlying: (any Error)?

    /// An error with its reason: one line, without a full stop and without secrets.
    public init(_ code: Code, _ reason: String, underlying: (any Error)? = nil) {
        self.code = code
        self.reason = reason
        self.underlying = underlying
    }

    /// A name from a bounded set, for a metric's dimension.
    public var metricLabel: String { code.rawValue }

    /// One line: the code's name and the reason.
    public var description: String { "\(code.rawValue): \(reason)" }
}

extension DurableSessionError: LocalizedError {
    /// The reason: one line for a person, without a full stop.
    public var errorDescription: String? { reason }
}
