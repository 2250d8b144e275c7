internal import Dispatch
internal import EventLoop
internal import FoundationEssentials
internal import Reachability
internal import Synchronization

/// The part of a session that its manager and its tasks reference: the mailbox of its thread, and its outbox. The thread ends when the last
/// reference is released.
final class SessionCore: Sendable {
    let settings: SessionSettings
    let outbox: SessionOutbox
    let handlers: SessionHandlers
    private let mailbox: Mailbox<SessionCommand>
    private let thread: LoopThread
    private let isInvalidated = Atomic(false)
    private let isPermanent = Atomic(false)
    private let unstarted = Locked(Unstarted())
    private static let lastID = Atomic<UInt64>(0)

    init(
        settings: SessionSettings, handlers: TransferHandlers, eventMonitors: [any EventMonitor]
    ) throws(HTTPSessionError) {
        let mailbox = Mailbox<SessionCommand>()
        let namespace = settings.configuration.namespace
        let outbox = SessionOutbox(
            name: settings.configuration.name, isInOtherNamespace: namespace != nil || HomeThread.isElsewhere,
            telemetry: Telemetry(logger: settings.configuration.logger), eventMonitors: eventMonitors,
            delay: settings.transport.handoverDelay)
        let failure = Locked<HTTPSessionError?>(nil)
        do throws(LoopThread.StartError) {
            thread = try LoopThread(name: String(settings.configuration.name.prefix(15)), namespace: namespace?.path) {
                () throws(LoopError) -> () -> Void in
                do throws(HTTPSessionError) {
                    let loop = try SessionLoop(settings: settings, mailbox: mailbox, outbox: outbox)
                    return { loop.run() }
                } catch {
                    failure.withLock { $0 = error }
                    return {}
                }
            }
        } catch {
            throw SessionCore.startError(error, namespace)
        }
        self.settings = settings
        self.outbox = outbox
        self.handlers = SessionHandlers(handlers)
        self.mailbox = mailbox
        if let error = failure.withLock({ $0 }) { throw error }
        outbox.onInvalidation { [handlers = self.handlers] in handlers.end() }
    }

    deinit {
        mailbox.post(.end)
        thread.join()
    }

    static func startError(_ error: LoopThread.StartError, _ namespace: NetworkNamespace?) -> HTTPSessionError {
        let name = namespace.map { "'\($0)'" } ?? ""
        return switch error {
        case .noNamespace(let number):
            HTTPSessionError(.invalidConfiguration, "no network namespace \(name)", context: .init(systemError: number))
        case .notPermitted: HTTPSessionError(.invalidConfiguration, "not permitted to enter network namespace \(name)")
        case .system(let call):
            HTTPSessionError(
                .transferFailed, "\(call.call) failed: \(errorText(call.errno))", context: .init(systemError: call.errno))
        }
    }

    static func nextID() -> UInt64 {
        lastID.add(1, ordering: .relaxed).newValue
    }

    static func invalidated(_ task: TransferTask) -> HTTPSessionError {
        HTTPSessionError(.sessionInvalidated, "the session has been invalidated", context: task.context)
    }

    /// Sends a command to the session's thread.
    ///
    /// - Returns: `false` if the session has ended; the command is dropped then.
    @discardableResult
    func post(_ command: SessionCommand) -> Bool { mailbox.post(command) }

    func add(_ task: TransferTask, _ job: TaskJob) {
        guard !isInvalidated.load(ordering: .acquiring) else { return completeUnstarted(task, SessionCore.invalidated(task)) }
        if !mailbox.post(.add(task, job)) { completeUnstarted(task, SessionCore.invalidated(task)) }
    }

    // MARK: Tasks that wait for their first start

    /// The tasks that have not started. They are referenced weakly: a task without any reference cannot be started any more.
    private struct Unstarted: Sendable {
        struct Entry: Sendable {
            weak var task: TransferTask?
        }

        var entries: [Entry] = []
        /// The number of entries at which those of started or released tasks are removed.
        var limit = 64
    }

    /// Registers a task that does not start at once. It fails when the session ends, because its result may be awaited.
    func register(_ task: TransferTask) {
        // A task's last other reference may be released meanwhile. Then it is released with this array, outside of the lock.
        var held: [TransferTask] = []
        unstarted.withLock { unstarted in
            if unstarted.entries.count >= unstarted.limit {
                unstarted.entries.removeAll { entry in
                    guard let task = entry.task else { return true }
                    held.append(task)
                    return !task.isUnstarted
                }
                unstarted.limit = max(64, unstarted.entries.count * 2)
            }
            unstarted.entries.append(.init(task: task))
        }
        if isInvalidated.load(ordering: .sequentiallyConsistent) { task.refuseUnstarted() }
    }

    private func refuseUnstarted() {
        let entries = unstarted.withLock { unstarted in
            defer { unstarted = Unstarted() }
            return unstarted.entries
        }
        for entry in entries { entry.task?.refuseUnstarted() }
    }

    func completeUnstarted(_ task: TransferTask, _ error: HTTPSessionError) {
        task.chunkBuffer?.finish(error)
        // The destination could not be written, and no request was sent.
        let hasNoPlace = task.kind == .download && error.code == .cannotWriteFile
        if error.code == .cannotMoveFile || hasNoPlace { outbox.announce(.fileMoveFailed(task, error)) }
        outbox.complete(task, .failure(error))
        outbox.flush()
    }

    /// The tasks that the session's thread has under way; none if the session has ended.
    func tasks() async -> [TransferTask] {
        await withCheckedContinuation { continuation in
            let isPosted = mailbox.post(.list { tasks in HomeThread.run { continuation.resume(returning: tasks) } })
            if !isPosted { continuation.resume(returning: []) }
        }
    }

    /// Makes the session ignore every invalidation.
    func makePermanent() { isPermanent.store(true, ordering: .relaxed) }

    func deliver(_ body: @escaping @Sendable () -> Void) { outbox.deliver(body) }

    func waitUntilEnded() async {
        guard !isPermanent.load(ordering: .relaxed) else { return }
        await withCheckedContinuation { continuation in outbox.onInvalidation { continuation.resume() } }
    }

    /// Ends the session; observers receive `session` when it has ended.
    func invalidate(cancelsTasks: Bool, session: any AnyObject & Sendable) {
        guard !isPermanent.load(ordering: .relaxed) else { return }
        // Only once: after the session's end nothing would release the manager again.
        if !isInvalidated.exchange(true, ordering: .sequentiallyConsistent) { outbox.beginInvalidation(session) }
        refuseUnstarted()
        mailbox.post(.invalidate(cancelsTasks: cancelsTasks))
    }
}
