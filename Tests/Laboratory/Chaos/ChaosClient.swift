import EventLoop
import Foundation
import HTTPSession
import HTTPSessionJournal
import HTTPTypes
import Reachability

/// The client that is killed. It transfers the files of its manifest that its log does not mark as done. It keeps no other
/// state except the durable session's journal.
struct ChaosClient {
    private let manifest: Manifest
    private let log: ChaosLog
    private let configuration: SessionConfiguration
    private let monitor: PathMonitor
    /// The number of the event, counted from 1, after whose log line and before whose acknowledgement the process kills itself.
    private let lastEvent: Int?

    static func run(_ path: String, lastEvent: Int?) async throws {
        let client = try ChaosClient(path, lastEvent: lastEvent)
        async let durable = client.transferDurably()
        let plain = try await client.transfer()
        exit(try await durable && plain ? 0 : 1)
    }

    private init(_ path: String, lastEvent: Int?) throws {
        manifest = try JSONDecoder().decode(Manifest.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
        log = try ChaosLog(manifest.log)
        log.write("life")
        var configuration = SessionConfiguration.ephemeral
        configuration.insecureHTTP = .allowed
        configuration.retryPolicy = ChaosClient.retryPolicy
        configuration.requestTimeout = .seconds(10)
        configuration.connectTimeout = .seconds(3)
        self.configuration = configuration
        self.lastEvent = lastEvent
        monitor = try PathMonitor()
    }

    private static let retryPolicy = RetryPolicy(
        maximumRetries: nil, baseDelay: .milliseconds(50), maximumDelay: .milliseconds(500))

    private static func protocolOf(_ upload: Manifest.Upload) -> UploadProtocol {
        .tus(metadata: ["number": "\(upload.number)"])
    }

    private static func request(_ url: String, file: String? = nil) throws -> TransferRequest {
        guard let url = URL(string: url) else { throw URLError(.badURL) }
        guard let file else { return TransferRequest(url: url) }
        return TransferRequest(url: url, method: .post, body: .file(URL(fileURLWithPath: file)))
    }

    // MARK: The session that ends with its process

    /// - Returns: Whether every transfer has succeeded.
    private func transfer() async throws -> Bool {
        let done = Set(try log.lines().filter { $0.first == "done" }.compactMap(\.last))
        let eventMonitor = ChaosEventMonitor(log: log, isDurable: false)
        let session = try HTTPSessionManager(configuration: configuration, monitor: monitor, eventMonitors: [eventMonitor])
        var tasks: [(String, TransferTask)] = []
        for download in manifest.downloads where !download.isDurable && !done.contains(download.name) {
            let place = DownloadDestination(
                URL(fileURLWithPath: download.file), existingFile: .replace, partialFile: .keep)
            tasks.append(
                (
                    download.name,
                    session.downloadTask(for: try ChaosClient.request(download.url), to: place, startsImmediately: false)
                ))
        }
        for upload in manifest.uploads where !upload.isDurable && !done.contains(upload.name) {
            let request = try ChaosClient.request(upload.url, file: upload.file)
            tasks.append(
                (
                    upload.name,
                    session.uploadTask(for: request, resumableUsing: ChaosClient.protocolOf(upload), startsImmediately: false)
                ))
        }
        // In a random order, so that no task is always the last.
        tasks.shuffle()
        for (_, task) in tasks { task.resume() }
        var isGood = true
        for (name, task) in tasks {
            do throws(HTTPSessionError) {
                let response = try await task.response
                guard (200...299).contains(response.statusCode) else {
                    throw HTTPSessionError(.unacceptableStatus, "\(response.statusCode)")
                }
            } catch {
                log.write("failed \(name) \(error)")
                isGood = false
            }
        }
        // All events are in the log when the session has ended.
        session.cancel(afterTasks: true)
        for await _ in eventMonitor.ended.stream { break }
        return isGood
    }

    // MARK: The durable session

    /// - Returns: `true` when no task remains.
    private func transferDurably() async throws -> Bool {
        let (acknowledged, count) = (AsyncStream<Void>.makeStream(), Locked(0))
        var handlers = DurableHandlers()
        handlers.register("chaos") { [log, lastEvent] event in
            let name = String(decoding: event.task.context, as: UTF8.self)
            log.writeThrough("event \(name) \(event.id) \(event.outcome.line)")
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == lastEvent { kill(getpid(), SIGKILL) }
            do {
                try await event.acknowledge()
                log.write("acknowledged \(name) \(event.id)")
            } catch {
                log.write("failed \(name) \(error)")
            }
            acknowledged.continuation.yield()
        }
        let session = try await DurableSession.open(
            identifier: "chaos", directory: URL(fileURLWithPath: manifest.journal), configuration: configuration,
            handlers: handlers, monitor: monitor, eventMonitors: [ChaosEventMonitor(log: log, isDurable: true)])
        if let damaged = session.damagedJournal { log.write("failed journal it is damaged: \(damaged.path)") }
        // The tasks are read before the log: events acknowledged in between are in the log.
        let known = try await session.tasks
        for task in known { log.write("known \(String(decoding: task.context, as: UTF8.self)) \(task.id)") }
        try await makeTasks(session, Set(known.map { String(decoding: $0.context, as: UTF8.self) }))
        while try await !session.tasks.isEmpty {
            for await _ in acknowledged.stream { break }
        }
        await session.close()
        return true
    }

    /// Creates the tasks of the manifest that neither the journal nor the log contains.
    private func makeTasks(_ session: DurableSession, _ known: Set<String>) async throws {
        let lines = try log.lines()
        func names(_ word: String) -> Set<String> { Set(lines.filter { $0.first == word && $0.count > 1 }.map { $0[1] }) }
        let (delivered, made) = (names("event"), names("made").union(names("known")))
        func isNew(_ name: String) -> Bool {
            if known.contains(name) || delivered.contains(name) { return false }
            // A missing task is not created again, because that would hide the loss.
            if made.contains(name) { log.write("missing \(name)") }
            return !made.contains(name)
        }
        for download in manifest.downloads.shuffled() where download.isDurable && isNew(download.name) {
            var request = try ChaosClient.request(download.url)
            request.options.retryPolicy = ChaosClient.retryPolicy
            let task = try await session.downloadTask(
                for: request, to: DownloadDestination(URL(fileURLWithPath: download.file)), handler: "chaos",
                context: Data(download.name.utf8))
            log.write("made \(download.name) \(task.id)")
        }
        for upload in manifest.uploads.shuffled() where upload.isDurable && isNew(upload.name) {
            var request = try ChaosClient.request(upload.url, file: upload.file)
            request.options.retryPolicy = ChaosClient.retryPolicy
            let task = try await session.uploadTask(
                for: request, from: .file(URL(fileURLWithPath: upload.file)), resumableUsing: ChaosClient.protocolOf(upload),
                handler: "chaos", context: Data(upload.name.utf8))
            log.write("made \(upload.name) \(task.id)")
        }
    }
}
