import Foundation
import HTTPSession
import HTTPSessionJournal

/// The examples of durable sessions: `HTTPSessionJournalExamples DIRECTORY` ends when the journal has no task any more.
@main struct Examples {
    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard let directory = arguments.first, let url = URL(string: "https://api.example.com/big.bin")
        else { return print("usage: HTTPSessionJournalExamples DIRECTORY [handlers]") }
        let state = URL(fileURLWithPath: directory)
        let file = state.appendingPathComponent("big.bin")
        if arguments.dropFirst().first == "handlers" {
            try await handle(state, url, file)
        } else {
            try await readme(state, url, file)
        }
    }

    static func readme(_ state: URL, _ url: URL, _ file: URL) async throws {
        let session = try await DurableSession.open(identifier: "org.example.models", directory: state)
        let destination = DownloadDestination(file, existingFile: .replace)
        let task = try await session.downloadTask(for: TransferRequest(url: url), to: destination)

        print("waiting for", task.id)
        let closing = Task {
            while try await !session.tasks.isEmpty { try await Task.sleep(for: .milliseconds(50)) }
            await session.close()
        }

        for await event in session.events {  // delivered at every start, until it is acknowledged
            print(event.task.url, event.outcome)
            try await event.acknowledge()
        }

        try await closing.value
    }

    static func handle(_ state: URL, _ url: URL, _ file: URL) async throws {
        var handlers = DurableHandlers()
        handlers.register("models") { event in  // delivered at every start, until it is acknowledged
            print(event.task.url, event.outcome)
            try? await event.acknowledge()
        }
        let session = try await DurableSession.open(identifier: "org.example.models", directory: state, handlers: handlers)
        let destination = DownloadDestination(file, existingFile: .replace)
        let task = try await session.downloadTask(for: TransferRequest(url: url), to: destination, handler: "models")

        print("waiting for", task.id)
        while try await !session.tasks.isEmpty { try await Task.sleep(for: .milliseconds(50)) }
        await session.close()
    }
}
