public import HTTPTypes

extension HTTPSessionManager {
    /// Calls back with the task's response as JSON, validated, on the session's completion queue.
    @discardableResult
    package func callBack(
        for task: TransferTask, progress: (@Sendable (TransferProgress) -> Void)?, success: @escaping Success,
        failure: @escaping Failure
    ) -> TransferTask {
        var serializer = JSONResponseSerializer(validation: validation)
        serializer.validation.acceptableContentTypes =
            validation.acceptableContentTypes ?? JSONResponseSerializer.contentTypes
        return task.respond(
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
        _ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:],
        progress: (@Sendable (TransferProgress) -> Void)? = nil, success: @escaping Success, failure: @escaping Failure
    ) -> TransferTask {
        callBack(
            for: get(path, parameters: parameters, headerFields: headerFields), progress: progress, success: success,
            failure: failure)
    }

    /// Asks for a resource's fields and calls back.
    @discardableResult
    public func head(
        _ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:],
        progress: (@Sendable (TransferProgress) -> Void)? = nil, success: @escaping Success, failure: @escaping Failure
    ) -> TransferTask {
        callBack(
            for: head(path, parameters: parameters, headerFields: headerFields), progress: progress, success: success,
            failure: failure)
    }

    /// Sends parameters and calls back.
    @discardableResult
    public func post(
        _ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:],
        progress: (@Sendable (TransferProgress) -> Void)? = nil, success: @escaping Success, failure: @escaping Failure
    ) -> TransferTask {
        callBack(
            for: post(path, parameters: parameters, headerFields: headerFields), progress: progress, success: success,
            failure: failure)
    }

    /// Replaces a resource and calls back.
    @discardableResult
    public func put(
        _ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:],
        progress: (@Sendable (TransferProgress) -> Void)? = nil, success: @escaping Success, failure: @escaping Failure
    ) -> TransferTask {
        callBack(
            for: put(path, parameters: parameters, headerFields: headerFields), progress: progress, success: success,
            failure: failure)
    }

    /// Changes a resource and calls back.
    @discardableResult
    public func patch(
        _ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:],
        progress: (@Sendable (TransferProgress) -> Void)? = nil, success: @escaping Success, failure: @escaping Failure
    ) -> TransferTask {
        callBack(
            for: patch(path, parameters: parameters, headerFields: headerFields), progress: progress, success: success,
            failure: failure)
    }

    /// Removes a resource and calls back.
    @discardableResult
    public func delete(
        _ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:],
        progress: (@Sendable (TransferProgress) -> Void)? = nil, success: @escaping Success, failure: @escaping Failure
    ) -> TransferTask {
        callBack(
            for: delete(path, parameters: parameters, headerFields: headerFields), progress: progress, success: success,
            failure: failure)
    }
}
