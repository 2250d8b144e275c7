import Foundation
import HTTPSession
import HTTPSessionJournal
import HTTPTypes

/// The program that is killed: `durable-client DIRECTORY MANIFEST LOG` makes the tasks of its manifest that neither the journal nor its log
/// knows, logs every event before it acknowledges it, and ends when there is nothing left. `durable-client DIRECTORY` holds the session open
/// until it is killed.
@main
enum DurableClient {
    /// A JSON array of these is the manifest. The number is the task's context.
    struct Job: Codable, Sendable {
        var url: URL
        var file: String
        var isUpload: Bool
    }

    static func main() async throws {
        let words = CommandLine.arguments
        guard words.count == 2 || words.count == 4 else { exit(64) }
        let directory = URL(fileURLWithPath: words[1])
        var configuration = SessionConfiguration()
        configuration.insecureHTTP = .allowed
        configuration.proxy = .none
        guard words.count == 4 else { return try await hold(directory, configuration) }
        let jobs = try JSONDecoder().decode([Job].self, from: Data(contentsOf: URL(fileURLWithPath: words[2])))
        let log = try AppendedLog(words[3])
        var handlers = DurableHandlers()
        let acknowledged = AsyncStream<Void>.makeStream()
        handlers.register("all") { event in
            log.write("event \(String(decoding: event.task.context, as: UTF8.self)) \(event.id) \(event.outcome.line)")
            do { try await event.acknowledge() } catch { log.write("failed \(error)") }
            acknowledged.continuation.yield()
        }
        handlers.didFinishEvents = { log.write("former") }
        log.write("life")
        let session = try DurableSession(
            identifier: "killed", directory: directory, configuration: configuration, handlers: handlers)
        if let aside = session.setAside { log.write("aside \(aside.path)") }
        let known = try await session.tasks.map { String(decoding: $0.context, as: UTF8.self) } + log.numbers()
        for (number, job) in jobs.enumerated() where !known.contains("\(number)") {
            let id = try await make(job, Data("\(number)".utf8), session)
            log.write("made \(number) \(id)")
        }
        while try await !session.tasks.isEmpty {
            for await _ in acknowledged.stream { break }
        }
        await session.close()
        log.write("over")
    }

    private static func make(_ job: Job, _ context: Data, _ session: DurableSession) async throws -> String {
        let file = URL(fileURLWithPath: job.file)
        guard job.isUpload else {
            return try await session.download(
                TransferRequest(url: job.url), to: DownloadDestination(file), handler: "all", context: context
            ).id
        }
        let request = TransferRequest(url: job.url, method: .post, body: .file(file))
        return try await session.upload(request, resumably: .tus, handler: "all", context: context).id
    }

    private static func hold(_ directory: URL, _ configuration: SessionConfiguration) async throws {
        do {
            let session = try DurableSession(
                identifier: "killed", directory: directory, configuration: configuration, handlers: DurableHandlers())
            print("open")
            fflush(nil)
            try await Task.sleep(for: .seconds(3600))
            await session.close()
        } catch let error as DurableSessionError {
            print(error)
        }
    }
}

/// Lines that survive their writer.
final class AppendedLog: Sendable {
    private let path: String
    private let file: FileHandle

    init(_ path: String) throws {
        self.path = path
        let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw POSIXError(.EIO) }
        file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// In one write, so that no line is cut by a kill.
    func write(_ line: String) { try? file.write(contentsOf: Data((line + "\n").utf8)) }

    /// Whose events have been logged.
    func numbers() throws -> [String] {
        try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").filter { $0.hasPrefix("event ") }
            .compactMap { $0.split(separator: " ").dropFirst().first.map { String($0) } }
    }
}
