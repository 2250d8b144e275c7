internal import EventLoop

/// A thread that does what may be slow: reading, writing, syncing and renaming files. Jobs run one after another, in their order.
///
/// What is queued is bounded by the sources and sinks that queue it, each for itself.
package final class FileWorker: Sendable {
    package typealias Job = @Sendable () -> Void

    private enum Message: Sendable {
        case job(Job)
        case end
    }

    private let mailbox = Mailbox<Message>()
    private let thread: LoopThread

    package init(name: String) throws(HTTPSessionError) {
        let mailbox = mailbox
        do {
            let waker = try Waker(blocks: true)
            mailbox.attach(waker)
            thread = try LoopThread(name: name, namespace: nil) { () throws(LoopError) -> () -> Void in
                { FileWorker.work(mailbox, waker) }
            }
        } catch {
            throw HTTPSessionError(.transferFailed, "no thread for files: \(error)")
        }
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
