import CLinux
import Glibc

/// The text of strerror(3) for an errno. The C library's static table is only read.
func errorText(_ code: Int32) -> String {
    "\(String(cString: strerror(code))) (\(code))"
}

/// A descriptor that is closed with its last reference. Child processes do not inherit it (O_CLOEXEC).
final class Descriptor: Sendable {
    let number: Int32

    /// Takes over `number`, the result of `call`. - Throws: errno, if the number is negative.
    init(_ number: Int32, _ call: String) throws {
        guard number >= 0 else { throw LabError(call, errno: errno) }
        self.number = number
    }

    deinit {
        close(number)
    }

    /// The two ends of a pipe. Bytes written to `input` are read from `output`.
    static func pipe() throws -> (output: Descriptor, input: Descriptor) {
        // A reader may close its end first, and SIGPIPE must not end the test process. Programs get the default handler back.
        netwatch_signal_ignore(SIGPIPE)
        var ends: [Int32] = [-1, -1]
        guard netwatch_pipe(&ends) == 0 else { throw LabError("pipe2", errno: errno) }
        return (try Descriptor(ends[0], "pipe2"), try Descriptor(ends[1], "pipe2"))
    }

    /// A nameless file in memory that holds `text`, positioned at its start.
    static func memory(_ text: String = "") throws -> Descriptor {
        let file = try Descriptor(netwatch_memory_file("lab"), "memfd_create")
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { write(file.number, $0.baseAddress, $0.count) }
            guard count > 0 else { throw LabError("write", errno: errno) }
            bytes = bytes.dropFirst(count)
        }
        lseek(file.number, 0, SEEK_SET)
        return file
    }

    /// The complete content of the file. The position is left unchanged.
    func contents() -> String {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        while case let count = pread(number, &buffer, buffer.count, off_t(bytes.count)), count > 0 {
            bytes += buffer[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The moment at which a test stops waiting.
struct Deadline {
    private let nanoseconds: Int64

    init(in duration: Duration) {
        let (seconds, attoseconds) = duration.components
        nanoseconds = netwatch_clock_nanoseconds(netwatch_CLOCK_MONOTONIC) + seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }

    /// True if the moment is over.
    var hasPassed: Bool { netwatch_clock_nanoseconds(netwatch_CLOCK_MONOTONIC) >= nanoseconds }

    /// Waits with poll(2) for the events. - Returns: false if the deadline passes first.
    func await(_ descriptor: Int32, _ events: Int32 = POLLIN) throws -> Bool {
        while true {
            let left = nanoseconds - netwatch_clock_nanoseconds(netwatch_CLOCK_MONOTONIC)
            var polled = pollfd(fd: descriptor, events: Int16(events), revents: 0)
            let count = poll(&polled, 1, Int32(clamping: max(0, left + 999_999) / 1_000_000))
            if count > 0 { return true }
            if count < 0 && errno != EINTR { throw LabError("poll", errno: errno) }
            if count == 0 && left <= 0 { return false }
        }
    }
}

/// Runs `body` on a thread of its own and waits for it. State of the thread, such as its network namespace, ends with it.
func onThread<Value>(_ body: @escaping () throws -> Value) throws -> Value {
    var outcome: Result<Value, any Error>?
    let task = ThreadTask { outcome = Result { try body() } }
    var thread = pthread_t()
    let code = pthread_create(&thread, nil, threadMain, Unmanaged.passRetained(task).toOpaque())
    guard code == 0 else {
        Unmanaged.passUnretained(task).release()
        throw LabError("pthread_create", errno: code)
    }
    pthread_join(thread, nil)
    guard let outcome else { throw LabError("a thread ended without a result") }
    return try outcome.get()
}

/// Starts a detached thread, which ends when `body` returns.
public func detachThread(_ body: @escaping @Sendable () -> Void) throws {
    let task = ThreadTask(body)
    var thread = pthread_t()
    let code = pthread_create(&thread, nil, threadMain, Unmanaged.passRetained(task).toOpaque())
    guard code == 0 else {
        Unmanaged.passUnretained(task).release()
        throw LabError("pthread_create", errno: code)
    }
    pthread_detach(thread)
}

private final class ThreadTask {
    let run: () -> Void

    init(_ run: @escaping () -> Void) {
        self.run = run
    }
}

private func threadMain(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    // The thread would otherwise have the name of its creator, which is in another namespace.
    netwatch_set_thread_name("lab")
    if let argument {
        Unmanaged<ThreadTask>.fromOpaque(argument).takeRetainedValue().run()
    }
    return nil
}
