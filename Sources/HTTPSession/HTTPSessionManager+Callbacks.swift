public import HTTPTypes

extension HTTPSessionManager {
    /// Validates the task's response, decodes it as JSON, and calls `success` or `failure` on the session's completion queue.
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

// Methods with callbacks, in AFNetworking's style. The methods without callbacks describe the parameters and errors in full.
extension HTTPSessionManager {
    /// The closure that is called when a task succeeds, with the body as JSON; `nil` for an empty body.
    public typealias Success = @Sendable (TransferTask, JSONValue?) -> Void
    /// The closure that is called when a task fails or its response cannot be decoded.
    public typealias Failure = @Sendable (TransferTask, HTTPSessionError) -> Void

    /// Requests a resource with GET, and calls `success` with its JSON or `failure` on the session's completion queue.
    @discardableResult
    public func get(
        _ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:],
        progress: (@Sendable (TransferProgress) -> Void)? = nil, success: @escaping Success, failure: @escaping Failure
    ) -> TransferTask {
        callBack(
            for: get(path, parameters: parameters, headerFields: headerFields), progress: progress, success: success,
            failure: failure)
    }

    /// Requests the header fields of a resource with HEAD, and calls `success` or `failure` on the session's completion queue.
    @discardableResult
    public func head(
        _ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:],
        progress: (@Sendable (TransferProgress) -> Void)? = nil, success: @escaping Success, failure: @escaping Failure
    ) -> TransferTask {
        callBack(
            for: head(path, parameters: parameters, headerFields: headerFields), progress: progress, success: success,
            failure: failure)
    }

    /// Sends parameters with POST, and calls `success` with the JSON of the response or `failure` on the session's completion queue.
    @discardableResult
    public func post(
        _ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:],
        progress: (@Sendable (TransferProgress) -> Void)? = nil, success: @escaping Success, failure: @escaping Failure
    ) -> TransferTask {
        callBack(
            for: post(path, parameters: parameters, headerFields: headerFields), progress: progress, success: success,
            failure: failure)
    }

    /// Replaces a resource with PUT, and calls `success` with the JSON of the response or `failure` on the session's completion queue.
    @discardableResult
    public func put(
        _ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:],
        progress: (@Sendable (TransferProgress) -> Void)? = nil, success: @escaping Success, failure: @escaping Failure
    ) -> TransferTask {
        callBack(
            for: put(path, parameters: parameters, headerFields: headerFields), progress: progress, success: success,
            failure: failure)
    }

    /// Changes a resource with PATCH, and calls `success` with the JSON of the response or `failure` on the session's completion queue.
    @discardableResult
    public func patch(
        _ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:],
        progress: (@Sendable (TransferProgress) -> Void)? = nil, success: @escaping Success, failure: @escaping Failure
    ) -> TransferTask {
        callBack(
            for: patch(path, parameters: parameters, headerFields: headerFields), progress: progress, success: success,
            failure: failure)
    }

    /// Deletes a resource with DELETE, and calls `success` with the JSON of the response or `failure` on the session's completion queue.
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
