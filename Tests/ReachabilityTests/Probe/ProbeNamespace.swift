import CLinux
import EventLoop
import Glibc

@testable import Reachability

/// A nameless network namespace that a descriptor of the test process holds. The kernel removes it when the process ends, however
/// it ends.
final class ProbeNamespace: Sendable {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// The namespace's name for `ip` and ``LoopThread``.
    let path: String
    private let descriptor: Int32

    init() throws {
        descriptor = try ProbeNamespace.onThread(nil) {
            guard unshare(netwatch_CLONE_NEWNET) == 0 else { throw Failure(description: "unshare: \(errorText(errno))") }
            let descriptor = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { throw Failure(description: "ns/net: \(errorText(errno))") }
            return descriptor
        }
        path = "/proc/\(getpid())/fd/\(descriptor)"
        try run("ip", "link set lo up")
    }

    deinit { close(descriptor) }

    /// Runs `body` on a thread inside the namespace and waits for it.
    func perform<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) throws -> Value {
        try Self.onThread(path, body)
    }

    /// Runs a program inside the namespace, with arguments separated by spaces. Its standard error is the test's.
    func run(_ program: String, _ words: String, input: String = "") throws {
        try perform {
            var ends: [Int32] = [-1, -1]
            guard pipe(&ends) == 0 else { throw Failure(description: "pipe: \(errorText(errno))") }
            // A pipe holds more than the input of any test.
            guard write(ends[1], input, input.utf8.count) == input.utf8.count else { throw Failure(description: "write") }
            close(ends[1])
            defer { close(ends[0]) }
            var actions = posix_spawn_file_actions_t()
            posix_spawn_file_actions_init(&actions)
            defer { posix_spawn_file_actions_destroy(&actions) }
            posix_spawn_file_actions_adddup2(&actions, ends[0], 0)
            var arguments = ([program] + words.split(separator: " ").map(String.init)).map { strdup($0) } + [nil]
            var environment = [strdup("PATH=/usr/sbin:/sbin:/usr/bin:/bin"), nil]
            defer { (arguments + environment).forEach { free($0) } }
            var process: Int32 = 0
            let path = ["/usr/sbin/", "/sbin/", "/usr/bin/", "/bin/"].map { $0 + program }.first { access($0, X_OK) == 0 }
            let number = posix_spawn(&process, path ?? program, &actions, nil, &arguments, &environment)
            guard number == 0 else { throw Failure(description: "\(program): \(errorText(number))") }
            var status: Int32 = 0
            while waitpid(process, &status, 0) < 0 && errno == EINTR {}
            guard netwatch_exit_code(status) == 0 else {
                throw Failure(description: "\(program) \(words): exit code \(netwatch_exit_code(status))")
            }
        }
    }

    private static func onThread<Value: Sendable>(
        _ namespace: String?, _ body: @escaping @Sendable () throws -> Value
    ) throws -> Value {
        let outcome = Outcome<Value>()
        let thread = try LoopThread(name: "test", namespace: namespace) {
            { outcome.value.withLock { $0 = Result { try body() } } }
        }
        thread.join()
        guard let result = outcome.value.withLock({ $0 }) else { throw Failure(description: "no outcome") }
        return try result.get()
    }

    private final class Outcome<Value: Sendable>: Sendable {
        let value = Locked<Result<Value, any Error>?>(nil)
    }
}

extension Moment {
    /// The present moment on both clocks.
    static func read() -> Moment {
        Moment(monotonicNanoseconds: MonotonicClock.now(), wallClockNanoseconds: MonotonicClock.wallClock())
    }
}
