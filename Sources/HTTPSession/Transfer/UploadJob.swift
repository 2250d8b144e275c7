package import FoundationEssentials
internal import HTTPTypes

/// The parts of a task that uploads in several requests.
struct UploadJob: Sendable {
    let machine: UploadMachine
    let body: ResumableBody
    /// Called with the location of the upload after each response of its server.
    let reportLocation: (@Sendable (URL) -> Void)?

    /// Checks the request, and records the versions of the body's files.
    init(
        _ request: TransferRequest, _ segments: [BodySegment], _ kind: UploadProtocol, allowsInsecure: Bool,
        forwarding: Set<HTTPField.Name>,
        location: UploadLocation? = nil
    ) throws(HTTPSessionError) {
        if let objection = kind.objection(to: request) { throw objection }
        body = try ResumableBody(segments)
        var machine = UploadMachine(
            kind.kind, length: body.length, isIdempotent: request.isIdempotent, allowsInsecure: allowsInsecure,
            forwarding: forwarding)
        if let location, let known = location.known { machine.resume(at: known, mayRestart: location.mayRestart) }
        self.machine = machine
        reportLocation = location?.report
    }
}

/// The location of a resumable upload, which several processes may continue in turn.
package struct UploadLocation: Sendable {
    /// The location that the server gave to another process; `nil` if there is none.
    package var known: URL?
    /// Whether the upload is restarted if its server no longer knows it, although it may have been complete.
    package var mayRestart: Bool
    /// Called with the location after each response of the server. Called on the session's thread, so it must not block.
    package var report: @Sendable (URL) -> Void

    package init(known: URL?, mayRestart: Bool = false, report: @escaping @Sendable (URL) -> Void) {
        self.known = known
        self.mayRestart = mayRestart
        self.report = report
    }
}
