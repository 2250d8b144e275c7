import CLinux
import EventLoop
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// A configuration for servers on this machine, without TLS.
func localConfiguration(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionConfiguration {
    var configuration = SessionConfiguration()
    configuration.insecureHTTP = .allowed
    configuration.proxy = .none
    // The suite's other tests may use both cores for longer than a user would wait.
    configuration.requestTimeout = .seconds(600)
    configuration.connectTimeout = .seconds(600)
    configuration.handlerTimeout = .seconds(600)
    // Tests that need retries set a policy.
    configuration.retryPolicy = .never
    change(&configuration)
    return configuration
}

/// A session that accepts http URLs of servers on this machine.
func localSession(
    _ change: (inout SessionConfiguration) -> Void = { _ in }, handlers: TransferHandlers = .init()
) throws -> HTTPSessionManager {
    try HTTPSessionManager(configuration: localConfiguration(change), handlers: handlers)
}

extension HTTPSessionManager {
    /// The session's cookies. Fails if the session keeps none.
    var store: CookieStore { get throws { try #require(cookieStore) } }
}

/// The code of the error that a call throws; `nil` if it throws none.
func errorCode<Value>(_ call: () async throws -> Value) async -> HTTPSessionError.Code? {
    do { _ = try await call() } catch { return (error as? HTTPSessionError)?.code }
    return nil
}

/// The error of a failed task; `nil` if the task succeeds.
func failure(_ task: TransferTask) async -> HTTPSessionError? {
    do throws(HTTPSessionError) {
        _ = try await task.response
        return nil
    } catch {
        return error
    }
}

extension TransferTask {
    /// Waits until the task's progress meets the condition or the task has finished.
    func awaitProgress(_ isReached: (TransferProgress) -> Bool) async {
        for await progress in progress where isReached(progress) { return }
    }
}

extension ScratchDirectory {
    func url(_ name: String) -> URL { URL(fileURLWithPath: file(name)) }

    /// The names in the directory, including hidden ones.
    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }

    /// Waits for the first file, which a file sink may create late because it works on its own thread.
    func awaitFile() async {
        while names.isEmpty { await Task.yield() }
    }
}

/// The bytes of ``StubBody/pattern(_:)``.
func pattern(_ count: Int64) -> Data { Data(StubBody.patternBytes(from: 0, count: Int(count))) }

/// Runs `body` on a thread with its own mount namespace. Threads created in `body` share it; no other thread sees its mounts.
func withOwnMounts<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) throws -> Value {
    let outcome = Locked<Result<Value, any Error>?>(nil)
    let thread = try LoopThread(name: "mounts", namespace: nil) {
        {
            let result = Result<Value, any Error> {
                try HomeThread.leave()
                guard unshare(netwatch_CLONE_FS | netwatch_CLONE_NEWNS) == 0,
                    mount("", "/", "none", UInt(MS_SLAVE | MS_REC), nil) == 0
                else { throw POSIXError(.EPERM) }
                return try body()
            }
            outcome.withLock { $0 = result }
        }
    }
    thread.join()
    guard let result = outcome.withLock({ $0 }) else { throw POSIXError(.ECHILD) }
    return try result.get()
}

/// Counts calls from any thread.
final class Counter: Sendable {
    private let number = Locked(0)
    var count: Int { number.withLock { $0 } }

    @discardableResult func add() -> Int {
        number.withLock { number in
            number += 1
            return number
        }
    }
}

/// A moment that one side signals and the other side waits for.
struct Signal: Sendable {
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream() }

    /// Fires the signal. May be called from a server's thread, which may be in another namespace.
    func fire() {
        HomeThread.run { [continuation] in
            continuation.yield()
            continuation.finish()
        }
    }

    func wait() async { for await _ in stream { return } }
}

/// Records the names of events.
final class EventLog: EventMonitor {
    private struct Log: Sendable {
        var names: [String] = []
        var waiters: [(name: String, times: Int, continuation: CheckedContinuation<Void, Never>)] = []

        func has(_ name: String, _ times: Int) -> Bool { names.count { $0 == name } >= times }
    }

    private let log = Locked(Log())

    var names: [String] { log.withLock { $0.names } }

    func handle(_ event: SessionEvent) {
        let name =
            switch event {
            case .taskCreated: "created"
            case .taskResumed: "resumed"
            case .taskSuspended: "suspended"
            case .requestStarted(_, let attempt): "started \(attempt)"
            case .receivedInterimResponse(_, let head): "interim \(head.statusCode)"
            case .receivedResponse(_, let head): "response \(head.statusCode)"
            case .redirected(_, let head): "redirected \(head.statusCode)"
            case .challenged(_, let challenge): "challenged \(challenge.scheme.rawValue)"
            case .serverTrustChallenged(_, let challenge): "server challenged \(challenge.policyError?.code.rawValue ?? "-")"
            case .clientCertificateChallenged(_, let challenge): "certificate challenged \(challenge.host)"
            case .becameDownload(let task, let place): "became \(task.kind) \(place.file.lastPathComponent)"
            case .willRetry(_, let error): "retry \(error.code.rawValue)"
            case .waitingForConnectivity: "waiting for connectivity"
            case .downloadContinued(_, let offset, let total): "continued \(offset) of \(total ?? -1)"
            case .uploadContinued(_, let offset, _): "continued \(offset)"
            case .transactionFinished(_, let transaction): "transaction \(transaction.statusCode ?? 0)"
            case .fileMoved: "moved"
            case .fileMoveFailed(_, let error): "move failed \(error.code.rawValue)"
            case .taskCompleted(_, .success): "completed"
            case .taskCompleted(_, .failure(let error)): "failed \(error.code.rawValue)"
            case .sessionInvalidated: "invalidated"
            case .eventsDropped(let count): "dropped \(count)"
            }
        let waiters = log.withLock { log in
            log.names.append(name)
            let met = log.waiters.filter { log.has($0.name, $0.times) }
            log.waiters = log.waiters.filter { !log.has($0.name, $0.times) }
            return met
        }
        for waiter in waiters { waiter.continuation.resume() }
    }

    /// Waits until an event of this name has been recorded `times` times.
    func await(_ name: String, times: Int = 1) async {
        await withCheckedContinuation { continuation in
            let hasHappened = log.withLock { log in
                let hasHappened = log.has(name, times)
                if !hasHappened { log.waiters.append((name, times, continuation)) }
                return hasHappened
            }
            if hasHappened { continuation.resume() }
        }
    }

    /// Waits for the session's invalidation, which is the last event, and returns all names.
    func awaitInvalidation() async -> [String] {
        await self.await("invalidated")
        return names
    }
}

extension SecurityPolicy {
    /// A policy that trusts only this certificate.
    static func trusting(_ certificate: SelfSignedCertificate) throws -> SecurityPolicy {
        var policy = SecurityPolicy()
        policy.roots = .given(Set(try Certificate.all(in: Data(certificate.certificate.utf8))))
        return policy
    }
}

/// Records the offset and total of each call of ``TransferHandlers/didContinue``.
final class Resumptions: Sendable {
    private let numbers = Locked<[Int64?]>([])

    var offsets: [Int64?] { numbers.withLock { $0 } }
    var handlers: TransferHandlers {
        TransferHandlers(didContinue: { [numbers] offset, total in numbers.withLock { $0 += [offset, total] } })
    }
}
