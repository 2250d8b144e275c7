/// What a task is made of, until its first start.
struct TransferJob: Sendable {
    /// Where the response's body goes.
    enum Destination: Sendable {
        case memory(maximumSize: Int)
        case file(DownloadDestination)
        case reader(ChunkBuffer)
    }

    var segments: [BodySegment]
    var origin: Origin
    var host: TransferQueue.Host
    /// The first attempt's, made by the caller: the session's thread has enough to do.
    var plan: TransferPlan
    var destination: Destination
    var limits: TaskMachine.Limits
    var retryPolicy: RetryPolicy
    /// Statuses that a file or a reader is given; others end the task. `nil`: all.
    var acceptableStatusCodes: ClosedRange<Int>?
}
