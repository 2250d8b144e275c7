/// What a task is to be: what it asks for, and what becomes of the response.
struct TaskSpecification: Sendable {
    var id = SessionCore.nextID()
    var request: TransferRequest
    var kind: TransferTask.Kind
    var destination: BodyDestination
    /// Statuses that a file or a reader is given; others end the task. `nil`: all.
    var acceptableStatusCodes: ClosedRange<Int>?
    /// The task's own; `nil`: the session's.
    var handlers: TransferHandlers?
    var startsImmediately = true
    /// Why there is no such request; the task ends with it.
    var failure: HTTPSessionError?
    /// What the download goes on from; `nil`: nothing, or what lies at its destination.
    var record: ResumeDirectory.Record?
    /// `nil`: what is sent is sent by one request.
    var uploadProtocol: UploadProtocol?
    /// Where another process has left the upload.
    var uploadPlace: UploadPlace?
    var departure: Departure?
    /// How often interceptors have repeated the task that this one repeats.
    var interceptions = 0

    /// Statuses of responses that are what was asked for.
    static let successes = 200...299
}
