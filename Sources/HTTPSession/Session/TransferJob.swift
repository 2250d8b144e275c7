internal import Pacing

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
    /// How often interceptors have repeated the task that this job repeats.
    let interceptions: Int

    init(
        segments: [BodySegment], origin: Origin, host: TransferQueue.Host, plan: TransferPlan, destination: Destination,
        limits: TaskMachine.Limits, retryPolicy: RetryPolicy, record: ResumeDirectory.Record?,
        acceptableStatusCodes: ClosedRange<Int>?, upload: UploadJob?, departure: Departure?, interceptions: Int
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
        self.interceptions = interceptions
    }

    /// Whether another task of the session can send the same request for the same kind of response.
    func isRepeatable(_ kind: TransferTask.Kind) -> Bool {
        (kind == .data || kind == .upload) && upload == nil && departure == nil
    }
}

extension SessionSettings {
    /// The job of a request, and the reason why it cannot be done, if there is one.
    func job(
        for request: TransferRequest, to destination: TransferJob.Destination, failure: HTTPSessionError? = nil,
        record: ResumeDirectory.Record? = nil, acceptableStatusCodes: ClosedRange<Int>?,
        resumably uploadProtocol: UploadProtocol? = nil, at place: UploadPlace? = nil, departure: Departure? = nil,
        interceptions: Int = 0
    ) -> (TransferJob, HTTPSessionError?) {
        let options = request.options
        var limits = taskLimits
        if let timeout = options.requestTimeout { limits.requestTimeout = timeout.saturatingNanoseconds }
        if let timeout = options.resourceTimeout { limits.resourceTimeout = timeout.saturatingNanoseconds }
        var segments: [BodySegment] = []
        var origin = Origin.unknown
        var failure = failure
        var upload: UploadJob?
        do throws(HTTPSessionError) {
            if let failure { throw failure }
            origin = try check(request)
            segments = try request.body.segments()
            if case .file(let place) = destination { try place.check() }
            if let known = place?.known { _ = try check(TransferRequest(url: known)) }
            if let uploadProtocol {
                upload = try UploadJob(
                    request, segments, uploadProtocol, allowsInsecure: configuration.followsInsecureRedirects, place: place)
            }
        } catch {
            failure = error
        }
        let job = TransferJob(
            segments: segments, origin: origin, host: host(of: origin),
            plan: TransferPlan(request, logins: TaskLogins(), settings: self, segments: segments, isElsewhere: false),
            destination: destination, limits: limits, retryPolicy: options.retryPolicy ?? configuration.retryPolicy,
            record: record, acceptableStatusCodes: acceptableStatusCodes, upload: upload, departure: departure,
            interceptions: interceptions)
        return (job, failure)
    }
}
