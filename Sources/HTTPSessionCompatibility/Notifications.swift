public import FoundationEssentials
public import HTTPSession
internal import Reachability

extension TransferTask {
    /// Posted when a task starts or resumes; AFNetworking's `AFNetworkingTaskDidResumeNotification`.
    public struct DidResume: NotificationCenter.AsyncMessage {
        /// The task.
        public typealias Subject = TransferTask
    }

    /// Posted when a task is suspended; AFNetworking's `AFNetworkingTaskDidSuspendNotification`.
    public struct DidSuspend: NotificationCenter.AsyncMessage {
        /// The task.
        public typealias Subject = TransferTask
    }

    /// Posted when a task begins to wait for a network that leads to its server;
    /// `URLSessionTaskDelegate.urlSession(_:taskIsWaitingForConnectivity:)`.
    public struct IsWaitingForConnectivity: NotificationCenter.AsyncMessage {
        /// The task.
        public typealias Subject = TransferTask
        /// The error that describes the failure or the missing network.
        public let error: HTTPSessionError
    }

    /// Posted when a task has finished, after its callbacks; AFNetworking's `AFNetworkingTaskDidCompleteNotification`.
    ///
    /// ``result`` has the response's data, the file and the error of the task; ``TransferTask/metrics`` has the metrics. Each callback serializes
    /// the response for itself; ``callbackResults`` has the results. Values that code awaits are serialized later and are in no message.
    public struct DidComplete: NotificationCenter.AsyncMessage {
        /// The task.
        public typealias Subject = TransferTask
        /// The response with any status, or the error.
        public let result: Result<TransferResponse, HTTPSessionError>
        /// The results that the callbacks received, in the order in which the callbacks were added; empty if there were none.
        public let callbackResults: [CallbackResult]

        /// The value that the first callback received: AFNetworking's serialized response. `nil` if there was no callback, or it received an error.
        public var serializedResponse: (any Sendable)? { try? callbackResults.first?.result.get() }
        /// The error of the task, or of the first callback's serializer: AFNetworking's error.
        public var error: HTTPSessionError? {
            if case .failure(let error) = result { return error }
            if case .failure(let error)? = callbackResults.first?.result { return error }
            return nil
        }
    }

    /// The result that a callback received at a task's end.
    public struct CallbackResult: Sendable {
        /// The serializer of the value.
        public let serializer: any ResponseSerializer
        /// The value, of the serializer's type; or the error of the task or of the serializer.
        public let result: Result<any Sendable, HTTPSessionError>
    }

    /// Posted when the file of a download was moved to its destination; AFNetworking's
    /// `AFURLSessionDownloadTaskDidMoveFileSuccessfullyNotification`.
    public struct DidMoveFile: NotificationCenter.AsyncMessage {
        /// The task.
        public typealias Subject = TransferTask
        /// The file.
        public let file: URL
    }

    /// Posted when the file of a download cannot be moved to its destination; AFNetworking's
    /// `AFURLSessionDownloadTaskDidFailToMoveFileNotification`. The task fails with the same error.
    public struct DidFailToMoveFile: NotificationCenter.AsyncMessage {
        /// The task.
        public typealias Subject = TransferTask
        /// The error that describes the failure or the missing network.
        public let error: HTTPSessionError
    }
}

extension HTTPSessionManager {
    /// Posted when a session that was invalidated has ended; AFNetworking's `AFURLSessionDidInvalidateNotification`.
    public struct DidInvalidate: NotificationCenter.AsyncMessage {
        /// The session.
        public typealias Subject = HTTPSessionManager
    }
}

extension NotificationCenter.MessageIdentifier where Self == NotificationCenter.BaseMessageIdentifier<TransferTask.DidResume> {
    /// The identifier of `TransferTask.DidResume`.
    public static var taskDidResume: Self { .prepared }
}

extension NotificationCenter.MessageIdentifier where Self == NotificationCenter.BaseMessageIdentifier<TransferTask.DidSuspend> {
    /// The identifier of `TransferTask.DidSuspend`.
    public static var taskDidSuspend: Self { .prepared }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<TransferTask.IsWaitingForConnectivity> {
    /// The identifier of `TransferTask.IsWaitingForConnectivity`.
    public static var taskIsWaitingForConnectivity: Self { .prepared }
}

extension NotificationCenter.MessageIdentifier where Self == NotificationCenter.BaseMessageIdentifier<TransferTask.DidComplete> {
    /// The identifier of `TransferTask.DidComplete`.
    public static var taskDidComplete: Self { .prepared }
}

extension NotificationCenter.MessageIdentifier where Self == NotificationCenter.BaseMessageIdentifier<TransferTask.DidMoveFile> {
    /// The identifier of `TransferTask.DidMoveFile`.
    public static var taskDidMoveFile: Self { .prepared }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<TransferTask.DidFailToMoveFile> {
    /// The identifier of `TransferTask.DidFailToMoveFile`.
    public static var taskDidFailToMoveFile: Self { .prepared }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<HTTPSessionManager.DidInvalidate> {
    /// The identifier of `HTTPSessionManager.DidInvalidate`.
    public static var sessionDidInvalidate: Self { .prepared }
}
