/// A thread that does what may be slow: reading, writing, syncing and renaming files, a user's code. Jobs run one after another, in
/// their order.
///
/// What is queued is bounded by those who queue it, each for itself.
package final class Worker: Sendable {
    package typealias Job = @Sendable () -> Void

    private enum Message: Sendable {
        case job(Job)
        case end
    }

    private let mailbox = Mailbox<Message>()
    private let thread: LoopThread

    /// - Parameter name: at most 15 bytes, for debuggers and `ps -L`.
    /// - Throws: what the system refused.
    package init(name: String) throws(LoopThread.StartError) {
        let waker: Waker
        do { waker = try Waker(blocks: true) } catch { throw .system(error) }
        let mailbox = mailbox
        mailbox.attach(waker)
        thread = try LoopThread(name: name, namespace: nil) { { Worker.work(mailbox, waker) } }
    }

    /// What has been queued is still done.
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
