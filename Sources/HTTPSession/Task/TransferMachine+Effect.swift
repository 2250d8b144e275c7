internal import FoundationEssentials
internal import Reachability

extension TransferMachine {
    /// What a task's owner sees of its life.
    enum Standing: Hashable, Sendable {
        case suspended, waiting, running, backingOff, waitingForConnectivity
    }

    /// What monitors, notifications and the task's handlers are told of; ``SessionEvent`` says what it means.
    enum News: Sendable {
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

    /// What is to be done, in this order. Those that are answered say by which event. None carries anything: a list of them costs little.
    enum Effect: Sendable {
        // MARK: The queue
        /// Answered by ``TransferMachine/Event/admitted``.
        case enqueue
        /// As ``enqueue``, before tasks that have not begun: this one is on its way.
        case enqueueFirst
        case dequeue
        /// The place is free.
        case leave
        /// The place is free, and a look-up of the host's name goes on without it.
        case leaveLookingUp
        /// The look-up of the host's name is over.
        case lookedUp
        /// The look-up had no answer for as long as a request waits for one: it has none for all who wait for it.
        case nameIsUnanswered

        // MARK: The attempt
        /// Answered by ``TransferMachine/Event/cannotStart(_:hasBegun:)``, ``TransferMachine/Event/nameStaysUnanswered``,
        /// ``TransferMachine/Event/joined(_:)``, or by what the transfer tells.
        case start
        case hold
        case letGo
        /// A connection that is being made is looked at: it may have no way.
        case judgeAttempt
        case abandon
        /// As ``abandon``; nothing is told to a server that nothing leads to.
        case abandonSilently
        /// The host is spoken to by https from now on (RFC 6797).
        case raise
        /// The attempt has ended, or has not begun after all.
        case stay

        // MARK: Bodies
        /// The response's body begins, and goes to the attempt's ``Attempt/destination``.
        case open
        /// The receiver has room again.
        case receive
        /// The request is not wanted to its end; libcurl is told later, by ``TransferMachine/Event/breakOff``.
        case breakOffSoon

        // MARK: The user's handlers
        /// Nobody waits for the answer any more.
        case withdraw

        // MARK: The network
        /// The gate need not know of the task any more.
        case leaveGate
        /// May the request be sent over what there is now? If so, answered by ``TransferMachine/Event/networkIsAllowed``.
        case lookAtNetwork

        // MARK: Retries
        case noteSuccess
        /// Answered by ``TransferMachine/Event/retryIsPaid`` or ``TransferMachine/Event/retryHasToWait(_:)``.
        case payRetry

        // MARK: The owner
        /// The owner sees ``TransferMachine/standing``.
        case stand
        /// The owner sees ``TransferMachine/backsOffUntil``.
        case backOff
        case publishProgress
        case announceResumed
        case announceSuspended
        /// Monitors hear of the last of ``TransferMetrics/transactions``.
        case tellTransaction
        /// Does anybody but the session refer to the task? If not, answered by ``TransferMachine/Event/cancel``.
        case lookForHolder

        // MARK: The end
        /// What was asked for is to be made of what has come. Answered as ``discard(_:)`` is.
        case deliver
        /// ``TransferMachine/result`` is the task's.
        case complete

        // MARK: What carries something
        /// The next of ``TransferMachine/takeOrder()``.
        case order
    }

    /// An effect that needs more than its name.
    enum Order: Sendable {
        // MARK: The attempt
        /// What is left of an earlier download is looked at. Answered by ``TransferMachine/Event/partOpened(_:)``.
        case openPart(DownloadDestination)
        /// What was measured of the attempt at this request is noted by ``TransferMachine/note(_:of:)``; the next request may be another.
        case measure(TransferRequest)
        /// What of this is the user's ends elsewhere.
        case release(TransferRequest)

        // MARK: Bodies
        /// The body of the next request is this part of the upload's.
        case sendPart(from: Int64, count: Int64)
        case sendSegments([BodySegment])
        /// The response names the file that is open anew.
        case rename(ResponseHead)
        /// The file at the destination is what was asked for.
        case confirm(FileValidator)
        /// Bytes that have come before their place was known. Answered by ``TransferMachine/Event/fed(_:)``.
        case feed(Data)
        /// Answered by ``TransferMachine/Event/verified(_:)``.
        case verify(ContentDigest)
        /// Answered by ``TransferMachine/Event/uploadVerified(_:)``.
        case verifyUpload(ContentDigest)
        /// The server has said where the upload is.
        case tellPlace(URL)

        // MARK: The user's handlers
        /// Answered by ``TransferMachine/Event/answered(question:_:)``.
        case ask(question: Int, HandlerQuestion)
        case keepCredential(Credential, AuthenticationChallenge.ProtectionSpace)
        case recordTrust(ServerTrustDisposition, ServerTrustChallenge)
        case recordIdentity(ClientIdentity?)
        case forgetIdentity(Origin)

        // MARK: The network
        /// Why did the attempt fail? Answered by ``TransferMachine/Event/explained(_:)``.
        case askGate(hasNoNetwork: Bool)

        // MARK: Retries
        case noteTrouble(Origin)

        // MARK: The owner
        case tell(News)

        // MARK: The end
        /// What has come is not wanted. Answered by ``TransferMachine/delivered(_:during:now:)``.
        case discard(HTTPSessionError)
    }
}
