internal import FoundationEssentials
internal import Reachability

extension TaskMachine {
    /// The state of a task that its owner sees.
    enum VisibleState: Hashable, Sendable {
        case suspended, waiting, running, backingOff, waitingForConnectivity
    }

    /// A report to monitors, notifications and the task's handlers; see ``SessionEvent``.
    enum Report: Sendable {
        case redirected(ResponseHead)
        indirect case challenged(AuthenticationChallenge)
        indirect case serverTrustChallenged(ServerTrustChallenge)
        indirect case clientCertificateChallenged(ClientCertificateChallenge)
        indirect case becameDownload(DownloadDestination)
        indirect case willRetry(HTTPSessionError)
        indirect case waitingForConnectivity(HTTPSessionError)
        indirect case downloadContinued(offset: Int64, total: Int64?)
        indirect case uploadContinued(offset: Int64, total: Int64)
        indirect case fileMoved(DownloadDestination)
        indirect case fileMoveFailed(HTTPSessionError)
    }

    /// An effect, performed in order. An effect that expects an answer names the event that carries it. No effect has a payload,
    /// so that lists of them stay cheap.
    enum Effect: Sendable {
        // MARK: The queue
        /// The driver answers with ``TaskMachine/Event/admitted``.
        case enqueue
        /// Enqueues the task before tasks that have not begun.
        case enqueueFirst
        case dequeue
        /// Frees the task's slot in the queue.
        case releaseQueueSlot
        /// Frees the task's slot in the queue while the lookup of the host's name continues in its thread.
        case releaseQueueSlotDuringLookup
        /// Records that the host's name is resolved.
        case recordResolvedName
        /// Reports that the lookup had no answer within a request timeout, to all tasks that wait for it.
        case reportStalledLookup

        // MARK: The attempt
        /// The driver answers with ``TaskMachine/Event/startFailed(_:hasBegun:)``,
        /// ``TaskMachine/Event/sharedLookupFailed`` or ``TaskMachine/Event/joinedOutage(_:)``, or with the events of the
        /// transfer.
        case startTransfer
        case suspendTransfer
        case resumeTransfer
        /// Checks whether the connection that is being made has a route.
        case checkRoutes
        case abandon
        /// Abandons the transfer without closing its connection in protocol: no route leads to the server.
        case abandonSilently
        /// Requests the host over https from now on (RFC 6797).
        case upgradeToHTTPS
        /// Reports that the request was not sent, if none of the task's has been.
        case reportNotSent

        // MARK: Bodies
        /// Opens the sink of the attempt's ``Attempt/destination`` for the response's body.
        case openSink
        /// Receives again after the sink was full.
        case resumeReceiving
        /// Stops the request before its end. libcurl is informed later, by ``TaskMachine/Event/requestStopDue``.
        case scheduleRequestStop

        // MARK: The user's handlers
        /// Withdraws the open question from its handler.
        case withdrawQuestion

        // MARK: The network
        /// Removes the task from the outage of its server.
        case leaveOutage
        /// Checks whether the request may be sent over the current networks. The driver answers with
        /// ``TaskMachine/Event/networkAllowed`` if so.
        case checkAllowedNetworks

        // MARK: Retries
        case refundRetry
        /// The driver answers with ``TaskMachine/Event/retryGranted`` or ``TaskMachine/Event/retryPostponed(_:)``.
        case requestRetry

        // MARK: The owner
        /// Shows ``TaskMachine/visibleState`` to the owner.
        case publishState
        /// Shows ``TaskMachine/backoffDeadline`` to the owner.
        case publishBackoff
        case publishProgress
        case reportResumed
        case reportSuspended
        /// Reports the last of ``TransferMetrics/transactions`` to monitors.
        case reportTransaction
        /// Checks whether only the session refers to the task. The driver answers with ``TaskMachine/Event/cancel`` if so.
        case checkForReferences

        // MARK: The end
        /// Makes the result from the received body. The driver answers as it answers ``TaskMachine/Command/discardBody(_:)``.
        case finishSink
        /// Completes the task with ``TaskMachine/result``.
        case completeTask

        // MARK: Effects with a payload
        /// Runs the next command, ``TaskMachine/takeCommand()``.
        case runCommand
    }

    /// An effect with a payload.
    enum Command: Sendable {
        // MARK: The attempt
        /// Opens the partial file of an earlier download. The driver answers with
        /// ``TaskMachine/Event/partialFileOpened(_:)``.
        case openPartialFile(DownloadDestination)
        /// Records the metrics of the attempt at this request with ``TaskMachine/note(_:of:)``. The next request may be
        /// another one.
        case recordMetrics(of: TransferRequest)
        /// Releases the request's user-supplied body outside the loop's thread.
        case releaseBody(of: TransferRequest)

        // MARK: Bodies
        /// Sends this range of the upload's body with the next request.
        case sendBodyRange(from: Int64, count: Int64)
        case sendSegments([BodySegment])
        /// Renames the open file by a response that names it again.
        case renameFile(by: ResponseHead)
        /// Confirms that the file at the destination is the requested version.
        case confirmFinishedFile(FileValidator)
        /// Delivers a body that arrived before its destination was known. The driver answers with
        /// ``TaskMachine/Event/bufferedBodyDelivered(_:)``.
        case deliverBufferedBody(Data)
        /// The driver answers with ``TaskMachine/Event/digestVerified(_:)``.
        case verifyDigest(ContentDigest)
        /// The driver answers with ``TaskMachine/Event/uploadDigestVerified(_:)``.
        case verifyUploadDigest(ContentDigest)
        /// Reports the upload's URL, which the server has sent.
        case reportUploadLocation(URL)

        // MARK: The user's handlers
        /// The driver answers with ``TaskMachine/Event/handlerAnswered(question:_:)``.
        case askHandler(question: Int, HandlerQuestion)
        case storeCredential(Credential, AuthenticationChallenge.ProtectionSpace)
        case recordTrust(ServerTrustDisposition, ServerTrustChallenge)
        case recordIdentity(ClientIdentity?)
        case forgetIdentity(Origin)

        // MARK: The network
        /// Asks the outage tracker why the attempt failed. The driver answers with ``TaskMachine/Event/failureExplained(_:)``.
        case explainFailure(hasNoNetwork: Bool)

        // MARK: Retries
        case openRetryBudget(Origin)

        // MARK: The owner
        case report(Report)

        // MARK: The end
        /// Discards the received body. The driver answers with ``TaskMachine/delivered(_:during:now:)``.
        case discardBody(HTTPSessionError)
    }
}
