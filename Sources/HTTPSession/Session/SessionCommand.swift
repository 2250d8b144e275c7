internal import Reachability

/// A command of another thread to a session's thread.
enum SessionCommand: Sendable {
    case add(TransferTask, TaskJob)
    case resume(UInt64)
    case suspend(UInt64)
    case cancel(UInt64)
    /// The source of a body has bytes to send.
    case sourceReady(UInt64)
    /// The sink of a body has room.
    case sinkReady(UInt64)
    /// The remaining request body is not needed.
    case abortRequest(UInt64)
    // Indirect: otherwise every command would be as large as the largest of these rare ones.
    indirect case answered(UInt64, question: Int, HandlerAnswer)
    /// A sink has finished a body.
    indirect case delivered(UInt64, Result<ReceivedBody, HTTPSessionError>)
    /// The files that earlier downloads have left have been read.
    indirect case partialFileOpened(UInt64, Result<FileSink.Remains, HTTPSessionError>)
    indirect case digestVerified(UInt64, Result<Bool, HTTPSessionError>)
    /// The digest of a complete upload has been compared with the server's.
    case uploadDigestVerified(UInt64, Bool)
    case invalidate(cancelsTasks: Bool)
    case list(@Sendable ([TransferTask]) -> Void)
    indirect case pathChanged(NetworkPath)
    /// The kernel's routes have changed: ``KernelNotices`` has the path.
    case routesChanged
    indirect case serverChanged(Origin, watch: UInt64, ServerUpdate)
    case end
}
