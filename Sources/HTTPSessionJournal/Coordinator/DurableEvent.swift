public import Foundation
public import HTTPSession

/// The end of a task. It is delivered after every start, until it is acknowledged.
public struct DurableEvent: Sendable, Identifiable, CustomStringConvertible {
    /// The result of a task.
    @nonexhaustive public enum Outcome: Sendable {
        /// The complete file is at its destination, or the server has accepted the upload. The response is `nil` if the process that
        /// received it was killed before it could record the response.
        case finished(Response?)
        /// The task failed permanently. Temporary failures were retried by the task's retry policy.
        case failed(HTTPSessionError)
        /// The task did not end before ``DurableTaskInfo/expires``.
        case expired
        /// The task was canceled.
        case cancelled
        /// The process ended, the server may have executed the request, and a second execution can do harm. An example is a POST without an
        /// upload protocol. The request was not sent again.
        case interrupted
    }

    /// The final response of the server.
    public struct Response: Hashable, Sendable {
        /// The status code (RFC 9110 section 15).
        public let statusCode: Int
        /// The URL that answered, after redirects.
        public let url: URL
        /// The first bytes of the response to an upload, at most ``DurableLimits/responseBodyBytes``; empty for a download.
        public let body: Data

        /// Creates a response, for tests of code that handles events.
        public init(statusCode: Int, url: URL, body: Data = Data()) {
            (self.statusCode, self.url, self.body) = (statusCode, url, body)
        }
    }

    /// The identifier of the event, which is the identifier of its task. It is the same at every delivery, and no other event has it.
    public var id: String { task.id }
    /// The task that has ended.
    public let task: DurableTaskInfo
    /// The result of the task.
    public let outcome: Outcome
    private let acknowledgement: @Sendable () async throws(DurableSessionError) -> Void

    /// Creates an event, for tests of code that handles events.
    ///
    /// ```swift
    /// let task = DurableTaskInfo(kind: .download, url: url, hasEnded: true)
    /// await handle(DurableEvent(task: task, outcome: .finished(nil)))
    /// ```
    ///
    /// - Parameters:
    ///   - task: the task that has ended.
    ///   - outcome: the result of the task.
    ///   - acknowledge: the function that ``acknowledge()`` calls. It may record the call, or throw the error of a disk that refuses. By
    ///     default it does nothing.
    public init(
        task: DurableTaskInfo, outcome: Outcome,
        acknowledge: @escaping @Sendable () async throws(DurableSessionError) -> Void = {}
    ) {
        (self.task, self.outcome, acknowledgement) = (task, outcome, acknowledge)
    }

    /// An event of a session. Its handlers may keep it, and the coordinator retains the handlers: the event retains no coordinator.
    init(_ task: DurableTaskInfo, _ outcome: Outcome, of coordinator: TaskCoordinator) {
        self.init(task: task, outcome: outcome) { [weak coordinator, id = task.id] () throws(DurableSessionError) in
            guard let coordinator else { throw TaskCoordinator.closed }
            try await coordinator.acknowledge(id)
        }
    }

    /// The description of the task, and the outcome.
    public var description: String { "\(task): \(outcome)" }

    /// Removes the event and its task from the journal: once this method returns, the event is never delivered again.
    ///
    /// Write the results of the event to the disk first. A process that is killed before this method returns receives the same event again,
    /// under the same ``id``.
    ///
    /// - Throws: ``DurableSessionError/Code/unknownTask`` if the event has been acknowledged before;
    ///   ``DurableSessionError/Code/closed`` if its session is closed: the event is delivered after the next start;
    ///   ``DurableSessionError/Code/journalFailed`` if the disk refuses: the event is delivered again ten seconds later.
    public func acknowledge() async throws(DurableSessionError) {
        try await acknowledgement()
    }
}

extension DurableEvent.Outcome {
    init(_ outcome: Outcome) {
        self =
            switch outcome {
            case .finished(let response):
                .finished(response.map { .init(statusCode: $0.statusCode, url: $0.url, body: $0.body) })
            case .failed(let failure): .failed(failure.error)
            case .expired: .expired
            case .cancelled: .cancelled
            case .interrupted: .interrupted
            }
    }
}

extension DurableEvent.Outcome {
    /// The outcome as one line of a program's log.
    package var line: String {
        switch self {
        case .finished: "finished"
        case .failed(let error): "failed \(error)"
        case .expired: "expired"
        case .cancelled: "cancelled"
        case .interrupted: "interrupted"
        }
    }
}
