/// What a task is made of, until its first start. A class, because it goes through many hands.
final class TransferJob: Sendable {
    /// Where the response's body goes.
    enum Destination: Sendable {
        case memory(maximumSize: Int)
        case file(DownloadDestination)
        case reader(ChunkBuffer)
    }

    let segments: [BodySegment]
    let origin: Origin
    let host: TransferQueue.Host
    /// The first attempt's, made by the caller: the session's thread has enough to do.
    let plan: TransferPlan
    let destination: Destination
    let limits: TaskMachine.Limits
    let retryPolicy: RetryPolicy
    /// What the download goes on from; `nil`: nothing, or what lies at its destination.
    let record: ResumeDirectory.Record?
    /// Statuses that a file or a reader is given; others end the task. `nil`: all.
    let acceptableStatusCodes: ClosedRange<Int>?
    /// `nil`: what is sent is sent by one request.
    let upload: UploadJob?
    let departure: Departure?

    init(
        segments: [BodySegment], origin: Origin, host: TransferQueue.Host, plan: TransferPlan, destination: Destination,
        limits: TaskMachine.Limits, retryPolicy: RetryPolicy, record: ResumeDirectory.Record?,
        acceptableStatusCodes: ClosedRange<Int>?, upload: UploadJob?, departure: Departure?
    ) {
        self.segments = segments
        self.origin = origin
        self.host = host
        self.plan = plan
        self.destination = destination
        self.limits = limits
        self.retryPolicy = retryPolicy
        self.record = record
        self.acceptableStatusCodes = acceptableStatusCodes
        self.upload = upload
        self.departure = departure
    }
}
