public import HTTPSession

extension HTTPSessionManager {
    /// Calls back with the task's response as JSON, as the `success:` and `failure:` blocks of AFNetworking's methods do.
    ///
    /// ```swift
    /// session.respond(to: session.uploadTask(for: request, from: .file(film)), success: { task, json in … }, failure: { task, error in … })
    /// ```
    ///
    /// - Parameters:
    ///   - task: The task.
    ///   - progress: Called at most every 50 ms, and with the last progress before the end.
    ///   - success: Called with the JSON of a response that passes the session's validation; `nil` for an empty body.
    ///   - failure: Called with the error of the task, the validation or the JSON.
    /// - Returns: The task.
    @discardableResult
    public func respond(
        to task: TransferTask, progress: (@Sendable (TransferProgress) -> Void)? = nil,
        success: @escaping @Sendable (TransferTask, JSONValue?) -> Void,
        failure: @escaping @Sendable (TransferTask, HTTPSessionError) -> Void
    ) -> TransferTask {
        callBack(for: task, progress: progress, success: success, failure: failure)
    }

    /// Calls back with the value that a serializer makes of the task's response, on the session's completion queue.
    ///
    /// - Parameters:
    ///   - task: The task.
    ///   - serializer: The serializer, with its own validation.
    ///   - progress: Called at most every 50 ms, and with the last progress before the end.
    ///   - success: Called with the value.
    ///   - failure: Called with the error of the task or of the serializer.
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
