internal import Pacing

/// The job of a task: all that its driver needs, prepared by the caller. A class, because a copy would retain each of its members.
final class TaskJob: Sendable {
    let segments: [BodySegment]
    let prepared: PreparedRequest
    let destination: BodyDestination
    let limits: TaskStateMachine.Limits
    let retryPolicy: RetryPolicy
    /// The resume data's record from which the download continues; `nil` to continue from a partial file at its destination, if there is one.
    let record: ResumeDirectory.Record?
    /// The statuses whose bodies go to a file or a reader; others fail the task. It is `nil` for all statuses.
    let acceptableStatusCodes: ClosedRange<Int>?
    /// The resumable upload; `nil` if one request sends the body.
    let upload: UploadJob?
    let sendApproval: SendApproval?
    /// The number of times that interceptors have repeated the request before this task.
    let interceptions: Int

    init(
        _ specification: TaskSpecification, _ prepared: PreparedRequest, segments: [BodySegment], limits: TaskStateMachine.Limits,
        retryPolicy: RetryPolicy, upload: UploadJob?
    ) {
        self.segments = segments
        self.prepared = prepared
        destination = specification.destination
        self.limits = limits
        self.retryPolicy = retryPolicy
        record = specification.record
        acceptableStatusCodes = specification.acceptableStatusCodes
        self.upload = upload
        sendApproval = specification.sendApproval
        interceptions = specification.interceptions
    }

    var origin: Origin { prepared.origin }
    var host: TaskQueue.Host { prepared.host }
    var plan: TransferPlan { prepared.plan }

    /// The rules for the machine of this job's task.
    func rules(of task: TransferTask, in session: SessionRules) -> TaskRules {
        let kind: TaskRules.Kind =
            switch task.kind {
            case .data, .upload: .data
            case .download: .download
            case .stream: .stream
            }
        return TaskRules(
            session: session, request: task.request, kind: kind, destination: destination,
            acceptableStatusCodes: acceptableStatusCodes,
            handlers: .init(task.handlers, hasSendApproval: sendApproval != nil), limits: limits, retryPolicy: retryPolicy,
            hasResumeData: record != nil)
    }

    /// Whether the job may reference objects of the user.
    var mayHaveUserObjects: Bool {
        guard case .none = prepared.request.body, case .memory = destination else { return true }
        return !segments.isEmpty || upload != nil || record != nil || sendApproval != nil
    }

    /// Whether another task of the session can send the same request for the same kind of response.
    func isRepeatable(_ kind: TransferTask.Kind) -> Bool {
        (kind == .data || kind == .upload) && upload == nil && sendApproval == nil
    }
}

extension SessionSettings {
    /// The job of a task, and the reason why it cannot be done, if there is one.
    func job(of specification: TaskSpecification) -> (TaskJob, HTTPSessionError?) {
        let request = specification.request
        let options = request.options
        var limits = taskLimits
        if let timeout = options.requestTimeout { limits.requestTimeout = timeout.saturatingNanoseconds }
        if let timeout = options.resourceTimeout { limits.resourceTimeout = timeout.saturatingNanoseconds }
        if let timeout = options.connectivityTimeout {
            limits.connectivityTimeout = timeout.saturatingNanoseconds
        } else if specification.kind == .download || specification.kind == .upload {
            limits.connectivityTimeout = .max
        }
        var segments: [BodySegment] = []
        let known = preparedRequest.find(request)
        var origin = known?.origin ?? .unknown
        var failure = specification.failure
        var upload: UploadJob?
        do throws(HTTPSessionError) {
            if let failure { throw failure }
            if known == nil { origin = try check(request) }
            security.loadAuthorities(for: origin)
            segments = try request.body.segments()
            if case .file(let destination) = specification.destination { try destination.check() }
            if let url = specification.uploadLocation?.known { _ = try check(TransferRequest(url: url)) }
            if let uploadProtocol = specification.uploadProtocol {
                upload = try UploadJob(
                    request, segments, uploadProtocol, allowsInsecure: configuration.followsInsecureRedirects,
                    forwarding: configuration.forwardedHeaderFields,
                    location: specification.uploadLocation)
            }
        } catch {
            failure = error
        }
        let prepared = known ?? PreparedRequest(request, origin: origin, segments: segments, settings: self)
        if known == nil, failure == nil { preparedRequest.store(prepared) }
        let job = TaskJob(
            specification, prepared, segments: segments, limits: limits,
            retryPolicy: options.retryPolicy ?? configuration.retryPolicy, upload: upload)
        return (job, failure)
    }
}
