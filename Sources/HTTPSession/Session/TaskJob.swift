internal import EventLoop
internal import Pacing

/// The job of a task: what its caller asks for, and what the caller's thread prepares to relieve the session's. A class, because a copy would retain
/// each of its members.
final class TaskJob: Sendable {
    /// The statuses of successful responses.
    static let successes = 200...299

    let id: UInt64
    let request: TransferRequest
    let kind: TransferTask.Kind
    let destination: BodyDestination
    /// The statuses whose bodies go to a file or a reader; others fail the task. It is `nil` for all statuses.
    let acceptableStatusCodes: ClosedRange<Int>?
    /// The resume data's record from which the download continues; `nil` to continue from a partial file at its destination, if there is one.
    let record: ResumeDirectory.Record?
    /// The resumable upload; `nil` if one request sends the body.
    let upload: UploadJob?
    let sendApproval: SendApproval?
    /// The number of times that interceptors have repeated the request before this task.
    let interceptions: Int
    let prepared: PreparedRequest
    let segments: [BodySegment]
    let limits: TaskStateMachine.Limits
    let retryPolicy: RetryPolicy
    /// The reason why the request cannot be made; the task fails with it.
    let failure: HTTPSessionError?

    /// Checks and prepares a request. `uploadLocation` is that of an upload which another process may have begun; a `failure` is known before.
    init(
        _ request: TransferRequest, _ kind: TransferTask.Kind, to destination: BodyDestination,
        accepting acceptableStatusCodes: ClosedRange<Int>? = nil, id: UInt64 = SessionCore.nextID(),
        record: ResumeDirectory.Record? = nil,
        uploadProtocol: UploadProtocol? = nil, uploadLocation: UploadLocation? = nil, sendApproval: SendApproval? = nil,
        interceptions: Int = 0, failure: HTTPSessionError? = nil, settings: SessionSettings
    ) {
        let options = request.options
        var limits = settings.taskLimits
        if let timeout = options.requestTimeout { limits.requestTimeout = timeout.saturatingNanoseconds }
        if let timeout = options.resourceTimeout { limits.resourceTimeout = timeout.saturatingNanoseconds }
        if let timeout = options.connectivityTimeout {
            limits.connectivityTimeout = timeout.saturatingNanoseconds
        } else if kind == .download || kind == .upload {
            limits.connectivityTimeout = .max
        }
        var segments: [BodySegment] = []
        let known = settings.preparedRequest.find(request)
        var origin = known?.origin ?? .unknown
        var failure = failure
        var upload: UploadJob?
        do throws(HTTPSessionError) {
            if let failure { throw failure }
            if known == nil { origin = try settings.check(request) }
            settings.security.loadAuthorities(for: origin)
            segments = try request.body.segments()
            if case .file(let destination) = destination { try destination.check() }
            if let url = uploadLocation?.known { _ = try settings.check(TransferRequest(url: url)) }
            if let uploadProtocol {
                upload = try UploadJob(
                    request, segments, uploadProtocol, allowsInsecure: settings.configuration.followsInsecureRedirects,
                    forwarding: settings.configuration.forwardedHeaderFields, location: uploadLocation)
            }
        } catch {
            failure = error
        }
        let prepared = known ?? PreparedRequest(request, origin: origin, segments: segments, settings: settings)
        if known == nil, failure == nil { settings.preparedRequest.store(prepared) }
        self.id = id
        self.request = request
        self.kind = kind
        self.destination = destination
        self.acceptableStatusCodes = acceptableStatusCodes
        self.record = record
        self.upload = upload
        self.sendApproval = sendApproval
        self.interceptions = interceptions
        self.prepared = prepared
        self.segments = segments
        self.limits = limits
        retryPolicy = options.retryPolicy ?? settings.configuration.retryPolicy
        self.failure = failure
    }

    var origin: Origin { prepared.origin }
    var host: TaskQueue.Host { prepared.host }

    /// Whether the job may reference objects of the user.
    var mayHaveUserObjects: Bool {
        guard case .none = prepared.request.body, case .memory = destination else { return true }
        return !segments.isEmpty || upload != nil || record != nil || sendApproval != nil
    }

    /// Whether another task of the session can send the same request for the same kind of response.
    var isRepeatable: Bool { (kind == .data || kind == .upload) && upload == nil && sendApproval == nil }
}

/// The values that a session derives from a request before a task starts. They are the same for copies of one request, and for equal requests
/// without a body.
final class PreparedRequest: Sendable {
    let request: TransferRequest
    let origin: Origin
    let host: TaskQueue.Host
    /// The plan of the first attempt.
    let plan: TransferPlan

    init(_ request: TransferRequest, origin: Origin, segments: [BodySegment], settings: SessionSettings) {
        self.request = request
        self.origin = origin
        host = settings.host(of: origin)
        plan = TransferPlan(request, logins: TaskLogins(), settings: settings, segments: segments, change: nil)
    }
}

/// The last prepared request of a session, which the session keeps with its fields until another one or its own end. Programs that
/// poll a server repeat a request.
final class LastPreparedRequest: Sendable {
    private let last = Locked<PreparedRequest?>(nil)

    /// Returns the preparation of the last request if this one has the same; otherwise `nil`.
    func find(_ request: TransferRequest) -> PreparedRequest? {
        guard let prepared = last.withLock({ $0 }), prepared.request.sharesPreparation(with: request) else { return nil }
        return prepared
    }

    /// Stores a request whose body has no objects of the user.
    func store(_ prepared: PreparedRequest) {
        guard case .none = prepared.request.body else { return }
        // The previous request is released outside of the lock.
        let former = last.withLock { last in
            defer { last = prepared }
            return last
        }
        withExtendedLifetime(former) {}
    }
}
