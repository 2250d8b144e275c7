internal import Pacing

/// What a task is made of, until its first start. A class, because it goes through many hands.
final class TransferJob: Sendable {
    let segments: [BodySegment]
    let origin: Origin
    let host: TransferQueue.Host
    /// The first attempt's, made by the caller: the session's thread has enough to do.
    let plan: TransferPlan
    let destination: BodyDestination
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
        _ specification: TaskSpecification, segments: [BodySegment], origin: Origin, host: TransferQueue.Host, plan: TransferPlan,
        limits: TaskMachine.Limits, retryPolicy: RetryPolicy, upload: UploadJob?
    ) {
        self.segments = segments
        self.origin = origin
        self.host = host
        self.plan = plan
        destination = specification.destination
        self.limits = limits
        self.retryPolicy = retryPolicy
        record = specification.record
        acceptableStatusCodes = specification.acceptableStatusCodes
        self.upload = upload
        departure = specification.departure
        interceptions = specification.interceptions
    }

    /// What the machine of this job's task goes by.
    func rules(of task: TransferTask, in session: SessionRules) -> TransferRules {
        let kind: TransferRules.Kind =
            switch task.kind {
            case .data, .upload: .data
            case .download: .download
            case .stream: .stream
            }
        return TransferRules(
            session: session, request: task.request, kind: kind, destination: destination,
            acceptableStatusCodes: acceptableStatusCodes,
            handlers: .init(task.handlers, hasSendApproval: departure != nil), limits: limits, retryPolicy: retryPolicy,
            hasResumeData: record != nil)
    }

    /// Whether another task of the session can send the same request for the same kind of response.
    func isRepeatable(_ kind: TransferTask.Kind) -> Bool {
        (kind == .data || kind == .upload) && upload == nil && departure == nil
    }
}

extension SessionSettings {
    /// The job of a task, and the reason why it cannot be done, if there is one.
    func job(of specification: TaskSpecification) -> (TransferJob, HTTPSessionError?) {
        let request = specification.request
        let options = request.options
        var limits = taskLimits
        if let timeout = options.requestTimeout { limits.requestTimeout = timeout.saturatingNanoseconds }
        if let timeout = options.resourceTimeout { limits.resourceTimeout = timeout.saturatingNanoseconds }
        var segments: [BodySegment] = []
        var origin = Origin.unknown
        var failure = specification.failure
        var upload: UploadJob?
        do throws(HTTPSessionError) {
            if let failure { throw failure }
            origin = try check(request)
            segments = try request.body.segments()
            if case .file(let place) = specification.destination { try place.check() }
            if let known = specification.uploadPlace?.known { _ = try check(TransferRequest(url: known)) }
            if let uploadProtocol = specification.uploadProtocol {
                upload = try UploadJob(
                    request, segments, uploadProtocol, allowsInsecure: configuration.followsInsecureRedirects,
                    place: specification.uploadPlace)
            }
        } catch {
            failure = error
        }
        let job = TransferJob(
            specification, segments: segments, origin: origin, host: host(of: origin),
            plan: TransferPlan(request, logins: TaskLogins(), settings: self, segments: segments, isElsewhere: false),
            limits: limits, retryPolicy: options.retryPolicy ?? configuration.retryPolicy, upload: upload)
        return (job, failure)
    }
}
