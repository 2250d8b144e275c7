internal import Dispatch
internal import EventLoop
internal import Foundation
internal import Reachability
internal import Synchronization

/// What a session's manager and its tasks hold: the way to its thread. The thread ends with the last of them.
final class SessionCore: Sendable {
    let settings: SessionSettings
    let outbox: SessionOutbox
    private let mailbox: Mailbox<SessionCommand>
    private let thread: LoopThread
    private let isInvalidated = Atomic(false)
    private static let lastID = Atomic<UInt64>(0)

    init(settings: SessionSettings, monitors: [any EventMonitor], postsNotifications: Bool) throws(HTTPSessionError) {
        let mailbox = Mailbox<SessionCommand>()
        let outbox = SessionOutbox(
            name: settings.configuration.name, telemetry: Telemetry(logger: settings.configuration.logger), monitors: monitors,
            postsNotifications: postsNotifications)
        var cookieLines: [String] = []
        if case .file(let url) = settings.network.cookies { cookieLines = try CookieFile.read(url) }
        let failure = Locked<HTTPSessionError?>(nil)
        let namespace = settings.configuration.networkNamespace
        do throws(LoopThread.StartError) {
            thread = try LoopThread(name: String(settings.configuration.name.prefix(15)), namespace: namespace?.path) {
                [cookieLines] () throws(LoopError) -> () -> Void in
                do throws(HTTPSessionError) {
                    let loop = try SessionLoop(settings: settings, cookieLines: cookieLines, mailbox: mailbox, outbox: outbox)
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
        self.mailbox = mailbox
        if let error = failure.withLock({ $0 }) { throw error }
    }

    deinit {
        mailbox.post(.end)
        thread.join()
    }

    private static func startError(_ error: LoopThread.StartError, _ namespace: NetworkNamespace?) -> HTTPSessionError {
        let name = namespace.map { "'\($0)'" } ?? ""
        return switch error {
        case .noNamespace(let number):
            HTTPSessionError(.invalidConfiguration, "no network namespace \(name)", context: .init(systemError: number))
        case .notPermitted: HTTPSessionError(.invalidConfiguration, "not permitted to enter network namespace \(name)")
        case .system(let call): HTTPSessionError(.transferFailed, "\(call.call) failed", context: .init(systemError: call.errno))
        }
    }

    static func nextID() -> UInt64 {
        lastID.add(1, ordering: .relaxed).newValue
    }

    static func invalidated(_ task: TransferTask) -> HTTPSessionError {
        HTTPSessionError(.sessionInvalidated, "the session has been invalidated", context: task.context)
    }

    func post(_ command: SessionCommand) { mailbox.post(command) }

    func add(_ task: TransferTask, _ job: TransferJob) {
        guard !isInvalidated.load(ordering: .acquiring) else { return completeUnstarted(task, SessionCore.invalidated(task)) }
        if !mailbox.post(.add(task, job)) { completeUnstarted(task, SessionCore.invalidated(task)) }
    }

    func completeUnstarted(_ task: TransferTask, _ error: HTTPSessionError) {
        task.chunkBuffer?.finish(error)
        outbox.complete(task, .failure(error))
        outbox.flush()
    }

    /// The tasks that the session's thread has under way. It answers within its turn, which waits for nothing.
    var tasks: [TransferTask] {
        let answer = Locked<[TransferTask]>([])
        let answered = DispatchSemaphore(value: 0)
        let isOpen = mailbox.post(
            .list { tasks in
                answer.withLock { $0 = tasks }
                answered.signal()
            })
        if isOpen { answered.wait() }
        return answer.withLock { $0 }
    }

    func deliver(_ body: @escaping @Sendable () -> Void) { outbox.queue.async(execute: body) }

    func invalidate(_ manager: HTTPSessionManager, cancelsTasks: Bool) {
        // Once: behind the end nobody would let go of the manager again.
        if !isInvalidated.exchange(true, ordering: .acquiringAndReleasing) { outbox.invalidationComes(to: manager) }
        mailbox.post(.invalidate(cancelsTasks: cancelsTasks))
    }
}
