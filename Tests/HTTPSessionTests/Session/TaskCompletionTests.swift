import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// A task finishes for everybody who awaits it, also if its session is invalidated or released.
@Suite(.timeLimit(.minutes(20))) struct TaskCompletionTests {
    @Test(arguments: [true, false]) func `a task that was never resumed finishes when its session is invalidated`(
        _ cancelsTasks: Bool
    ) async throws {
        let server = try TestServer { _ in StubResponse() }
        let log = EventLog()
        let session = try HTTPSessionManager(configuration: localConfiguration(), eventMonitors: [log])
        let task = session.dataTask(for: TransferRequest(url: server.url()), startsImmediately: false)
        let stream = session.streamTask(for: TransferRequest(url: server.url()), startsImmediately: false)
        async let result = failure(task)
        let reader = Task { try await stream.chunks.first { _ in true } }
        if cancelsTasks { session.cancel() } else { session.cancel(afterTasks: true) }
        await expectEqual(result?.code, .sessionInvalidated)
        await #expect(throws: HTTPSessionError.self) { try await reader.value }
        expectEqual(task.state, .finished)
        // A task created after invalidation fails too, and neither resume nor cancel changes that.
        let late = session.dataTask(for: TransferRequest(url: server.url()), startsImmediately: false)
        await expectEqual(failure(late)?.code, .sessionInvalidated)
        for task in [task, late] {
            task.resume()
            task.cancel()
            await expectEqual(failure(task)?.code, .sessionInvalidated)
        }
        #expect(await log.awaitInvalidation().count { $0 == "failed session-invalidated" } >= 2)
        expectEqual(server.seen.connections, 0)
    }

    // ThreadSanitizer replaces the exit code of a program if a finished thread has not been joined.
    @Test(.skippedUnderSanitizers) func `a program that exits during transfers keeps its exit code`() async {
        for _ in 0..<5 {
            await #expect(processExitsWith: .exitCode(3)) {
                let server = try TestServer(tls: .minted("leaf-chain")) { _ in StubResponse(body: "x").closing() }
                var policy = SecurityPolicy(pinningMode: .none)
                policy.roots = .given(try MintedCertificates.set("root"))
                policy.validatesDomainName = false
                let session = try localSession { [policy] in $0.securityPolicy = policy }
                let tasks = (0..<200).map { _ in session.dataTask(for: TransferRequest(url: server.url())) }
                for task in tasks.prefix(20) { _ = try await task.response }
                // The exit must not tear OpenSSL down while other threads use it.
                exit(3)
            }
        }
    }

    @Test func `a task that was never resumed is released with its last reference`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let session = try localSession()
        weak var forgotten: TransferTask?
        for number in 0..<1_000 {
            let task = session.dataTask(for: TransferRequest(url: server.url("/\(number)")), startsImmediately: false)
            if number == 0 { forgotten = task }
            if number == 999 {
                task.resume()
                _ = try await task.response
            }
        }
        expectNil(forgotten)
        expectEqual(server.requests.map(\.path), ["/999"])
    }

    @Test func `resuming, canceling and invalidating concurrently finishes every task`() async throws {
        let server = try TestServer { _ in StubResponse(body: .pattern(10_000)) }
        let ends = Counter()
        for round in 0..<50 {
            let session = try localSession()
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<8 {
                    let task = session.dataTask(for: TransferRequest(url: server.url()), startsImmediately: number % 2 == 0)
                    group.addTask {
                        if await failure(task)?.code ?? .cancelled == .cancelled || task.result != nil { ends.add() }
                    }
                    group.addTask { task.resume() }
                    if number % 4 == 1 { group.addTask { task.cancel() } }
                    if number % 4 == 2 {
                        group.addTask {
                            task.suspend()
                            task.resume()
                        }
                    }
                }
                group.addTask { _ = await session.tasks }
                group.addTask {
                    if round % 2 == 0 { session.cancel() } else { session.cancel(afterTasks: true) }
                }
            }
            await expectEmpty(session.tasks)
        }
        expectEqual(ends.count, 400)
    }

    @Test func `a task canceled while it is resumed fails as cancelled`() async throws {
        let server = try TestServer { _ in .never }
        let session = try localSession()
        for _ in 0..<200 {
            let task = session.dataTask(for: TransferRequest(url: server.url()), startsImmediately: false)
            await withTaskGroup(of: Void.self) { group in
                group.addTask { task.resume() }
                group.addTask { task.cancel() }
            }
            await expectEqual(failure(task)?.code, .cancelled)
        }
    }

    @Test(arguments: ["response", "redirect", "challenge", "server"], [true, false])
    func `a handler is canceled when its task ends first`(_ kind: String, _ isCancelled: Bool) async throws {
        let certificate = try SelfSignedCertificate()
        let server = try TestServer(tls: kind == "server" ? certificate.serverTLS : nil) { _ in
            switch kind {
            case "redirect": .redirect(to: "/elsewhere")
            case "challenge": .unauthorized("Basic realm=r")
            default: StubResponse(body: "x")
            }
        }
        let (asked, canceled) = (Signal(), Signal())
        @Sendable func think() async {
            asked.fire()
            try? await Task.sleep(for: .seconds(36_000))
            if Task.isCancelled { canceled.fire() }
        }
        var handlers = TransferHandlers(
            redirect: { _ in
                await think()
                return .follow
            },
            challenge: { _ in
                await think()
                return .performDefaultHandling
            })
        if kind == "response" {
            handlers.response = { _ in
                await think()
                return .allow
            }
        }
        if kind == "server" {
            handlers.serverTrust = { _ in
                await think()
                return .accept
            }
        }
        let policy = try SecurityPolicy.trusting(certificate)
        let session = try localSession(
            {
                $0.securityPolicy = policy
                if !isCancelled { $0.handlerTimeout = .milliseconds(200) }
            }, handlers: handlers)
        let task = session.dataTask(for: TransferRequest(url: server.url()))
        await asked.wait()
        if isCancelled { task.cancel() }
        await expectEqual(failure(task)?.code, (isCancelled ? .cancelled : .handlerTimedOut))
        await canceled.wait()
    }
}
