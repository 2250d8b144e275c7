internal import EventLoop

/// The values that a session derives from a request before a task starts. They are the same for copies of one request, and for equal requests
/// without a body.
final class PreparedRequest: Sendable {
    let request: TransferRequest
    let origin: Origin
    let host: TaskQueue.Host
    /// The plan of the first attempt, made by the caller to relieve the session's thread.
    let plan: TransferPlan

    init(_ request: TransferRequest, origin: Origin, segments: [BodySegment], settings: SessionSettings) {
        self.request = request
        self.origin = origin
        host = settings.host(of: origin)
        plan = TransferPlan(request, logins: TaskLogins(), settings: settings, segments: segments, way: nil)
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
        // The former request is released outside of the lock.
        let former = last.withLock { last in
            defer { last = prepared }
            return last
        }
        withExtendedLifetime(former) {}
    }
}
