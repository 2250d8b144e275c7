public import Foundation

/// Why a durable session could not be opened, or did not take a task.
///
/// `code` is for programs, `reason` for people, ``metricLabel`` for counters. Nothing in it holds a secret.
public struct DurableSessionError: Error, Sendable, CustomStringConvertible {
    /// What went wrong, as one of a bounded set of names. Later versions may add codes.
    public struct Code: RawRepresentable, Hashable, Sendable, CaseIterable {
        /// The name in logs and metrics: `in-use`, `closed`, ….
        public let rawValue: String

        /// A code by its name; unknown names are allowed.
        public init(rawValue: String) { self.rawValue = rawValue }

        private init(_ name: String) { rawValue = name }

        /// Another session, of this process or another, has this identifier open.
        public static let inUse = Code("in-use")
        /// A later version of this library has written the journal: it is left as it is.
        public static let journalIsNewer = Code("journal-is-newer")
        /// The journal, or its directory, cannot be read or written.
        public static let journalFailed = Code("journal-failed")
        /// Not 1 to 100 letters, digits, `.`, `-` and `_` of ASCII, or begins with a dot.
        public static let invalidIdentifier = Code("invalid-identifier")
        /// What `HTTPSessionManager` said to the configuration; ``DurableSessionError/underlying`` is its error.
        public static let invalidConfiguration = Code("invalid-configuration")
        /// The task cannot be written down, or not without secrets.
        public static let invalidTask = Code("invalid-task")
        /// No handler has been registered under this name.
        public static let unknownHandler = Code("unknown-handler")
        /// One of ``DurableLimits``.
        public static let limitReached = Code("limit-reached")
        /// There is no such task, or it has not ended, or its event has been acknowledged.
        public static let unknownTask = Code("unknown-task")
        /// The session has been closed.
        public static let closed = Code("closed")

        /// The codes that this version knows.
        public static let allCases: [Code] = [
            .inUse, .journalIsNewer, .journalFailed, .invalidIdentifier, .invalidConfiguration, .invalidTask,
            .unknownHandler, .limitReached, .unknownTask, .closed,
        ]
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
