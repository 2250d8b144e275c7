import Foundation
import HTTPSession
import HTTPSessionJournal

/// What the README shows of durable sessions: `HTTPSessionJournalExamples DIRECTORY`.
@main struct Examples {
    static func main() async throws {
        guard let directory = CommandLine.arguments.dropFirst().first, let url = URL(string: "https://api.example.com/big.bin")
        else { return print("usage: HTTPSessionJournalExamples DIRECTORY") }
        let state = URL(fileURLWithPath: directory)
        try await readme(state, url, state.appendingPathComponent("big.bin"))
    }

    static func readme(_ state: URL, _ url: URL, _ file: URL) async throws {
        var handlers = DurableHandlers()
        handlers.register("models") { event in  // again at every start, until it is acknowledged
            print(event.task.url, event.outcome)
            try? await event.acknowledge()
        }
        let session = try DurableSession(identifier: "org.example.models", directory: state, handlers: handlers)
        let place = DownloadDestination(file, existingFile: .replace)
        let task = try await session.download(TransferRequest(url: url), to: place, handler: "models")

        print("waiting for", task.id)
        while try await !session.tasks.isEmpty { try await Task.sleep(for: .milliseconds(50)) }
        await session.close()
    }
}
