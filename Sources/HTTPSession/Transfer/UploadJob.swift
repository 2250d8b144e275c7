package import FoundationEssentials

/// What a task needs to upload in several requests.
struct UploadJob: Sendable {
    let machine: UploadMachine
    let body: ResumableBody
    /// Hears where the upload is, whenever its server has answered.
    let tellsPlace: (@Sendable (URL) -> Void)?

    /// Checks the request, and looks at the body's files.
    init(
        _ request: TransferRequest, _ segments: [BodySegment], _ kind: UploadProtocol, allowsInsecure: Bool,
        place: UploadPlace? = nil
    ) throws(HTTPSessionError) {
        if let objection = kind.objection(to: request) { throw objection }
        body = try ResumableBody(segments)
        var machine = UploadMachine(
            kind.kind, length: body.length, isIdempotent: request.isIdempotent, allowsInsecure: allowsInsecure)
        if let place, let known = place.known { machine.resume(at: known, mayRestart: place.mayRestart) }
        self.machine = machine
        tellsPlace = place?.tell
    }
}

/// Where an upload is, across processes.
package struct UploadPlace: Sendable {
    /// What its server said to another process.
    package var known: URL?
    /// Whether it is made again where its server does not know it any more, though it may have been complete.
    package var mayRestart: Bool
    /// Called on the session's thread whenever the server has answered; it must not wait.
    package var tell: @Sendable (URL) -> Void

    package init(known: URL?, mayRestart: Bool = false, tell: @escaping @Sendable (URL) -> Void) {
        self.known = known
        self.mayRestart = mayRestart
        self.tell = tell
    }
}
