import FoundationEssentials
import HTTPSession

/// The downloads of `get`.
struct Downloads: TransferWork {
    let plan: GetPlan

    var command: String { "get" }
    var direction: TransferStatus.Direction { .download }
    var items: [TransferItem] { plan.items.map { TransferItem(url: $0.url, address: $0.address, name: $0.name, file: $0.file) } }

    func task(_ index: Int, _ options: TransferRequest.Options, attempts: Int, _ session: HTTPSessionManager) -> TransferTask {
        let item = plan.items[index]
        var request = TransferRequest(url: item.url)
        request.options = options
        // A partial file of this run is always continued.
        let continues = !plan.restarts || attempts > 0
        var destination = DownloadDestination(
            URL(fileURLWithPath: item.file), existingFile: plan.isNamedByServer ? .fail : .replace,
            partialFile: continues ? .keep : .restart, expectedDigest: item.digest)
        destination.keepsValidator = true
        if plan.isNamedByServer {
            destination.naming = ResponseNaming { [name = item.name] in $0.map(FileName.safe) ?? name }
        }
        return session.downloadTask(for: request, to: destination)
    }

    func presentSize(_ index: Int) -> Int64? { plan.items[index].presentSize }

    func needsAnotherTask(_ index: Int, after answer: TransferAnswer) -> Bool { false }

    /// Does nothing: the library removes its partial file itself.
    func discardResumeState(_ index: Int) {}
    func close() {}

    func canContinue(_ index: Int) -> Bool { Destination.canContinue(plan.items[index].file) }
}
