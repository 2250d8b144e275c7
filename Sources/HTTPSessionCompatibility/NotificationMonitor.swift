internal import FoundationEssentials
public import HTTPSession

/// A monitor that posts AFNetworking's notifications of tasks and sessions to `NotificationCenter.default`.
///
/// ```swift
/// let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/", eventMonitors: [NotificationMonitor()])
/// let token = NotificationCenter.default.addObserver(of: TransferTask.self, for: .taskDidComplete) { message in print(message.result) }
/// ```
///
/// | AFNetworking | here |
/// |---|---|
/// | `AFNetworkingTaskDidResumeNotification` | `TransferTask.DidResume` |
/// | `AFNetworkingTaskDidSuspendNotification` | `TransferTask.DidSuspend` |
/// | `AFNetworkingTaskDidCompleteNotification` | `TransferTask.DidComplete` |
/// | `AFURLSessionDownloadTaskDidMoveFileSuccessfullyNotification` | `TransferTask.DidMoveFile` |
/// | `AFURLSessionDownloadTaskDidFailToMoveFileNotification` | `TransferTask.DidFailToMoveFile` |
/// | `AFURLSessionDidInvalidateNotification` | `HTTPSessionManager.DidInvalidate` |
///
/// The monitor posts the notifications of a task in the order of its events, but Foundation may deliver them in another order.
/// `TransferTask.DidComplete` is posted after the callbacks of the task. A session that ends because its last reference is released
/// posts no `HTTPSessionManager.DidInvalidate`.
public struct NotificationMonitor: EventMonitor, SessionObserver {
    /// Creates a monitor. One monitor may serve several sessions.
    public init() {}

    /// Posts the notification for an event, if there is one.
    public func handle(_ event: SessionEvent) {
        let center = NotificationCenter.default
        switch event {
        case .taskResumed(let task): center.post(TransferTask.DidResume(), subject: task)
        case .taskSuspended(let task): center.post(TransferTask.DidSuspend(), subject: task)
        case .waitingForConnectivity(let task, let error):
            center.post(TransferTask.IsWaitingForConnectivity(error: error), subject: task)
        case .fileMoved(let task, let destination): center.post(TransferTask.DidMoveFile(file: destination.file), subject: task)
        case .fileMoveFailed(let task, let error): center.post(TransferTask.DidFailToMoveFile(error: error), subject: task)
        default: break
        }
    }

    package func taskDidComplete(
        _ task: TransferTask, _ result: Result<TransferResponse, HTTPSessionError>, _ serializations: [TransferTask.Serialization]
    ) {
        let results = serializations.map { TransferTask.CallbackResult(serializer: $0.serializer, result: $0.result) }
        NotificationCenter.default.post(TransferTask.DidComplete(result: result, callbackResults: results), subject: task)
    }

    package func sessionDidInvalidate(_ session: any AnyObject & Sendable) {
        guard let session = session as? HTTPSessionManager else { return }
        NotificationCenter.default.post(HTTPSessionManager.DidInvalidate(), subject: session)
    }
}
