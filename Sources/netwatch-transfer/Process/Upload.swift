import FoundationEssentials
import HTTPSession
import HTTPTypes

/// The upload of `put`.
///
/// A server that speaks tus says so when it is asked (`OPTIONS`, `Tus-Version`), and its uploads are made in another way than by PUT. The
/// IETF's draft needs no question: it is a PUT with fields that a server without it leaves alone.
struct Upload: TransferWork {
    let plan: PutPlan
    private let note: UploadNote?
    /// `auto` until the server has been asked.
    private var dialect: PutPlan.Dialect

    /// `note`: of an earlier run, and for a later one.
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
            // That a server has no OPTIONS is an answer, also where it calls that a fault of its own.
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
        // The task's look at the file comes after the note's: of what was replaced in between, nothing is gone on from.
        if note.hasChanged {
            task.cancel()
            task = self.task(request, kind, session, note)
        }
        task.resume()
        return task
    }

    /// What is sent next leaves when it is written down where to.
    private func task(
        _ request: TransferRequest, _ kind: UploadProtocol, _ session: HTTPSessionManager, _ note: UploadNote
    ) -> TransferTask {
        let location = UploadLocation(known: note.placeOfPresentFile(), mayRestart: true) { [dialect] in note.note($0, dialect) }
        return session.task(
            request, for: .resumableUpload(kind, location: location),
            sendApproval: SendApproval(approve: { await note.settle() }, wasNotSent: {}))
    }

    func presentSize(_ index: Int) -> Int64? { nil }

    mutating func goesOn(_ index: Int, after answer: TransferAnswer) -> Bool {
        guard dialect == .auto else { return false }
        let versions = (answer.tusVersions ?? "").split(separator: ",").map { $0.filter { !$0.isWhitespace } }
        dialect = versions.contains("1.0.0") ? .tus : .draft
        return true
    }

    func settled(_ index: Int) { note?.forget() }
    func close() { note?.close() }

    func isKept(_ index: Int) -> Bool { note?.hasPlace ?? false }
}
