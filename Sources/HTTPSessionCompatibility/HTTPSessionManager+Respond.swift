public import HTTPSession

extension HTTPSessionManager {
    /// Calls `success` with the task's response as JSON, or `failure`, like AFNetworking's methods.
    ///
    /// ```swift
    /// session.respond(to: session.uploadTask(for: request, from: .file(film)), success: { task, json in … }, failure: { task, error in … })
    /// ```
    ///
    /// - Parameters:
    ///   - task: The task.
    ///   - progress: Called at most every 50 ms, and with the last progress before the end.
    ///   - success: The closure that is called with the JSON of a response that passes the session's validation; `nil` for an empty body.
    ///   - failure: The closure that is called with the error of the task, the validation or the JSON.
    /// - Returns: The task.
    @discardableResult
    public func respond(
        to task: TransferTask, progress: (@Sendable (TransferProgress) -> Void)? = nil,
        success: @escaping @Sendable (TransferTask, JSONValue?) -> Void,
        failure: @escaping @Sendable (TransferTask, HTTPSessionError) -> Void
    ) -> TransferTask {
        callBack(for: task, progress: progress, success: success, failure: failure)
    }

    /// Calls `success` with the value that a serializer makes of the task's response, or `failure`, on the session's completion queue.
    ///
    /// - Parameters:
    ///   - task: The task.
    ///   - serializer: The serializer, with its own validation.
    ///   - progress: Called at most every 50 ms, and with the last progress before the end.
    ///   - success: The closure that is called with the value.
    ///   - failure: The closure that is called with the error of the task or of the serializer.
    /// - Returns: The task.
    @discardableResult
    public func respond<Serializer: ResponseSerializer>(
        to task: TransferTask, with serializer: Serializer, progress: (@Sendable (TransferProgress) -> Void)? = nil,
        success: @escaping @Sendable (TransferTask, Serializer.Value) -> Void,
        failure: @escaping @Sendable (TransferTask, HTTPSessionError) -> Void
    ) -> TransferTask where Serializer.Value: Sendable {
        task.respond(
            with: serializer, on: completionQueue, group: completionGroup, progress: progress, success: success, failure: failure)
    }
}
