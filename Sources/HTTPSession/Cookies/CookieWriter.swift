internal import Dispatch
internal import EventLoop
internal import FoundationEssentials
internal import Logging
internal import Synchronization

/// Brings a store's cookies to their file soon after they have changed: a thread that waits for the disk, so that nobody else does.
final class CookieWriter: Sendable {
    /// How long changes are collected, in nanoseconds.
    static let delay: Int64 = 500_000_000

    private enum Message: Sendable {
        case changed
        case write(@Sendable (HTTPSessionError?) -> Void)
        case end
    }

    private let mailbox = Mailbox<Message>()
    private let thread: LoopThread
    /// Whether the thread knows of a change that it has not written.
    private let isTold: Flag

    private final class Flag: Sendable {
        let value = Atomic(false)
    }

    /// `lines`: what the file has.
    init(_ url: URL, written lines: [CookieLine], _ ledger: Locked<CookieLedger>, logger: Logger) throws(HTTPSessionError) {
        let (mailbox, isTold) = (mailbox, Flag())
        self.isTold = isTold
        do {
            thread = try LoopThread(name: "http-cookies", namespace: nil) { () throws(LoopError) -> () -> Void in
                let loop = try Loop(url, ledger, written: lines, mailbox, isTold, logger: logger)
                return { loop.run() }
            }
        } catch {
            throw HTTPSessionError(.transferFailed, "no thread for cookies: \(error)")
        }
    }

    /// The file is as it should be when this returns, if it can be.
    deinit {
        mailbox.post(.end)
        thread.join()
    }

    func noteChange() {
        if !isTold.value.exchange(true, ordering: .acquiringAndReleasing) { mailbox.post(.changed) }
    }

    /// Has the file written now. - Parameter done: called on the writer's thread, with what went wrong.
    func write(_ done: @escaping @Sendable (HTTPSessionError?) -> Void) { mailbox.post(.write(done)) }

    /// The same, and waits for it.
    func writeAndWait() {
        let isDone = DispatchSemaphore(value: 0)
        write { _ in isDone.signal() }
        isDone.wait()
    }

    /// What the thread alone has.
    private final class Loop {
        private var loop: EventLoop
        private let mailbox: Mailbox<Message>
        private let isTold: Flag
        private let ledger: Locked<CookieLedger>
        private let url: URL
        private let logger: Logger
        private var written: [CookieLine]
        private var failure: HTTPSessionError?
        private var deadline: Int64?

        init(
            _ url: URL, _ ledger: Locked<CookieLedger>, written: [CookieLine], _ mailbox: Mailbox<Message>, _ isTold: Flag,
            logger: Logger
        ) throws(LoopError) {
            loop = try EventLoop()
            (self.mailbox, self.isTold, self.ledger) = (mailbox, isTold, ledger)
            (self.url, self.logger, self.written) = (url, logger, written)
            mailbox.attach(loop.waker)
        }

        func run() {
            while true {
                for message in mailbox.takeAll(staysAwake: true) {
                    switch message {
                    case .changed: deadline = deadline ?? MonotonicClock.now() + CookieWriter.delay
                    case .write(let done): done(write())
                    case .end:
                        _ = write()
                        return
                    }
                }
                if let due = deadline, due <= MonotonicClock.now() { _ = write() }
                _ = loop.wait(until: mailbox.mayWait() ? deadline : 0)
            }
        }

        /// Nothing where nothing has changed. - Returns: why it failed.
        private func write() -> HTTPSessionError? {
            deadline = nil
            // Before the cookies are read: a change after that is another one.
            isTold.value.store(false, ordering: .sequentiallyConsistent)
            let now = Int64(Date().timeIntervalSince1970)
            let lines = ledger.withLock { $0.lines(at: now) }
            guard failure != nil || lines != written else { return nil }
            (written, failure) = (lines, nil)
            do throws(HTTPSessionError) { try CookieFile.write(lines, to: url) } catch {
                logger.warning("cookies cannot be written", metadata: ["reason": "\(error.reason)"])
                failure = error
            }
            return failure
        }
    }
}
