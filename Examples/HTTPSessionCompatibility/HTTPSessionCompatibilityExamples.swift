import Foundation
import HTTPSession
import HTTPSessionCompatibility

/// The example of the documentation: `Examples HTTPSessionCompatibility FILE`.
struct HTTPSessionCompatibilityExamples {
    static func main(_ arguments: [String]) async throws {
        guard let file = arguments.first else {
            return print("usage: Examples HTTPSessionCompatibility FILE")
        }
        try await upload(URL(fileURLWithPath: file))
    }

    static func upload(_ file: URL) async throws {
        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/", eventMonitors: [NotificationMonitor()])
        let token = NotificationCenter.default.addObserver(of: TransferTask.self, for: .taskDidComplete) { message in
            print("completed", message.error as Any)
        }
        session.respond(
            to: session.upload("reports", from: .file(file)), success: { task, json in print(json as Any) },
            failure: { task, error in print(error) })

        // The callbacks run on a queue of the session: the program must not end before.
        try await Task.sleep(for: .seconds(60))
        NotificationCenter.default.removeObserver(token)
    }
}
