internal import ByteComparison
internal import EventLoop
internal import FoundationEssentials
internal import HTTPTypes
internal import Logging
internal import Metrics
internal import Synchronization

/// The monitor that writes events as log lines and counters. Messages are static, variable parts are metadata, and labels come from bounded
/// sets.
final class Telemetry: EventMonitor {
    private let logger: Logger
    /// Created once for each label, because creating a counter calls the metrics back end.
    private let counters = Locked<[Outcome: Counter]>([:])
    private let timers = Locked<[TransferTask.Kind: Timer]>([:])

    /// Whether the logger writes the lines of successful tasks. A copy, because the session's thread must not call a log handler of the user. It is
    /// read again with each handover, so a lowered level applies to the tasks that end after that.
    private let logsSuccesses: Atomic<Bool>

    private struct Outcome: Hashable {
        let kind: TransferTask.Kind
        @ExactString var name: String
    }

    /// The values of a successful task for the counters and the log.
    struct Success: Sendable {
        fileprivate let kind: TransferTask.Kind
        fileprivate let statusCode: Int
        fileprivate let seconds: Double
        /// The task, for its log line; `nil` if there is none.
        fileprivate let task: TransferTask?
    }

    init(logger: Logger) {
        self.logger = logger
        logsSuccesses = Atomic(logger.logLevel <= .debug)
    }

    /// The values of a task that has ended with this response, to be recorded later.
    func success(of task: TransferTask, _ response: TransferResponse) -> Success {
        Success(
            kind: task.kind, statusCode: response.statusCode, seconds: response.metrics.taskInterval.duration,
            task: logsSuccesses.load(ordering: .relaxed) ? task : nil)
    }

    /// Records successful tasks, on the delivery queue.
    func record(_ successes: [Success]) {
        for success in successes { record(success) }
        logsSuccesses.store(logger.logLevel <= .debug, ordering: .relaxed)
    }

    private func record(_ success: Success) {
        record(success.kind, outcome: Telemetry.statusClass(success.statusCode), seconds: success.seconds)
        guard let task = success.task else { return }
        logger.debug("task completed", metadata: metadata(task, ["status": "\(success.statusCode)"]))
    }

    func handle(_ event: SessionEvent) {
        switch event {
        case .taskCompleted(let task, .success(let response)): record(success(of: task, response))
        case .taskCompleted(let task, .failure(let error)):
            record(task.kind, outcome: error.metricLabel, seconds: nil)
            logger.debug("task failed", metadata: metadata(task, ["error": "\(error.metricLabel)", "reason": "\(error.reason)"]))
        case .willRetry(let task, let error):
            Counter(label: "http_session_retries_total").increment()
            logger.debug("attempt repeated", metadata: metadata(task, ["error": "\(error.metricLabel)"]))
        case .waitingForConnectivity(let task, let error):
            Counter(label: "http_session_waits_total").increment()
            // Once for a task at a level that is shown by default: it may wait for days.
            logger.log(
                level: task.isFirstWait() ? .notice : .debug, "task waits for the network",
                metadata: metadata(task, ["reason": "\(error.reason)"]))
        case .downloadContinued(let task, let offset, _):
            Counter(label: "http_session_resumed_bytes_total").increment(by: offset)
            logger.debug("download continued", metadata: metadata(task, ["offset": "\(offset)"]))
        case .uploadContinued(let task, let offset, _):
            Counter(label: "http_session_resumed_bytes_total").increment(by: offset)
            logger.debug("upload continued", metadata: metadata(task, ["offset": "\(offset)"]))
        case .redirected(let task, let head):
            logger.debug("redirect followed", metadata: metadata(task, ["status": "\(head.statusCode)"]))
        case .challenged(let task, let challenge):
            logger.debug("credentials requested", metadata: metadata(task, ["scheme": "\(challenge.scheme.rawValue)"]))
        case .serverTrustChallenged(let task, let challenge):
            let reason = challenge.policyError?.metricLabel ?? "none"
            logger.debug("server trust decision requested", metadata: metadata(task, ["objection": "\(reason)"]))
        case .clientCertificateChallenged(let task, _):
            logger.debug("client certificate requested", metadata: metadata(task, [:]))
        case .becameDownload(let task, _): logger.debug("task became a download", metadata: metadata(task, [:]))
        case .fileMoveFailed(let task, let error):
            // Not a warning, which goes to standard error by default: the caller receives the task's error, and may have caused it.
            logger.debug("download not moved to its destination", metadata: metadata(task, ["reason": "\(error.reason)"]))
        case .sessionInvalidated: logger.debug("session invalidated")
        case .taskCreated, .taskResumed, .taskSuspended, .requestStarted, .receivedInterimResponse, .receivedResponse,
            .transactionFinished, .fileMoved, .eventsDropped:
            break
        }
    }

    private func metadata(_ task: TransferTask, _ more: Logger.Metadata) -> Logger.Metadata {
        more.merging(["task": "\(task.id)", "url": "\(task.request.url.withoutSecrets)"]) { own, _ in own }
    }

    private static func statusClass(_ code: Int) -> String {
        switch code {
        case 200..<300: "2xx"
        case 300..<400: "3xx"
        case 400..<500: "4xx"
        default: "5xx"
        }
    }

    private func record(_ kind: TransferTask.Kind, outcome: String, seconds: Double?) {
        let counter = counters.withLock { counters in
            let outcome = Outcome(kind: kind, name: outcome)
            if let known = counters[outcome] { return known }
            let new = Counter(
                label: "http_session_tasks_total", dimensions: [("kind", kind.rawValue), ("outcome", outcome.name)])
            counters[outcome] = new
            return new
        }
        counter.increment()
        guard let seconds else { return }
        let timer = timers.withLock { timers in
            if let known = timers[kind] { return known }
            let new = Timer(label: "http_session_task_duration", dimensions: [("kind", kind.rawValue)])
            timers[kind] = new
            return new
        }
        timer.recordSeconds(seconds)
    }
}
