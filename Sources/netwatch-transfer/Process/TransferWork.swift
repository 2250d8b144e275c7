import FoundationEssentials
import HTTPSession

/// One thing that is transferred, as it is told of.
struct TransferItem: Hashable {
    var url: URL
    /// As the user wrote it, without user and password.
    var address: String
    /// Of the file, for people.
    var name: String
    /// The path of the file that a download makes; `nil`: of an upload.
    var file: String?
}

/// What the main loop transfers: the downloads of `get`, or the upload of `put`.
protocol TransferWork {
    /// The command's name, as its errors begin.
    var command: String { get }
    var direction: TransferStatus.Direction { get }
    var items: [TransferItem] { get }
    /// The size in bytes of an item that is known to be complete, so that nothing is requested for it; otherwise `nil`.
    func presentSize(_ index: Int) -> Int64?
    /// Makes the task that is next for an item. `attempts`: how many there were in this run.
    mutating func task(
        _ index: Int, _ options: TransferRequest.Options, attempts: Int, _ session: HTTPSessionManager
    ) -> TransferTask
    /// A task of an item's has had its last answer, whatever it says. - Returns: whether another task follows.
    mutating func goesOn(_ index: Int, after answer: TransferAnswer) -> Bool
    /// An item is whole, or its server does not want it: what there is of it is of no use to a later run.
    func settled(_ index: Int)
    /// The run is over, however it ends.
    func close()
    /// Whether a later run can go on from what there is of an item.
    func isKept(_ index: Int) -> Bool
}
