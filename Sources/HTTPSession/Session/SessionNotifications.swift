public import FoundationEssentials

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
    ///
    /// Of that one's keys, the response's data, the file and the session-level error are in ``result``, the metrics are the task's
    /// (``TransferTask/metrics``); the serialized response, its serializer and its error in ``serializations``. Here a response is serialized for whoever asks, and once for each:
    /// for callbacks before the message, for those who `await` (``TransferTask/decode(_:decoder:)`` and its like) when they come, which no
    /// message can wait for.
    public struct DidComplete: NotificationCenter.AsyncMessage {
        /// The task.
        public typealias Subject = TransferTask
        /// Response, data or file, and metrics; or the error. Any status is a response here.
        public let result: Result<TransferResponse, HTTPSessionError>
        /// What each callback was told that waited for the end
        /// (``TransferTask/respond(with:on:group:progress:success:failure:)``), in the order in which they were given; empty where none did.
        public let serializations: [Serialization]

        /// What the first callback was given: AFNetworking's serialized response. `nil` where there was none, or it was told an error; of a
        /// download, the file is in ``result``.
        public var serializedResponse: (any Sendable)? { try? serializations.first?.result.get() }
        /// The task's error, or that of the first callback's serializer: AFNetworking's error.
        public var error: HTTPSessionError? {
            if case .failure(let error) = result { return error }
            if case .failure(let error)? = serializations.first?.result { return error }
            return nil
        }
    }

    /// What a callback was told of a task's end.
    public struct Serialization: Sendable {
        /// What made it.
        public let serializer: any ResponseSerializer
        /// The value, of the serializer's type; or the task's error, or the serializer's.
        public let result: Result<any Sendable, HTTPSessionError>
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
    /// `serializations`: what callbacks were told of the task that has ended.
    static func post(_ event: SessionEvent, _ serializations: [TransferTask.Serialization] = []) {
        let center = NotificationCenter.default
        switch event {
        case .taskResumed(let task): center.post(TransferTask.DidResume(), subject: task)
        case .taskSuspended(let task): center.post(TransferTask.DidSuspend(), subject: task)
        case .taskCompleted(let task, let result):
            center.post(TransferTask.DidComplete(result: result, serializations: serializations), subject: task)
        case .waitingForConnectivity(let task, let error):
            center.post(TransferTask.IsWaitingForConnectivity(error: error), subject: task)
        case .fileMoved(let task, let destination): center.post(TransferTask.DidMoveFile(file: destination.file), subject: task)
        case .fileMoveFailed(let task, let error): center.post(TransferTask.DidFailToMoveFile(error: error), subject: task)
        case .taskCreated, .requestStarted, .receivedInterimResponse, .receivedResponse, .redirected, .challenged,
            .serverTrustChallenged, .clientCertificateChallenged, .becameDownload, .willRetry, .downloadContinued,
            .uploadContinued,
            .transactionFinished, .sessionInvalidated:
            break
        }
    }
}
