/// The specification of a task: its request, and the destination of its response.
struct TaskSpecification: Sendable {
    var id = SessionCore.nextID()
    var request: TransferRequest
    var kind: TransferTask.Kind
    var destination: BodyDestination
    /// The statuses whose bodies go to a file or a reader; others fail the task. It is `nil` for all statuses.
    var acceptableStatusCodes: ClosedRange<Int>?
    /// The task's own handlers, which are added to the session's; `nil` for none.
    var handlers: TransferHandlers?
    var startsImmediately = true
    /// The reason for which the request cannot be made; the task fails with it.
    var failure: HTTPSessionError?
    /// The resume data's record from which the download continues; `nil` to continue from a partial file at its destination, if there is one.
    var record: ResumeDirectory.Record?
    /// The protocol of a resumable upload; `nil` if one request sends the body.
    var uploadProtocol: UploadProtocol?
    /// The location of an upload that another process may have begun.
    var uploadLocation: UploadLocation?
    var sendApproval: SendApproval?
    /// The number of times that interceptors have repeated the request before this task.
    var interceptions = 0

    /// The statuses of successful responses.
    static let successes = 200...299
}
