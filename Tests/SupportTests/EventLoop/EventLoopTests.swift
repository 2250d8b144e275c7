import Expectations
import Glibc
import Testing

@testable import EventLoop

@Suite struct EventLoopTests {
    @Test func `a wake-up ends a wait without a deadline`() throws {
        var loop = try EventLoop()
        loop.waker.wake()
        expectEmpty(loop.wait(until: nil))
    }

    @Test func `a wait with a passed deadline returns at once`() throws {
        var loop = try EventLoop()
        expectEmpty(loop.wait(until: MonotonicClock.now() - 1))
    }

    @Test func `a wait never ends before its deadline`() throws {
        var loop = try EventLoop()
        let deadline = MonotonicClock.now() + 3_100_000
        expectEmpty(loop.wait(until: deadline))
        #expect(MonotonicClock.now() >= deadline)
    }

    @Test func `a readable descriptor is reported with its token`() throws {
        var loop = try EventLoop()
        var ends: [Int32] = [0, 0]
        expectEqual(pipe(&ends), 0)
        defer { ends.forEach { close($0) } }
        try loop.add(ends[0], interest: .read, token: 7)
        _ = write(ends[1], "x", 1)
        let ready = loop.wait(until: nil)
        expectEqual(ready.map(\.token), [7])
        expectEqual(ready.first?.isReadable, true)
    }

    @Test func `a closed descriptor cannot be added`() throws {
        let loop = try EventLoop()
        #expect(throws: LoopError(call: "epoll_ctl", errno: EBADF)) { try loop.add(-1, interest: .read, token: 1) }
    }
}

@Suite struct MailboxTests {
    private let mailbox = Mailbox<Int>()
    private let waker: Waker

    init() throws {
        waker = try Waker()
        mailbox.attach(waker)
    }

    private var isWoken: Bool {
        var poller = pollfd(fd: waker.descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&poller, 1, 0) == 1
    }

    @Test func `the first message wakes the loop`() {
        mailbox.post(1)
        #expect(isWoken)
        expectEqual(mailbox.takeAll(), [1])
    }

    @Test func `a loop that stays awake is not woken and does not wait`() {
        expectEqual(mailbox.takeAll(staysAwake: true), [])
        mailbox.post(1)
        #expect(!isWoken)
        #expect(!mailbox.mayWait())
        expectEqual(mailbox.takeAll(staysAwake: true), [1])
    }

    @Test func `a waiting loop is woken`() {
        expectEqual(mailbox.takeAll(staysAwake: true), [])
        #expect(mailbox.mayWait())
        mailbox.post(1)
        #expect(isWoken)
    }
}

@Suite struct LoopThreadTests {
    @Test func `the thread runs the prepared work and ends after it`() throws {
        let done = try Waker()
        let thread = try LoopThread(name: "test", namespace: nil) { { done.wake() } }
        thread.join()
        var poller = pollfd(fd: done.descriptor, events: Int16(POLLIN), revents: 0)
        expectEqual(poll(&poller, 1, 0), 1)
    }

    @Test func `a namespace that does not exist is an error at the start`() {
        #expect(throws: LoopThread.StartError.noNamespace(errno: ENOENT)) {
            try LoopThread(name: "test", namespace: "/run/netns/there-is-none") { {} }
        }
    }

    @Test func `only errors of the path count as a missing namespace`() {
        for number in [ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG] {
            expectEqual(LoopThread.StartError(opening: number), .noNamespace(errno: number))
        }
        for number in [EMFILE, ENFILE, ENOMEM, EIO] {
            expectEqual(LoopThread.StartError(opening: number), .system(LoopError(call: "open", errno: number)))
        }
        for number in [EACCES, EPERM] { expectEqual(LoopThread.StartError(opening: number), .notPermitted) }
    }

    @Test func `a file that is not a namespace is an error at the start`() {
        #expect(throws: LoopThread.StartError.noNamespace(errno: EINVAL)) {
            try LoopThread(name: "test", namespace: "/dev/null") { {} }
        }
    }

    @Test func `a thread in another namespace wakes others through the home thread, in order`() throws {
        let seen = Locked<[String]>([])
        let done = try Waker(blocks: true)
        let note: @Sendable (String) -> Void = { name in
            seen.withLock { $0.append("\(name) \(HomeThread.isElsewhere ? "elsewhere" : "at home")") }
        }
        let thread = try LoopThread(name: "test", namespace: nil) {
            {
                HomeThread.run { note("before") }
                try? HomeThread.leave()
                note("left")
                HomeThread.run { note("first") }
                // A thread that it creates is in the same namespace.
                let other = try? LoopThread(name: "other", namespace: nil) {
                    {
                        note("made")
                        HomeThread.run { note("second") }
                        HomeThread.run { done.wake() }
                    }
                }
                other?.join()
            }
        }
        thread.join()
        done.waitAndAcknowledge()
        let words = seen.withLock { $0 }
        expectEqual(words.prefix(2), ["before at home", "left elsewhere"])
        #expect(words.contains("made elsewhere"))
        expectEqual(words.filter { $0.hasPrefix("first") || $0.hasPrefix("second") }, ["first at home", "second at home"])
    }

    @Test func `a failed preparation is an error at the start`() {
        #expect(throws: LoopThread.StartError.system(LoopError(call: "socket", errno: EMFILE))) {
            try LoopThread(name: "test", namespace: nil) { () throws(LoopError) in throw LoopError(call: "socket", errno: EMFILE)
            }
        }
    }
}
