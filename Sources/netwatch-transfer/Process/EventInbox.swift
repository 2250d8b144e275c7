import Console
import EventLoop
import FoundationEssentials
import HTTPSession
import HTTPTypes
import Reachability

/// What the session's delivery thread hands to the main thread.
final class EventInbox: EventMonitor {
    struct Entry: Sendable {
        var task: UInt64
        var event: TransferEvent
        /// Of `answered`.
        var answer: TransferAnswer?
        var moment: Moment
    }

    /// A result of a probe.
    struct Finding: Sendable {
        var place: Int
        var endpoint: Endpoint
        var diagnosis: Diagnosis
        var moment: Moment
    }

    private struct State: Sendable {
        var entries: [Entry] = []
        var findings: [Finding] = []
        var isOver = false
    }

    /// Wakes the main thread when there may be something to take.
    let waker: Waker
    private let state = Locked(State())

    /// - Throws: ``Failure`` with code 71 where the system gives no descriptor.
    init() throws(Failure) {
        waker = try MainLoop.makeWaker()
    }

    func handle(_ event: SessionEvent) {
        switch event {
        case .requestStarted(let task, _): put(task, .requested)
        case .receivedResponse(let task, let head):
            var answer = TransferAnswer(status: head.statusCode, phrase: head.reasonPhrase)
            answer.tusVersions = EventInbox.tusVersion.flatMap { head.headerFields[$0] }
            put(task, .answered(status: answer.status, phrase: answer.phrase), answer)
        case .redirected(let task, let head): put(task, .redirected(to: head.headerFields[.location] ?? ""))
        case .willRetry(let task, let error): put(task, .failedForNow(Trouble(error)))
        case .waitingForConnectivity(let task, let error): put(task, .networkGone(Trouble(error)))
        case .downloadContinued(let task, let offset, let total): put(task, .continued(offset: offset, total: total))
        case .uploadContinued(let task, let offset, let total): put(task, .continued(offset: offset, total: total))
        case .taskCompleted(let task, .success(let response)):
            if task.kind == .download, response.statusCode == 304 {
                put(task, .unchanged(size: task.currentProgress.received))
            }
            if let file = response.file { put(task, .saved(file: file.path)) }
            put(task, .finished)
        case .taskCompleted(let task, .failure(let error)):
            let trouble = Trouble(error, of: task.kind == .download ? .download : .upload)
            put(task, error.code == .cancelled ? .stopped : .failed(trouble))
        case .sessionInvalidated:
            state.withLock { $0.isOver = true }
            waker.wake()
        case .transactionFinished(let task, let metrics): put(task, .measured(AttemptStage(metrics)))
        case .taskCreated, .taskResumed, .taskSuspended, .receivedInterimResponse, .challenged, .serverTrustChallenged,
            .clientCertificateChallenged, .becameDownload, .fileMoved, .fileMoveFailed, .eventsDropped:
            break
        }
    }

    private static let tusVersion = HTTPField.Name("Tus-Version")

    private func put(_ task: TransferTask, _ event: TransferEvent, _ answer: TransferAnswer? = nil) {
        let entry = Entry(task: task.id, event: event, answer: answer, moment: Clock.now)
        state.withLock { $0.entries.append(entry) }
        waker.wake()
    }

    /// Adds a result of a probe; called on any thread.
    func put(_ finding: Finding) {
        state.withLock { $0.findings.append(finding) }
        waker.wake()
    }

    /// The results of probes since the last call.
    func takeFindings() -> [Finding] {
        state.withLock { state in
            defer { state.findings = [] }
            return state.findings
        }
    }

    /// All that came since the last call.
    func takeAll() -> [Entry] {
        state.withLock { state in
            defer { state.entries = [] }
            return state.entries
        }
    }

    /// Whether the session has said its last word.
    var isOver: Bool { state.withLock { $0.isOver } }
}
