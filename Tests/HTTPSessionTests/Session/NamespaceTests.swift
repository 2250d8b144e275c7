import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import NetworkLab
import Reachability
import Testing

/// Sessions in a network namespace, on the real kernel; the server is at 203.0.113.9 in another namespace.
@Suite(.requiresNamespaces, .timeLimit(.minutes(20))) struct NamespaceTests {
    private let uplinks: Uplinks
    private let log = TaskLog()
    private let names = EventLog()

    init() throws {
        uplinks = try Uplinks("one", "two")
        try uplinks.take("one")
    }

    private var serverConfiguration: TestServer.Configuration {
        var configuration = TestServer.Configuration()
        configuration.namespace = NetworkNamespace(uplinks.site.path)
        return configuration
    }

    private func session(_ monitor: PathMonitor? = nil) throws -> HTTPSessionManager {
        let configuration = localConfiguration { $0.namespace = NetworkNamespace(uplinks.client.path) }
        return try HTTPSessionManager(configuration: configuration, monitor: monitor, eventMonitors: [log, names])
    }

    /// The events of each task.
    private final class TaskLog: EventMonitor {
        private let words = Locked<[UInt64: [String]]>([:])

        func handle(_ event: SessionEvent) {
            switch event {
            case .taskCreated(let task): words.withLock { $0[task.id, default: []].append("created") }
            case .taskResumed(let task): words.withLock { $0[task.id, default: []].append("resumed") }
            case .taskCompleted(let task, _): words.withLock { $0[task.id, default: []].append("completed") }
            default: break
            }
        }

        /// The distinct orders of events.
        var orders: Set<[String]> { words.withLock { Set($0.values) } }
        var completed: Int { words.withLock { $0.values.count { $0.contains("completed") } } }
    }

    @Test func `after a network change host names are resolved again`() async throws {
        try uplinks.site.ip("addr add 203.0.113.10/32 dev lo")
        let old = try TestServer(at: .ip("203.0.113.9", port: 0), configuration: serverConfiguration) { _ in
            StubResponse(body: "old").closing()
        }
        let new = try TestServer(at: .ip("203.0.113.10", port: old.port), configuration: serverConfiguration) { _ in
            StubResponse(body: "new")
        }
        let folder = try ScratchDirectory()
        let hosts = folder.url("hosts")
        try Data("203.0.113.9 named.example\n".utf8).write(to: hosts)
        let path = uplinks.client.path
        let monitor = try PathMonitor(namespace: NetworkNamespace(path))
        let session = try withOwnMounts {
            guard mount(folder.file("hosts"), "/etc/hosts", "none", UInt(MS_BIND), nil) == 0 else { throw POSIXError(.EPERM) }
            return try HTTPSessionManager(
                configuration: localConfiguration { $0.namespace = NetworkNamespace(path) }, monitor: monitor)
        }
        var paths = monitor.updates.makeAsyncIterator()
        while let update = await paths.next(), update.path.status != .satisfied {}
        let request = TransferRequest(url: try #require(URL(string: "http://named.example:\(old.port)/")))
        try await expectEqual(session.dataTask(for: request).response.data, Data("old".utf8))
        // The file is rewritten in place, because the bind mount refers to its inode.
        try Data("203.0.113.10 named.example\n".utf8).write(to: hosts)
        try uplinks.take("two")
        while let update = await paths.next(), update.path.interface?.name != "two" {}
        // The session receives the update when this test does, or a little later. libcurl would cache the old address for a
        // minute.
        for _ in 0..<1_000 where new.requests.isEmpty { _ = try await session.dataTask(for: request).response }
        expectEqual(new.requests.count, 1)
    }

    @Test func `each task's events are delivered in order when several threads produce them`() async throws {
        let server = try TestServer(at: .ip("203.0.113.9", port: 0), configuration: serverConfiguration) { _ in
            StubResponse(body: "well")
        }
        let session = try session()
        let request = TransferRequest(url: server.url())
        for _ in 0..<20 {
            // The session's thread publishes events of some tasks while this thread publishes events of others.
            let tasks = (0..<20).map { _ in session.dataTask(for: request) }
            for _ in 0..<20 { session.dataTask(for: request, startsImmediately: false).cancel() }
            for task in tasks { try await expectEqual(task.response.statusCode, 200) }
        }
        session.cancel(afterTasks: true)
        _ = await names.awaitInvalidation()
        expectEqual(log.orders, [["created", "resumed", "completed"], ["created", "completed"]])
        expectEqual(log.completed, 800)
    }

    /// The threads that Dispatch made for its queues and for Swift tasks, and that are in another namespace.
    private func strays(from home: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").compactMap { thread in
            let files = "/proc/self/task/\(thread)"
            // A thread that ends meanwhile has no files.
            guard let name = try? String(contentsOfFile: "\(files)/comm", encoding: .utf8), name.contains("-qos"),
                let namespace = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(files)/ns/net"), namespace != home
            else { return nil }
            return name
        }
    }

    @Test func `a session in a network namespace does not move the process's other threads into it`() async throws {
        let home = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/net")
        let server = try TestServer(at: .ip("203.0.113.9", port: 0), configuration: serverConfiguration) { _ in
            StubResponse(body: "well")
        }
        let monitor = try PathMonitor(namespace: NetworkNamespace(uplinks.client.path))
        let session = try session(monitor)
        for round in 0..<10 {
            let tasks = (0..<20).map { _ in session.dataTask(for: TransferRequest(url: server.url())) }
            for task in tasks {
                let progress = Task { for await _ in task.progress {} }
                try await expectEqual(task.response.data, Data("well".utf8))
                await progress.value
            }
            try uplinks.client.ip("link set one mtu \(1_400 + round)")
            let strays = try strays(from: home)
            expectEqual(strays, [])
        }
    }
}
