import FoundationEssentials
import HTTPSession

/// One file to transfer.
struct TransferItem: Hashable {
    var url: URL
    /// The URL as the user wrote it, without user and password.
    var address: String
    /// The name of the file, for people.
    var name: String
    /// The path of the file that a download creates; `nil` for an upload.
    var file: String?
}

/// The work of the main loop: the downloads of `get`, or the upload of `put`.
protocol TransferWork {
    /// The command's name, with which its errors begin.
    var command: String { get }
    var direction: TransferStatus.Direction { get }
    var items: [TransferItem] { get }
    /// Returns the size in bytes of an item that is already complete, so that nothing is requested; otherwise `nil`.
    func presentSize(_ index: Int) -> Int64?
    /// Creates the next task for an item. `attempts`: the number of attempts in this run.
    mutating func task(
        _ index: Int, _ options: TransferRequest.Options, attempts: Int, _ session: HTTPSessionManager
    ) -> TransferTask
    /// Handles the last response of an item's task, whatever its status. - Returns: Whether another task follows.
    mutating func needsAnotherTask(_ index: Int, after answer: TransferAnswer) -> Bool
    /// Discards the state that a later run would continue: the item is complete, or its server refuses it permanently.
    func discardResumeState(_ index: Int)
    /// Called at the end of the run.
    func close()
    /// Returns whether a later run can continue the item.
    func canContinue(_ index: Int) -> Bool
}
