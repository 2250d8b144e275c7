/// A monitor that also receives the results of a task's callbacks, and the session that has ended, as AFNetworking's notifications need them.
package protocol SessionObserver: EventMonitor {
    /// A task has finished, and its callbacks have run. `serializations` has what each of them received, in the order in which they were added.
    func taskDidComplete(
        _ task: TransferTask, _ result: Result<TransferResponse, HTTPSessionError>, _ serializations: [TransferTask.Serialization]
    )
    /// A session that was invalidated has ended. `session` is its `HTTPSessionManager`.
    func sessionDidInvalidate(_ session: any AnyObject & Sendable)
}

extension TransferTask {
    /// The value or error that a completion callback received.
    package struct Serialization: Sendable {
        /// The serializer of the value.
        package let serializer: any ResponseSerializer
        /// The value, of the serializer's type; or the task's or the serializer's error.
        package let result: Result<any Sendable, HTTPSessionError>
    }
}
