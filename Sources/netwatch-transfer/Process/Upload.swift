import FoundationEssentials
import HTTPSession
import HTTPTypes

/// The upload of `put`.
///
/// A server that supports tus reports it in the response to `OPTIONS` (`Tus-Version`); tus does not create uploads by PUT. The
/// IETF's draft needs no such request: it is a PUT with fields that other servers ignore.
struct Upload: TransferWork {
    let plan: PutPlan
    private let note: UploadNote?
    /// The protocol; `auto` until the response to `OPTIONS`.
    private var dialect: PutPlan.Dialect

    /// Creates the upload. `note`: the stored state of an earlier run, which is updated for a later one.
    init(plan: PutPlan, note: UploadNote? = nil) {
        self.plan = plan
        self.note = note
        dialect = note?.known?.dialect ?? plan.dialect
    }

    var command: String { "put" }
    var direction: TransferStatus.Direction { .upload }
    var items: [TransferItem] { [TransferItem(url: plan.url, address: plan.address, name: plan.name)] }

    func task(_ index: Int, _ options: TransferRequest.Options, attempts: Int, _ session: HTTPSessionManager) -> TransferTask {
        var request = TransferRequest(url: plan.url)
        request.options = options
        guard dialect != .auto else {
            request.method = .options
            // A server without OPTIONS may answer with any error, also with 500 or 501: these are not retried.
            request.options.retryPolicy = RetryPolicy(
                maximumRetries: nil, maximumRetryAfter: Transfers.forever, statusCodes: [408, 429, 502, 503, 504])
            return session.dataTask(for: request)
        }
        request.body = .file(URL(fileURLWithPath: plan.file))
        if dialect == .tus {
            request.method = .post
            return task(request, .tus(metadata: ["filename": plan.name]), session)
        }
        request.url = plan.target
        request.method = .put
        return dialect == .draft ? task(request, .draft, session) : session.dataTask(for: request)
    }

    private func task(_ request: TransferRequest, _ kind: UploadProtocol, _ session: HTTPSessionManager) -> TransferTask {
        guard let note else { return session.uploadTask(for: request, resumableUsing: kind) }
        var task = task(request, kind, session, note)
        // The task reads the file after the note did. If the file was replaced in between, the upload must not be continued.
        if note.hasChanged {
            task.cancel()
            task = self.task(request, kind, session, note)
        }
        task.resume()
        return task
    }

    /// Creates the task. Each request waits until the note with the upload's URL is written.
    private func task(
        _ request: TransferRequest, _ kind: UploadProtocol, _ session: HTTPSessionManager, _ note: UploadNote
    ) -> TransferTask {
        let location = UploadLocation(known: note.placeOfCurrentFile(), mayRestart: true) { [dialect] in note.note($0, dialect) }
        return session.task(
            request, for: .resumableUpload(kind, location: location),
            sendApproval: SendApproval(approve: { await note.waitUntilWritten() }, wasNotSent: {}))
    }

    func presentSize(_ index: Int) -> Int64? { nil }

    mutating func needsAnotherTask(_ index: Int, after answer: TransferAnswer) -> Bool {
        guard dialect == .auto else { return false }
        let versions = (answer.tusVersions ?? "").split(separator: ",").map { $0.filter { !$0.isWhitespace } }
        dialect = versions.contains("1.0.0") ? .tus : .draft
        return true
    }

    func discardResumeState(_ index: Int) { note?.forget() }
    func close() { note?.close() }

    func canContinue(_ index: Int) -> Bool { note?.hasPlace ?? false }
}
