/// An event of a session. Events of one task come in the order in which they happen.
@nonexhaustive public enum SessionEvent: Sendable {
    /// A task was made.
    case taskCreated(TransferTask)
    /// A task started, or was resumed.
    case taskResumed(TransferTask)
    /// A task was suspended.
    case taskSuspended(TransferTask)
    /// A request is about to be sent. `attempt` counts the attempts of the task from 1.
    case requestStarted(TransferTask, attempt: Int)
    /// An interim response (1xx) arrived.
    case receivedInterimResponse(TransferTask, ResponseHead)
    /// The head of a response arrived, also of a redirect, a challenge or a response that is followed by a retry.
    case receivedResponse(TransferTask, ResponseHead)
    /// A redirect is followed.
    case redirected(TransferTask, ResponseHead)
    /// A server or a proxy requests credentials. They come from the URL, the credential store or the handler.
    ///
    /// There is no event for challenges that libcurl answers itself: further rounds of a scheme, and a proxy whose URL has user and password.
    case challenged(TransferTask, AuthenticationChallenge)
    /// A handler decides whether a server's certificate is trusted.
    case serverTrustChallenged(TransferTask, ServerTrustChallenge)
    /// A handler chooses a client certificate for a server that requests one.
    case clientCertificateChallenged(TransferTask, ClientCertificateChallenge)
    /// A data task became a download by its response handler (``TransferHandlers/ResponseDisposition/becomeDownload(_:)``).
    case becameDownload(TransferTask, DownloadDestination)
    /// An attempt failed with this error, and another one follows.
    case willRetry(TransferTask, HTTPSessionError)
    /// The task waits for a network that leads to its server. The error names the missing link or route.
    case waitingForConnectivity(TransferTask, HTTPSessionError)
    /// A download continues after its first `offset` bytes of `total`, which is `nil` if it is not known.
    case downloadContinued(TransferTask, offset: Int64, total: Int64?)
    /// An upload continues after the first `offset` bytes of `total`, which its server has.
    case uploadContinued(TransferTask, offset: Int64, total: Int64)
    /// A request and its response, or its failure, ended.
    case transactionFinished(TransferTask, TransactionMetrics)
    /// The file of a download was moved to its destination.
    case fileMoved(TransferTask, DownloadDestination)
    /// The file of a download cannot be moved to its destination; the task fails with this error.
    case fileMoveFailed(TransferTask, HTTPSessionError)
    /// A task finished.
    case taskCompleted(TransferTask, Result<TransferResponse, HTTPSessionError>)
    /// The session ended. This is its last event.
    case sessionInvalidated
    /// A reader of ``HTTPSessionManager/events`` was too slow: this event replaces `count` dropped events. Monitors never receive it.
    case eventsDropped(count: Int)
}

/// A receiver of every event of its sessions: one after another, on a session's delivery queue, never on the session's thread.
public protocol EventMonitor: Sendable {
    /// Receives an event.
    ///
    /// A slow monitor delays later events and the callbacks of the delivery queue. It does not delay transfers, nor the code that awaits a task.
    ///
    /// Events are neither dropped nor reordered. Pending events are kept in memory without a limit, about ten for each task; the last one has the
    /// task's response. A monitor that may block for long should use a queue of its own with a limit, or ``HTTPSessionManager/events``.
    func handle(_ event: SessionEvent)
}

extension SessionEvent {
    /// Calls the task's own handler for this event, if there is one.
    func notifyHandlers() {
        switch self {
        case .downloadContinued(let task, let offset, let total): task.handlers.didContinue?(offset, total)
        case .uploadContinued(let task, let offset, let total): task.handlers.didContinue?(offset, total)
        default: break
        }
    }
}

/// A monitor that also receives the results of a task's callbacks, and the session that has ended, as AFNetworking's notifications need them.
package protocol SessionObserver: EventMonitor {
    /// A task has finished, and its callbacks have run. `serializations` has what each of them received, in the order in which they were added.
    func taskDidComplete(
        _ task: TransferTask, _ result: Result<TransferResponse, HTTPSessionError>, _ serializations: [TransferTask.Serialization]
    )
    /// A session that was invalidated has ended. `session` is its `HTTPSessionManager`.
    func sessionDidInvalidate(_ session: any AnyObject & Sendable)
}

extension TransferTask {
    /// The value or error that a completion callback received.
    package struct Serialization: Sendable {
        /// The serializer of the value.
        package let serializer: any ResponseSerializer
        /// The value, of the serializer's type; or the task's or the serializer's error.
        package let result: Result<any Sendable, HTTPSessionError>
    }
}
