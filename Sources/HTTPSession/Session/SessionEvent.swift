/// What happens to a session's tasks, in the order in which it happens to each of them.
@nonexhaustive public enum SessionEvent: Sendable {
    case taskCreated(TransferTask)
    case taskResumed(TransferTask)
    case taskSuspended(TransferTask)
    /// A request is about to be sent: `attempt` counts all of the task's.
    case requestStarted(TransferTask, attempt: Int)
    case receivedInterimResponse(TransferTask, ResponseHead)
    case receivedResponse(TransferTask, ResponseHead)
    case redirected(TransferTask, ResponseHead)
    /// A server or a proxy wants to know who asks: the handler is asked, or the URL or the credential store has the answer. Not told is what
    /// libcurl answers by itself: later rounds of a scheme, and a proxy whose address has user and password.
    case challenged(TransferTask, AuthenticationChallenge)
    /// The handler is asked whether a server is believed.
    case serverTrustChallenged(TransferTask, ServerTrustChallenge)
    /// The handler is asked what to show a server that wants a certificate.
    case clientCertificateChallenged(TransferTask, ClientCertificateChallenge)
    /// Its response goes to a file, as the response's handler has said (``TransferHandlers/ResponseDisposition/becomeDownload(_:)``).
    case becameDownload(TransferTask, DownloadDestination)
    /// Another attempt follows; `error` says what happened to the last one.
    case willRetry(TransferTask, HTTPSessionError)
    /// The network that leads to the server is gone, for this reason; the task goes on when it is back.
    case waitingForConnectivity(TransferTask, HTTPSessionError)
    /// A download goes on behind its first `offset` bytes, of `total` where that is known.
    case downloadContinued(TransferTask, offset: Int64, total: Int64?)
    /// An upload goes on behind its first `offset` bytes of `total`, which its server has.
    case uploadContinued(TransferTask, offset: Int64, total: Int64)
    case transactionFinished(TransferTask, TransactionMetrics)
    case fileMoved(TransferTask, DownloadDestination)
    case fileMoveFailed(TransferTask, HTTPSessionError)
    case taskCompleted(TransferTask, Result<TransferResponse, HTTPSessionError>)
    case sessionInvalidated
    /// A reader of ``HTTPSessionManager/events`` was too slow: this stands for `count` events that were dropped. Monitors never receive it.
    case eventsDropped(count: Int)
}

/// Hears of every event, on the session's delivery queue: one after another, never on the session's own thread.
public protocol EventMonitor: Sendable {
    /// Takes an event. What is slow here delays the events behind it, with the notifications and callbacks of the delivery queue, and
    /// nothing else: transfers go on, and whoever awaits a task hears of its end.
    ///
    /// No event is dropped, and none comes before another: those that wait are kept in memory, without a bound, some ten of them a task,
    /// and with a task's end its response. A monitor that may stall for long hands over to a queue of its own, which has a limit and says
    /// what becomes of the rest.
    func handle(_ event: SessionEvent)
}

extension SessionEvent {
    /// Tells the task's own handlers, where one is meant.
    func tellHandlers() {
        switch self {
        case .downloadContinued(let task, let offset, let total): task.handlers.didResume?(offset, total)
        case .uploadContinued(let task, let offset, let total): task.handlers.didResume?(offset, total)
        default: break
        }
    }
}
