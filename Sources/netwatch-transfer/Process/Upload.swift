import Foundation
import HTTPSession
import HTTPTypes

/// The upload of `put`.
///
/// A server that speaks tus says so when it is asked (`OPTIONS`, `Tus-Version`), and its uploads are made in another way than by PUT. The
/// IETF's draft needs no question: it is a PUT with fields that a server without it leaves alone.
struct Upload: TransferWork {
    let plan: PutPlan
    /// `auto` until the server has been asked.
    private var dialect: PutPlan.Dialect

    init(plan: PutPlan) {
        self.plan = plan
        dialect = plan.dialect
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
            return session.data(request)
        }
        request.body = .file(URL(fileURLWithPath: plan.file))
        if dialect == .tus {
            request.method = .post
            return session.upload(request, resumably: .tus(metadata: ["filename": plan.name]))
        }
        request.url = plan.target
        request.method = .put
        return dialect == .draft ? session.upload(request, resumably: .draft) : session.data(request)
    }

    mutating func goesOn(_ index: Int, after answer: TransferAnswer) -> Bool {
        guard dialect == .auto else { return false }
        let versions = (answer.tusVersions ?? "").split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        dialect = versions.contains("1.0.0") ? .tus : .draft
        return true
    }

    /// What its server has is known to this run only.
    func isKept(_ index: Int) -> Bool { false }
}
