public import HTTPTypes

extension HTTPSessionManager {
    /// The task's value as JSON, checked, on the session's completion queue: what AFNetworking's `success:` and `failure:` are.
    ///
    /// ```swift
    /// session.post("events", parameters: event, success: { task, json in … }, failure: { task, error in … })
    /// ```
    @discardableResult
    public func respond(
        to task: TransferTask, progress: (@Sendable (TransferProgress) -> Void)? = nil,
        success: @escaping @Sendable (TransferTask, JSONValue?) -> Void,
        failure: @escaping @Sendable (TransferTask, HTTPSessionError) -> Void
    ) -> TransferTask {
        var serializer = JSONResponseSerializer(validation: validation)
        serializer.validation.acceptableContentTypes =
            validation.acceptableContentTypes ?? JSONResponseSerializer.contentTypes
        return respond(to: task, with: serializer, progress: progress, success: success, failure: failure)
    }

    /// The task's value as the serializer makes it, on the session's completion queue.
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

/// Called back with the response as JSON. The methods without callbacks say more of their parameters.
extension HTTPSessionManager {
    /// What is called when the task has ended well; the JSON is `nil` for an empty body.
    public typealias Success = @Sendable (TransferTask, JSONValue?) -> Void
    /// What is called when it has not.
    public typealias Failure = @Sendable (TransferTask, HTTPSessionError) -> Void

    /// Asks for a resource and calls back.
    @discardableResult
    public func get(
        _ address: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:],
        progress: (@Sendable (TransferProgress) -> Void)? = nil, success: @escaping Success, failure: @escaping Failure
    ) -> TransferTask {
        respond(
            to: get(address, parameters: parameters, headerFields: headerFields), progress: progress, success: success,
            failure: failure)
    }

    /// Asks for a resource's fields and calls back.
    @discardableResult
    public func head(
        _ address: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:],
        progress: (@Sendable (TransferProgress) -> Void)? = nil, success: @escaping Success, failure: @escaping Failure
    ) -> TransferTask {
        respond(
            to: head(address, parameters: parameters, headerFields: headerFields), progress: progress, success: success,
            failure: failure)
    }

    /// Sends parameters and calls back.
    @discardableResult
    public func post(
        _ address: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:],
        progress: (@Sendable (TransferProgress) -> Void)? = nil, success: @escaping Success, failure: @escaping Failure
    ) -> TransferTask {
        respond(
            to: post(address, parameters: parameters, headerFields: headerFields), progress: progress, success: success,
            failure: failure)
    }

    /// Replaces a resource and calls back.
    @discardableResult
    public func put(
        _ address: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:],
        progress: (@Sendable (TransferProgress) -> Void)? = nil, success: @escaping Success, failure: @escaping Failure
    ) -> TransferTask {
        respond(
            to: put(address, parameters: parameters, headerFields: headerFields), progress: progress, success: success,
            failure: failure)
    }

    /// Changes a resource and calls back.
    @discardableResult
    public func patch(
        _ address: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:],
        progress: (@Sendable (TransferProgress) -> Void)? = nil, success: @escaping Success, failure: @escaping Failure
    ) -> TransferTask {
        respond(
            to: patch(address, parameters: parameters, headerFields: headerFields), progress: progress, success: success,
            failure: failure)
    }

    /// Removes a resource and calls back.
    @discardableResult
    public func delete(
        _ address: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:],
        progress: (@Sendable (TransferProgress) -> Void)? = nil, success: @escaping Success, failure: @escaping Failure
    ) -> TransferTask {
        respond(
            to: delete(address, parameters: parameters, headerFields: headerFields), progress: progress, success: success,
            failure: failure)
    }
}
