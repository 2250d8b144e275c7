import Console
import EventLoop
import FoundationEssentials
import HTTPSession
import HTTPTypes
import Reachability

/// The queue of events from the session's delivery thread to the main thread.
final class EventInbox: EventMonitor {
    struct Entry: Sendable {
        var task: UInt64
        var event: TransferEvent
        /// The response of an `answered` event.
        var answer: TransferAnswer?
        var moment: Moment
    }

    /// The result of a probe.
    struct ProbeResult: Sendable {
        var place: Int
        var endpoint: Endpoint
        var diagnosis: Diagnosis
        var moment: Moment
    }

    private struct State: Sendable {
        var entries: [Entry] = []
        var probeResults: [ProbeResult] = []
        var hasEnded = false
    }

    /// The waker that wakes the main thread when an event may be available.
    let waker: Waker
    private let state = Locked(State())

    /// - Throws: ``Failure`` with code 71 if the system has no descriptor left.
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
        case .willRetry(let task, let error): put(task, .failedForNow(TransferProblem(error)))
        case .waitingForConnectivity(let task, let error): put(task, .networkGone(TransferProblem(error)))
        case .downloadContinued(let task, let offset, let total): put(task, .continued(offset: offset, total: total))
        case .uploadContinued(let task, let offset, let total): put(task, .continued(offset: offset, total: total))
        case .taskCompleted(let task, .success(let response)):
            if task.kind == .download, response.statusCode == 304 {
                put(task, .unchanged(size: task.currentProgress.bytesReceived))
            }
            if let file = response.file { put(task, .saved(file: file.path)) }
            put(task, .finished)
        case .taskCompleted(let task, .failure(let error)):
            let problem = TransferProblem(error, of: task.kind == .download ? .download : .upload)
            put(task, error.code == .cancelled ? .stopped : .failed(problem))
        case .sessionInvalidated:
            state.withLock { $0.hasEnded = true }
            waker.wake()
        case .transactionFinished(let task, let metrics): put(task, .measured(AttemptStage(metrics)))
        case .taskCreated, .taskResumed, .taskSuspended, .receivedInterimResponse, .challenged, .serverTrustChallenged,
            .clientCertificateChallenged, .becameDownload, .fileMoved, .fileMoveFailed, .eventsDropped:
            break
        }
    }

    private static let tusVersion = HTTPField.Name("Tus-Version")

    private func put(_ task: TransferTask, _ event: TransferEvent, _ answer: TransferAnswer? = nil) {
        let entry = Entry(task: task.id, event: event, answer: answer, moment: Moment.now)
        state.withLock { $0.entries.append(entry) }
        waker.wake()
    }

    /// Adds the result of a probe. It may be called on any thread.
    func put(_ result: ProbeResult) {
        state.withLock { $0.probeResults.append(result) }
        waker.wake()
    }

    /// Takes the results of probes since the last call.
    func takeProbeResults() -> [ProbeResult] {
        state.withLock { state in
            defer { state.probeResults = [] }
            return state.probeResults
        }
    }

    /// Takes all events since the last call.
    func takeAll() -> [Entry] {
        state.withLock { state in
            defer { state.entries = [] }
            return state.entries
        }
    }

    /// Whether the session has ended: no event follows.
    var hasEnded: Bool { state.withLock { $0.hasEnded } }
}
