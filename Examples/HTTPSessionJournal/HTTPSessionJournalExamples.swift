import Foundation
import HTTPSession
import HTTPSessionJournal
import HTTPSessionTestKit

/// The examples of the README and of the documentation of HTTPSessionJournal: `Examples HTTPSessionJournal DIRECTORY`. With `test` as a second
/// argument, it runs the example of a test without a network.
struct HTTPSessionJournalExamples {
    static func main(_ arguments: [String]) async throws {
        guard let directory = arguments.first, let url = URL(string: "https://api.example.com/big.bin")
        else { return print("usage: Examples HTTPSessionJournal DIRECTORY") }
        let state = URL(fileURLWithPath: directory)
        if arguments.dropFirst().first == "test" {
            return try await test(state, url, state.appendingPathComponent("big.bin"))
        }
        try await download(state, url, state.appendingPathComponent("big.bin"))
        try await secrets(state, url, state.appendingPathComponent("private.bin"))
        try await handlers(state, url, state.appendingPathComponent("photo.bin"))
    }

    static func download(_ state: URL, _ url: URL, _ file: URL) async throws {
        let session = try await DurableSession.open(identifier: "org.example.models", directory: state)
        let destination = DownloadDestination(file, existingFile: .replace)
        let task = try await session.downloadTask(for: TransferRequest(url: url), to: destination)

        print("waiting for", task.id)
        closeAfterLastTask(session)

        for await event in session.events {  // delivers an event after every start, until it is acknowledged
            print(event.task.url, event.outcome)
            try await event.acknowledge()
        }
    }

    /// Tasks with the names of their handlers.
    static func handlers(_ state: URL, _ url: URL, _ file: URL) async throws {
        var handlers = DurableHandlers()
        handlers.register("photos") { event in
            print("photo", event.task.url, event.outcome)
            try? await event.acknowledge()
        }
        let session = try await DurableSession.open(identifier: "org.example.photos", directory: state, handlers: handlers)
        let photo = DownloadDestination(file, existingFile: .replace)
        try await session.downloadTask(for: TransferRequest(url: url), to: photo, handler: "photos")

        closeAfterLastTask(session)
        for await _ in session.events {}
    }

    /// A token that no journal contains, and a task that a program makes once.
    static func secrets(_ state: URL, _ url: URL, _ file: URL) async throws {
        let token = BearerAuthentication { _ in "secret" }
        let session = try await DurableSession.open(
            identifier: "org.example.private", directory: state, transferHandlers: TransferHandlers(interceptors: [token]))
        let destination = DownloadDestination(file, existingFile: .replace)

        let context = Data("report 7".utf8)
        if try await !session.tasks.contains(where: { $0.context == context }) {
            try await session.downloadTask(for: TransferRequest(url: url), to: destination, context: context)
        }

        closeAfterLastTask(session)
        for await event in session.events { try await event.acknowledge() }
    }

    /// A download whose first response is cut, and that a second session completes.
    static func test(_ state: URL, _ url: URL, _ file: URL) async throws {
        let transport = ScriptedTransport(time: .manual)
        let response = StubResponse(body: .pattern(300_000)).servingRanges(entityTag: "\"v1\"")
        transport.stub("/big.bin", with: response.cut(afterBodyBytes: 100_000, .reset), response)
        var configuration = SessionConfiguration.default
        configuration.scriptedTransport = transport

        let first = try await DurableSession.open(identifier: "test", directory: state, configuration: configuration)
        try await first.downloadTask(for: TransferRequest(url: url), to: DownloadDestination(file))
        await transport.waitUntilIdle()
        await first.close()

        let second = try await DurableSession.open(identifier: "test", directory: state, configuration: configuration)
        let event = await second.events.first { _ in true }
        try await event?.acknowledge()
        await second.close()
        print(transport.requests.map { $0["range"] ?? "complete" })

        await show(DurableEvent(task: DurableTaskInfo(kind: .download, url: url), outcome: .expired))
    }

    static func show(_ event: DurableEvent) async { print(event.task.url.lastPathComponent, event.outcome) }

    /// Ends the iteration over the session's events.
    static func closeAfterLastTask(_ session: DurableSession) {
        Task {
            while try await !session.tasks.isEmpty { try await Task.sleep(for: .milliseconds(50)) }
            await session.close()
        }
    }
}
