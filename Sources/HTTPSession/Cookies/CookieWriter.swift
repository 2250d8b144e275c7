internal import Dispatch
internal import EventLoop
internal import FoundationEssentials
internal import Logging
internal import Synchronization

/// A thread that writes the cookies of a store to their file soon after a change, so that no other thread waits for the disk.
final class CookieWriter: Sendable {
    /// The time in which changes are collected, in nanoseconds.
    static let delay: Int64 = 500_000_000

    private enum Message: Sendable {
        case changed
        case write(@Sendable (HTTPSessionError?) -> Void)
        case end
    }

    private let mailbox = Mailbox<Message>()
    private let thread: LoopThread
    /// Whether the thread has been notified of a change that it has not written.
    private let hasPendingChange: Flag

    private final class Flag: Sendable {
        let value = Atomic(false)
    }

    /// Starts the thread. `lines` are the present lines of the file.
    init(_ url: URL, written lines: [CookieLine], _ list: Locked<CookieList>, logger: Logger) throws(HTTPSessionError) {
        let (mailbox, hasPendingChange) = (mailbox, Flag())
        self.hasPendingChange = hasPendingChange
        do {
            thread = try LoopThread(name: "http-cookies", namespace: nil) { () throws(LoopError) -> () -> Void in
                let loop = try Loop(url, list, written: lines, mailbox, hasPendingChange, logger: logger)
                return { loop.run() }
            }
        } catch {
            throw HTTPSessionError(.transferFailed, "the thread that writes cookies cannot be started: \(error)")
        }
    }

    /// Writes pending changes and waits for them.
    deinit {
        mailbox.post(.end)
        thread.join()
    }

    func noteChange() {
        if !hasPendingChange.value.exchange(true, ordering: .acquiringAndReleasing) { mailbox.post(.changed) }
    }

    /// Writes the file now. `done` is called on the writer's thread, with the error if the file could not be written.
    func write(_ done: @escaping @Sendable (HTTPSessionError?) -> Void) { mailbox.post(.write(done)) }

    /// Writes the file now and blocks until it is written.
    func writeAndWait() {
        let isDone = DispatchSemaphore(value: 0)
        write { _ in isDone.signal() }
        isDone.wait()
    }

    /// The state that only the thread uses.
    private final class Loop {
        private var loop: EventLoop
        private let mailbox: Mailbox<Message>
        private let hasPendingChange: Flag
        private let list: Locked<CookieList>
        private let url: URL
        private let logger: Logger
        private var written: [CookieLine]
        private var failure: HTTPSessionError?
        private var deadline: Int64?

        init(
            _ url: URL, _ list: Locked<CookieList>, written: [CookieLine], _ mailbox: Mailbox<Message>, _ hasPendingChange: Flag,
            logger: Logger
        ) throws(LoopError) {
            loop = try EventLoop()
            (self.mailbox, self.hasPendingChange, self.list) = (mailbox, hasPendingChange, list)
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

        /// Writes the file if its lines have changed. - Returns: the error, if it could not be written.
        private func write() -> HTTPSessionError? {
            deadline = nil
            // Before the cookies are read, so that a later change notifies the thread again.
            hasPendingChange.value.store(false, ordering: .sequentiallyConsistent)
            let now = Int64(Date().timeIntervalSince1970)
            let lines = list.withLock { $0.lines(at: now) }
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
