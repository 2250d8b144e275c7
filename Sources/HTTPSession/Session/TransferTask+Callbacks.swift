public import Dispatch

/// Callbacks instead of `await`, in AFNetworking's style.
extension TransferTask {
    /// Calls `success` or `failure` once, when the task has finished and its response is validated and serialized.
    ///
    /// For a stream, whose body is not kept, `failure` is called with ``HTTPSessionError/Code/misuse`` at once. The serializer never runs on `queue`. If a task that was not started is released, no callback runs, and the task leaves `group`. If a
    /// callback retains its task, the task and its session exist until the task has finished.
    ///
    /// - Parameters:
    ///   - serializer: The serializer, with its own validation.
    ///   - queue: The queue of the callbacks.
    ///   - group: The group that is entered now, and left when the last callback has run.
    ///   - progress: The closure that is called at most every 50 ms, and with the last progress before the end.
    ///   - success: The closure that is called with the task and the value.
    ///   - failure: The closure that is called with the task and the error of the task or of the serializer.
    /// - Returns: The task.
    @discardableResult
    public func respond<Serializer: ResponseSerializer>(
        with serializer: Serializer, on queue: DispatchQueue, group: DispatchGroup? = nil,
        progress: (@Sendable (TransferProgress) -> Void)? = nil,
        success: @escaping @Sendable (TransferTask, Serializer.Value) -> Void,
        failure: @escaping @Sendable (TransferTask, HTTPSessionError) -> Void
    ) -> TransferTask where Serializer.Value: Sendable {
        group?.enter()
        do throws(HTTPSessionError) { try refuseStream() } catch {
            // Not at the end: the body of a stream may wait for its reader for ever.
            queue.async {
                failure(self, error)
                group?.leave()
            }
            return self
        }
        if let progress { onProgress { value in queue.async { progress(value) } } }
        let completion = Completion(group: group) { task, result, callbacks in
            let index = callbacks.enter()
            Task {
                let value: Result<Serializer.Value, HTTPSessionError>
                do throws(HTTPSessionError) {
                    value = .success(try await task.serialized(result.get(), by: serializer))
                } catch {
                    value = .failure(error)
                }
                queue.async {
                    switch value {
                    case .success(let value): success(task, value)
                    case .failure(let error): failure(task, error)
                    }
                    group?.leave()
                    callbacks.leave(index, received: .init(serializer: serializer, result: value.map { $0 }))
                }
            }
        }
        onCompletion(completion)
        return self
    }
}
