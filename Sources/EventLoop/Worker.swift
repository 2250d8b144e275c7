/// A thread for slow work: reading, writing, syncing and renaming files, and user code. Jobs run one after another, in order.
///
/// The queue has no limit of its own: each caller limits the jobs that it queues.
package final class Worker: Sendable {
    package typealias Job = @Sendable () -> Void

    private enum Message: Sendable {
        case job(Job)
        case end
    }

    private let mailbox = Mailbox<Message>()
    private let thread: LoopThread

    /// - Parameter name: The thread's name for debuggers and `ps -L`, at most 15 bytes.
    /// - Throws: The failed system call.
    package init(name: String) throws(LoopThread.StartError) {
        let waker: Waker
        do { waker = try Waker(blocks: true) } catch { throw .system(error) }
        let mailbox = mailbox
        mailbox.attach(waker)
        thread = try LoopThread(name: name, namespace: nil) { { Worker.work(mailbox, waker) } }
    }

    /// Queued jobs still run.
    deinit { mailbox.post(.end) }

    package func run(_ job: @escaping Job) { mailbox.post(.job(job)) }

    private static func work(_ mailbox: Mailbox<Message>, _ waker: Waker) {
        while true {
            if mailbox.mayWait() { waker.waitAndAcknowledge() }
            for message in mailbox.takeAll(staysAwake: true) {
                switch message {
                case .job(let job): job()
                case .end: return
                }
            }
        }
    }
}
