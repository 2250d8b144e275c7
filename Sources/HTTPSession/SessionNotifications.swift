public import Foundation

extension TransferTask {
    /// Posted when a task starts or goes on; AFNetworking's `AFNetworkingTaskDidResumeNotification`.
    public struct DidResume: NotificationCenter.AsyncMessage {
        /// The task.
        public typealias Subject = TransferTask
    }

    /// Posted when a task is stopped; AFNetworking's `AFNetworkingTaskDidSuspendNotification`.
    public struct DidSuspend: NotificationCenter.AsyncMessage {
        /// The task.
        public typealias Subject = TransferTask
    }

    /// Posted when a task begins to wait for a network that leads to its server;
    /// `URLSessionTaskDelegate.urlSession(_:taskIsWaitingForConnectivity:)`.
    public struct IsWaitingForConnectivity: NotificationCenter.AsyncMessage {
        /// The task.
        public typealias Subject = TransferTask
        /// What is missing.
        public let error: HTTPSessionError
    }

    /// Posted when a task has ended, after the callbacks that were waiting for it; AFNetworking's
    /// `AFNetworkingTaskDidCompleteNotification`.
    public struct DidComplete: NotificationCenter.AsyncMessage {
        /// The task.
        public typealias Subject = TransferTask
        /// Response, data or file, and metrics; or the error.
        public let result: Result<TransferResponse, HTTPSessionError>
    }

    /// Posted when a download is at its destination; AFNetworking's `AFURLSessionDownloadTaskDidMoveFileSuccessfullyNotification`.
    public struct DidMoveFile: NotificationCenter.AsyncMessage {
        /// The task.
        public typealias Subject = TransferTask
        /// The file.
        public let file: URL
    }

    /// Posted when a download cannot be put at its destination; AFNetworking's
    /// `AFURLSessionDownloadTaskDidFailToMoveFileNotification`. The task fails with the same error.
    public struct DidFailToMoveFile: NotificationCenter.AsyncMessage {
        /// The task.
        public typealias Subject = TransferTask
        /// Why.
        public let error: HTTPSessionError
    }
}

extension HTTPSessionManager {
    /// Posted when a session that was told to end has ended; AFNetworking's `AFURLSessionDidInvalidateNotification`. A session that
    /// ends because nobody holds it posts nothing.
    public struct DidInvalidate: NotificationCenter.AsyncMessage {
        /// The session.
        public typealias Subject = HTTPSessionManager
    }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<HTTPSessionManager.DidInvalidate> {
    /// ``HTTPSessionManager/DidInvalidate``.
    public static var sessionDidInvalidate: Self { .init() }
}

extension NotificationCenter.MessageIdentifier where Self == NotificationCenter.BaseMessageIdentifier<TransferTask.DidResume> {
    /// ``TransferTask/DidResume``.
    public static var taskDidResume: Self { .init() }
}

extension NotificationCenter.MessageIdentifier where Self == NotificationCenter.BaseMessageIdentifier<TransferTask.DidSuspend> {
    /// ``TransferTask/DidSuspend``.
    public static var taskDidSuspend: Self { .init() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<TransferTask.IsWaitingForConnectivity> {
    /// ``TransferTask/IsWaitingForConnectivity``.
    public static var taskIsWaitingForConnectivity: Self { .init() }
}

extension NotificationCenter.MessageIdentifier where Self == NotificationCenter.BaseMessageIdentifier<TransferTask.DidComplete> {
    /// ``TransferTask/DidComplete``.
    public static var taskDidComplete: Self { .init() }
}

extension NotificationCenter.MessageIdentifier where Self == NotificationCenter.BaseMessageIdentifier<TransferTask.DidMoveFile> {
    /// ``TransferTask/DidMoveFile``.
    public static var taskDidMoveFile: Self { .init() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<TransferTask.DidFailToMoveFile> {
    /// ``TransferTask/DidFailToMoveFile``.
    public static var taskDidFailToMoveFile: Self { .init() }
}

enum SessionNotifications {
    static func postInvalidation(of manager: HTTPSessionManager) {
        NotificationCenter.default.post(HTTPSessionManager.DidInvalidate(), subject: manager)
    }

    static func post(_ event: SessionEvent) {
        let center = NotificationCenter.default
        switch event {
        case .taskResumed(let task): center.post(TransferTask.DidResume(), subject: task)
        case .taskSuspended(let task): center.post(TransferTask.DidSuspend(), subject: task)
        case .taskCompleted(let task, let result): center.post(TransferTask.DidComplete(result: result), subject: task)
        case .waitingForConnectivity(let task, let error):
            center.post(TransferTask.IsWaitingForConnectivity(error: error), subject: task)
        case .fileMoved(let task, let destination): center.post(TransferTask.DidMoveFile(file: destination.file), subject: task)
        case .fileMoveFailed(let task, let error): center.post(TransferTask.DidFailToMoveFile(error: error), subject: task)
        case .taskCreated, .requestStarted, .receivedInterimResponse, .receivedResponse, .redirected, .challenged, .willRetry,
            .downloadContinued, .uploadContinued,
            .transactionFinished, .sessionInvalidated:
            break
        }
    }
}
