internal import Foundation
internal import HTTPTypes
internal import Logging
internal import Metrics

/// Events as log lines and counters: static messages, what varies as metadata; labels from bounded sets.
struct Telemetry: EventMonitor {
    let logger: Logger

    func handle(_ event: SessionEvent) {
        switch event {
        case .taskCompleted(let task, .success(let response)):
            record(task, outcome: "\(response.statusCode / 100)xx", seconds: response.metrics.taskInterval.duration)
            logger.debug("task completed", metadata: metadata(task, ["status": "\(response.statusCode)"]))
        case .taskCompleted(let task, .failure(let error)):
            record(task, outcome: error.metricLabel, seconds: nil)
            logger.debug("task failed", metadata: metadata(task, ["error": "\(error.metricLabel)", "reason": "\(error.reason)"]))
        case .willRetry(let task, let error):
            Counter(label: "http_session_retries_total").increment()
            logger.debug("attempt repeated", metadata: metadata(task, ["error": "\(error.metricLabel)"]))
        case .redirected(let task, let head): logger.debug("redirect followed", metadata: metadata(task, ["status": "\(head.statusCode)"]))
        case .challenged(let task, let challenge):
            logger.debug("credentials asked for", metadata: metadata(task, ["scheme": "\(challenge.scheme.rawValue)"]))
        case .fileMoveFailed(let task, let error): logger.warning("download lost its place", metadata: metadata(task, ["reason": "\(error.reason)"]))
        case .sessionInvalidated: logger.debug("session invalidated")
        case .taskCreated, .taskResumed, .taskSuspended, .requestStarted, .receivedInterimResponse, .receivedResponse, .transactionFinished,
            .fileMoved:
            break
        }
    }

    private func metadata(_ task: TransferTask, _ more: Logger.Metadata) -> Logger.Metadata {
        more.merging(["task": "\(task.id)", "url": "\(task.request.url.withoutSecrets)"]) { own, _ in own }
    }

    private func record(_ task: TransferTask, outcome: String, seconds: Double?) {
        let kind =
            switch task.kind {
            case .data: "data"
            case .upload: "upload"
            case .download: "download"
            case .stream: "stream"
            }
        Counter(label: "http_session_tasks_total", dimensions: [("kind", kind), ("outcome", outcome)]).increment()
        if let seconds { Timer(label: "http_session_task_duration", dimensions: [("kind", kind)]).recordSeconds(seconds) }
    }
}
