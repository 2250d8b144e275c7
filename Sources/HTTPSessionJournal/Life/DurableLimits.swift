/// The limits of a durable session's journal.
public struct DurableLimits: Hashable, Sendable {
    /// The largest number of tasks whose events have not been acknowledged; 10,000 by default.
    public var tasks = 10_000
    /// The largest size of ``DurableTaskInfo/context``, in bytes; 4 KiB by default.
    public var contextBytes = 4 << 10
    /// The largest size of one task's request in the journal, in bytes, with a body of data; 64 KiB by default.
    public var requestBytes = 64 << 10
    /// The number of bytes of an upload's response that its event keeps (``DurableEvent/Response/body``); 64 KiB by default. The journal
    /// drops the remaining bytes.
    public var responseBodyBytes = 64 << 10
    /// The longest duration of a task without a resource timeout (`TransferRequest.Options.resourceTimeout`), by the wall clock and across
    /// all processes; 7 days by default. The task then ends as ``DurableEvent/Outcome/expired``. Events do not expire.
    public var expiry = Duration.seconds(7 * 24 * 3600)

    /// Creates the default limits: 10,000 tasks, contexts of 4 KiB, requests and responses of 64 KiB, seven days.
    public init() {}
}
