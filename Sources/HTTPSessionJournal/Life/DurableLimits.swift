/// How much a durable session's journal takes, and for how long.
public struct DurableLimits: Hashable, Sendable {
    /// Tasks whose events have not been acknowledged.
    public var tasks = 10_000
    /// Bytes of ``DurableTask/context``.
    public var contextBytes = 4 << 10
    /// Bytes of one task's request as it is written down, with a body of data.
    public var requestBytes = 64 << 10
    /// Bytes of an upload's answer that its event has (``DurableEvent/Response/body``): a longer answer is cut off there.
    public var answerBytes = 64 << 10
    /// How long a task may take that says nothing of it itself (`TransferRequest.Options.resourceTimeout`), on the wall clock and over all
    /// processes; then it ends as ``DurableEvent/Outcome/expired``. Events do not expire.
    public var expiry = Duration.seconds(7 * 24 * 3600)

    /// What most programs want.
    public init() {}
}
