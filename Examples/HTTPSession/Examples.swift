import Foundation
import HTTPSession
import Reachability

struct User: Decodable, Sendable {
    var name: String
}

@main struct Examples {
    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch arguments.first {
        case "readme" where arguments.count == 2: try await readme(URL(fileURLWithPath: arguments[1]))
        case "value": try await value()
        case "server": try await pauseWhileUnreachable()
        default: print("usage: HTTPSessionExamples value|server|readme FILE")
        }
    }

    static func value() async throws {
        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/")
        let user: User = try await session.get("users/7").decode()
        print("user", user.name)
    }

    static func pauseWhileUnreachable() async throws {
        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/")
        let task = session.get("users/7")
        let server = try ServerMonitor("api.example.com:443")
        let observer = NotificationCenter.default.addObserver(of: server, for: .statusDidChange) { _ in
            switch server.current?.status {
            case .up, .degraded: task.resume()
            case .down, .unreachable: task.suspend()
            default: break
            }
        }
        print(try await task.response.statusCode)
        withExtendedLifetime(observer) {}
    }

    static func readme(_ file: URL) async throws {
        let monitor = try PathMonitor()

        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/", reachability: monitor)
        let user: User = try await session.get("users/7").decode()  // another status than 200 to 299 is an error

        let download = session.download("models/big.bin", to: file)  // a temporary file beside it, synced, then renamed
        for await progress in download.progress { print(progress.fractionCompleted as Any) }
        download.suspend(); download.resume()
        try await download.file()

        session.post(
            "events", parameters: ["kind": "start"], success: { task, json in print(json as Any) },
            failure: { task, error in print(error) })

        print("user", user.name)
        // Callbacks come on a queue of the session's own: the program has to be there.
        try await Task.sleep(for: .seconds(60))
    }
}
