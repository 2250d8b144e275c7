internal import Reachability

/// What other threads tell a session's thread.
enum SessionCommand: Sendable {
    case add(TransferTask, TransferJob)
    case resume(UInt64)
    case suspend(UInt64)
    case cancel(UInt64)
    /// A body's source has something to send.
    case sourceReady(UInt64)
    /// A body's sink has room.
    case sinkReady(UInt64)
    /// A request is not wanted to its end.
    case requestStopDue(UInt64)
    // Indirect: the seldom ones that hold much would make room for as much in each of the others.
    indirect case answered(UInt64, question: Int, HandlerAnswer)
    /// A sink is done with a body.
    indirect case delivered(UInt64, Result<ReceivedBody, HTTPSessionError>)
    /// A download's file has been looked at.
    indirect case partialFileOpened(UInt64, Result<FileSink.Remains, HTTPSessionError>)
    indirect case digestVerified(UInt64, Result<Bool, HTTPSessionError>)
    /// A complete upload's digest has been compared with the server's.
    case uploadDigestVerified(UInt64, Bool)
    case invalidate(cancelsTasks: Bool)
    case list(@Sendable ([TransferTask]) -> Void)
    indirect case pathChanged(NetworkPath)
    /// The monitor has something to say of the kernel's routes: ``KernelNotices``.
    case routesChanged
    indirect case serverChanged(Origin, watch: UInt64, ServerUpdate)
    case end
}
