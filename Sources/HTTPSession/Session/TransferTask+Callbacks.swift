public import Dispatch

/// AFNetworking's style: blocks instead of `await`. A thin layer: everything below is the same.
extension TransferTask {
    /// Calls `success` or `failure` once, when the task has ended and its response has been checked and serialized.
    ///
    /// Serializing runs beside the callbacks, never on `queue`, and `group` is entered until the last callback has run. `progress` is
    /// called at most every 50 ms, and with the last progress before the end. The task is handed to the callbacks for those who have
    /// several, and given back. One that nobody starts, and nobody holds any more, calls nothing and leaves `group`; a callback that
    /// holds its task itself keeps it, and its session, until its end.
    @discardableResult
    public func respond<Serializer: ResponseSerializer>(
        with serializer: Serializer, on queue: DispatchQueue, group: DispatchGroup? = nil,
        progress: (@Sendable (TransferProgress) -> Void)? = nil,
        success: @escaping @Sendable (TransferTask, Serializer.Value) -> Void,
        failure: @escaping @Sendable (TransferTask, HTTPSessionError) -> Void
    ) -> TransferTask where Serializer.Value: Sendable {
        group?.enter()
        if let progress { onProgress { value in queue.async { progress(value) } } }
        let completion = Completion(group: group) { task, result, callbacks in
            let place = callbacks.enter()
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
                    callbacks.leave(place, told: .init(serializer: serializer, result: value.map { $0 }))
                }
            }
        }
        onCompletion(completion)
        return self
    }
}
