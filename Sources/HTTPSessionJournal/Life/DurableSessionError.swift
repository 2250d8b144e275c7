public import Foundation

/// The error of a durable session that cannot be opened, or that refuses a call.
///
/// Programs use ``code``, people read ``reason``, and metrics count by ``metricLabel``. None of them contains a secret.
public struct DurableSessionError: Error, Sendable, CustomStringConvertible {
    /// The kind of an error, from a bounded set. Later versions may add codes.
    public struct Code: RawRepresentable, Hashable, Sendable, CaseIterable, CustomStringConvertible {
        /// The name in logs and metrics, such as `in-use` or `closed`.
        public let rawValue: String

        /// The code's name in logs and metrics.
        public var description: String { rawValue }

        /// Creates a code from its name. Unknown names are allowed.
        public init(rawValue: String) { self.rawValue = rawValue }

        private init(_ name: String) { rawValue = name }

        /// Another session, of this process or another, has this identifier open.
        public static let inUse = Code("in-use")
        /// A later version of this library has written the journal, which stays unchanged.
        public static let journalIsNewer = Code("journal-is-newer")
        /// The journal or its directory cannot be read or written, or has an owner or permissions that are not safe.
        public static let journalFailed = Code("journal-failed")
        /// The identifier does not have 1 to 100 ASCII letters, digits, `.`, `-` and `_`, or it begins with a dot.
        public static let invalidIdentifier = Code("invalid-identifier")
        /// `HTTPSessionManager` refuses the configuration; ``DurableSessionError/underlying`` is its error.
        public static let invalidConfiguration = Code("invalid-configuration")
        /// The task cannot be written to the journal, or contains secrets.
        public static let invalidTask = Code("invalid-task")
        /// No handler is registered with the name of the task.
        public static let unknownHandler = Code("unknown-handler")
        /// The task exceeds one of ``DurableLimits``.
        public static let limitReached = Code("limit-reached")
        /// The task does not exist, has not ended, or its event has been acknowledged.
        public static let unknownTask = Code("unknown-task")
        /// The session has been closed.
        public static let closed = Code("closed")
        /// The task that opened the session was canceled before the opening was complete.
        public static let cancelled = Code("cancelled")

        /// The codes that this version knows.
        public static let allCases: [Code] = [
            .inUse, .journalIsNewer, .journalFailed, .invalidIdentifier, .invalidConfiguration, .invalidTask,
            .unknownHandler, .limitReached, .unknownTask, .closed, .cancelled,
        ]
    }

    /// The kind of the error.
    public let code: Code
    /// The explanation for a person: one line without a full stop.
    public let reason: String
    /// The error that caused this one, if there is one.
    public let underlying: (any Error)?

    /// Creates an error. Its reason is one line, without a full stop and without secrets.
    public init(_ code: Code, _ reason: String, underlying: (any Error)? = nil) {
        self.code = code
        self.reason = reason
        self.underlying = underlying
    }

    /// The name of the code, from a bounded set, for a metric's dimension.
    public var metricLabel: String { code.rawValue }

    /// The code's name and the reason, in one line.
    public var description: String { "\(code.rawValue): \(reason)" }
}

extension DurableSessionError: LocalizedError {
    /// The reason: one line for a person, without a full stop.
    public var errorDescription: String? { reason }
}
