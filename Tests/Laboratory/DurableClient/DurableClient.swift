import Foundation
import HTTPSession
import HTTPSessionJournal
import HTTPTypes

/// The program that tests kill.
///
/// `laboratory durable-client DIRECTORY MANIFEST LOG` makes the tasks of its manifest that neither the journal nor its log contains, logs every event
/// before it acknowledges it, and exits when no task is left. A handler receives the events of two tasks in three, the sequence of events the
/// others. With `unacknowledged` as a further argument, it prints the events, acknowledges none, and runs until it is killed.
/// `laboratory durable-client DIRECTORY` holds the session open until it is killed.
enum DurableClient {
    /// An element of the manifest, which is a JSON array. Its number is the context of the task.
    struct Job: Codable, Sendable {
        var url: URL
        var file: String
        var isUpload: Bool
    }

    static func main(_ arguments: [String]) async throws {
        guard [1, 3, 4].contains(arguments.count) else { exit(64) }
        let directory = URL(fileURLWithPath: arguments[0])
        var configuration = SessionConfiguration()
        configuration.insecureHTTP = .allowed
        configuration.proxy = .none
        guard arguments.count > 1 else { return try await hold(directory, configuration) }
        let jobs = try JSONDecoder().decode([Job].self, from: Data(contentsOf: URL(fileURLWithPath: arguments[1])))
        let log = try AppendedLog(arguments[2])
        let acknowledges = arguments.count == 3
        let acknowledged = AsyncStream<Void>.makeStream()
        let process: @Sendable (DurableEvent) async -> Void = { event in
            let line = "event \(String(decoding: event.task.context, as: UTF8.self)) \(event.id) \(event.outcome.line)"
            log.write(line)
            guard acknowledges else {
                print(line)
                fflush(nil)
                return
            }
            do { try await event.acknowledge() } catch { log.write("failed \(error)") }
            acknowledged.continuation.yield()
        }
        var handlers = DurableHandlers()
        handlers.register("handler", process)
        handlers.didFinishEvents = { log.write("finished-earlier") }
        log.write("start")
        let session = try await DurableSession.open(
            identifier: "killed", directory: directory, configuration: configuration, handlers: handlers)
        if let damaged = session.damagedJournal { log.write("damaged \(damaged.path)") }
        let sequence = Task { for await event in session.events { await process(event) } }
        let known = try await session.tasks.map { String(decoding: $0.context, as: UTF8.self) } + log.numbers()
        for (number, job) in jobs.enumerated() where !known.contains("\(number)") {
            let id = try await make(job, number, session)
            log.write("made \(number) \(id)")
        }
        while try await !session.tasks.isEmpty {
            for await _ in acknowledged.stream { break }
        }
        await session.close()
        await sequence.value
        log.write("end")
    }

    private static func make(_ job: Job, _ number: Int, _ session: DurableSession) async throws -> String {
        let file = URL(fileURLWithPath: job.file)
        let context = Data("\(number)".utf8)
        let handler = number % 3 == 0 ? nil : "handler"
        guard job.isUpload else {
            return try await session.downloadTask(
                for: TransferRequest(url: job.url), to: DownloadDestination(file), handler: handler, context: context
            ).id
        }
        return try await session.uploadTask(
            for: TransferRequest(url: job.url, method: .post), from: .file(file), resumableUsing: .tus, handler: handler,
            context: context
        ).id
    }

    private static func hold(_ directory: URL, _ configuration: SessionConfiguration) async throws {
        do {
            let session = try await DurableSession.open(
                identifier: "killed", directory: directory, configuration: configuration)
            print("open")
            fflush(nil)
            try await Task.sleep(for: .seconds(3600))
            await session.close()
        } catch let error as DurableSessionError {
            print(error)
        }
    }
}

/// A log whose lines survive the end of their writer.
final class AppendedLog: Sendable {
    private let path: String
    private let file: FileHandle

    init(_ path: String) throws {
        self.path = path
        let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw POSIXError(.EIO) }
        file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Appends a line in one write, so that a kill does not cut it.
    func write(_ line: String) { try? file.write(contentsOf: Data((line + "\n").utf8)) }

    /// The numbers of the tasks whose events are in the log.
    func numbers() throws -> [String] {
        try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").filter { $0.hasPrefix("event ") }
            .compactMap { $0.split(separator: " ").dropFirst().first.map { String($0) } }
    }
}
