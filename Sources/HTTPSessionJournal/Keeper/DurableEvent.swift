public import Foundation
public import HTTPSession

/// The end of a task, which is delivered at every start until it is acknowledged.
public struct DurableEvent: Sendable, Identifiable, CustomStringConvertible {
    /// How a task has ended.
    @nonexhaustive public enum Outcome: Sendable {
        /// The file is at its destination, or the upload with its server. `nil`: the process that heard the answer was killed before it could
        /// write it down.
        case finished(Response?)
        /// Its temporary causes have been tried again before, as the task's retry policy says.
        case failed(HTTPSessionError)
        /// It has taken longer than ``DurableTask/expires``.
        case expired
        case cancelled
        /// Its process has ended when the request may have been carried out, and a second one might do harm: a POST that no protocol lets go
        /// on. Nothing was sent again.
        case interrupted
    }

    /// The final answer.
    public struct Response: Hashable, Sendable {
        /// RFC 9110 section 15.
        public let statusCode: Int
        /// Where it came from, after redirects.
        public let url: URL
        /// Of an upload's answer, at most ``DurableLimits/answerBytes``; empty for a download.
        public let body: Data
    }

    /// The same at every delivery, and no other event's: that of its task, which ends once.
    public var id: String { task.id }
    /// The task that has ended.
    public let task: DurableTask
    /// How.
    public let outcome: Outcome
    /// Handlers may keep their events, and the keeper has the handlers: neither is to keep the other for ever.
    weak var keeper: Keeper?

    /// The task's address without user, password and query, and how it ended.
    public var description: String { "\(task): \(outcome)" }

    /// Says that the event has done its work: when this returns, it never comes again, and its task is forgotten.
    ///
    /// What a handler does should be on the disk before. A handler that is killed in between hears the same event again.
    ///
    /// - Throws: ``DurableSessionError/Code/closed`` when its session is closed or gone: it comes again at the next start.
    public func acknowledge() async throws(DurableSessionError) {
        guard let keeper else { throw Keeper.closed }
        try await keeper.acknowledge(id)
    }
}

extension DurableEvent.Outcome {
    init(_ outcome: Outcome) {
        self =
            switch outcome {
            case .finished(let answer):
                .finished(answer.map { .init(statusCode: $0.statusCode, url: $0.url, body: $0.body) })
            case .failed(let failure): .failed(failure.error)
            case .expired: .expired
            case .cancelled: .cancelled
            case .interrupted: .interrupted
            }
    }
}

extension DurableEvent.Outcome {
    /// In a line of a program's own record.
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
