import Foundation
import HTTPSession
import Reachability

struct User: Codable, Sendable {
    var name: String
}

struct Order: Codable, Sendable {
    var id: Int?
    var item: String
}

/// The examples of HTTPSession's documentation.
struct HTTPSessionExamples {
    static func main(_ arguments: [String]) async throws {
        let file = arguments.dropFirst().first.map { URL(fileURLWithPath: $0) }
        switch (arguments.first, file) {
        case ("readme", let file?): try await readme(file)
        case ("callbacks", nil): try await callBack()
        case ("value", nil): try await printValue()
        case ("data", nil): try await printData()
        case ("errors", nil): try await printErrors()
        case ("events", nil): try await printEvents()
        case ("stream", nil): try await printStream()
        case ("server", nil): try await pauseWhileUnreachable()
        case ("token", nil): try await authenticate()
        case ("keep", let file?): try await keepPartialFile(file)
        case ("resume", let file?): try await resumeLater(file)
        case ("form", let file?): try await postForm(file)
        case ("upload", let file?): try await uploadResumably(file)
        case ("pins", nil): try await pinKeys()
        case ("identity", let file?): try await showIdentity(file)
        case ("roots", let file?): try await trustOwnRoots(file)
        default:
            print("usage: Examples HTTPSession callbacks|value|data|errors|events|stream|server|token|pins")
            print("       Examples HTTPSession readme|form|keep|resume|upload|identity|roots FILE")
        }
    }

    static func readme(_ file: URL) async throws {
        let monitor = try PathMonitor()

        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/", monitor: monitor)

        let user = try await session.get("users/7").decode(as: User.self)  // a status outside of 200 to 299 is an error

        let order: Order = try await session.post("orders", json: Order(item: "tea")).decode()

        let download = session.download("models/big.bin", to: file)  // the file appears when it is complete
        for await progress in download.progress { print(progress.fractionCompleted as Any) }
        try await download.file()

        let progress = download.currentProgress
        if let total = progress.expectedToReceive { print("\(progress.bytesReceived) of \(total) bytes") }

        print("user", user.name)
        print("order", order.id as Any)
    }

    static func printValue() async throws {
        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/")
        let user: User = try await session.get("users/7").decode()
        print(user.name)

        let orders = try await session.get("orders", parameters: ["page": 2, "sort": "date"]).json()

        let response = try await session.get("users/7", headerFields: [.accept: "text/plain"]).response
        print(response.statusCode, response.headerFields[.contentType] ?? "", response.metrics.retryCount)

        print(orders as Any)
    }

    static func printData() async throws {
        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/")

        let response = try await session.get("users/7").response
        print(response.data.count, response.statusCode)
    }

    static func printErrors() async throws {
        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/")
        do {
            let user: User = try await session.get("users/7").decode()
            print(user.name)
        } catch {
            switch error.code {
            case .notConnected: print("no network:", error.cause as Any)
            case .unacceptableStatus: print("status", error.context.statusCode as Any)
            default: print(error)
            }
        }
    }

    static func printEvents() async throws {
        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/")
        let events = session.events
        Task {
            for await event in events {
                if case .willRetry(let task, let error) = event { print(task, error) }
            }
        }
        print(try await session.get("users/7").response.statusCode)
    }

    static func printStream() async throws {
        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/")
        let task = session.stream("log")
        print(try await task.response.statusCode)
        for try await chunk in task.chunks { print(chunk.count) }
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

    static func callBack() async throws {
        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/")
        session.post(
            "events", parameters: ["kind": "start"],
            success: { task, json in print(json as Any) },
            failure: { task, error in print(error) })
        // Callbacks run on a queue of the session.
        try await Task.sleep(for: .seconds(60))
    }

    static func authenticate() async throws {
        let tokens = BearerAuthentication { _ in
            BearerToken("secret", expiry: Date(timeIntervalSinceNow: 3600))  // here: ask the identity provider
        }
        let session = try HTTPSessionManager(
            baseURL: "https://api.example.com/v1/", handlers: TransferHandlers(interceptors: [tokens]))
        print(try await session.get("users/7").string())
    }

    static func keepPartialFile(_ file: URL) async throws {
        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/")
        let destination = DownloadDestination(file, existingFile: .replace, partialFile: .keep)
        let request = try session.request(.get, "models/big.bin")
        print(try await session.downloadTask(for: request, to: destination).file().path)
    }

    static func resumeLater(_ file: URL) async throws {
        var configuration = SessionConfiguration()
        configuration.resumeDirectory = file.deletingLastPathComponent().appendingPathComponent("resume")
        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/", configuration: configuration)
        do {
            try await session.download("models/big.bin", to: file).file()
        } catch {
            guard let resumeData = error.resumeData else { throw error }
            try await session.downloadTask(withResumeData: resumeData, to: DownloadDestination(file)).file()
        }
    }

    static func postForm(_ film: URL) async throws {
        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/")
        var form = MultipartForm()
        try form.appendPart(fileURL: film, name: "film")
        let answer = try await session.post("films", parameters: ["title": "Tea"], form: form).json()
        print(answer as Any)
    }

    static func uploadResumably(_ film: URL) async throws {
        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/")
        let request = try session.request(.post, "films")
        let response = try await session.uploadTask(for: request, from: .file(film), resumableUsing: .tus).response
        print(response.url)
    }

    static func pinKeys() async throws {
        var configuration = SessionConfiguration()
        configuration.securityPolicy.hostPins = [
            try HostPins(
                "*.example.com", pins: ["sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="],
                backupPins: ["sha256/BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA="])
        ]
        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/", configuration: configuration)
        print(try await session.get("users/7").string())
    }

    static func showIdentity(_ file: URL) async throws {
        var configuration = SessionConfiguration()
        configuration.clientIdentity = try ClientIdentity(pkcs12File: file, passphrase: "secret")
        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/", configuration: configuration)
        print(try await session.get("users/7").string())
    }

    static func showPEMIdentity() async throws {
        let certificate = URL(fileURLWithPath: "/etc/myapp/client.pem")
        let key = URL(fileURLWithPath: "/etc/myapp/client.key")
        var configuration = SessionConfiguration()

        configuration.clientIdentity = try ClientIdentity(certificateFile: certificate, privateKeyFile: key)

        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/", configuration: configuration)
        print(try await session.get("users/7").string())
    }

    static func allowHTTP() async throws {
        var configuration = SessionConfiguration()

        configuration.insecureHTTP = .allowed(for: try HostPattern("printer.local"), try HostPattern("192.0.2.9"))

        let session = try HTTPSessionManager(baseURL: "http://printer.local/", configuration: configuration)
        print(try await session.get("status").string())
    }

    static func trustOwnRoots(_ file: URL) async throws {
        var configuration = SessionConfiguration()
        configuration.securityPolicy.roots = .systemAnd(Set(try Certificate.all(inFile: file)))
        configuration.securityPolicy.minimumTLSVersion = .v1_3
        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/", configuration: configuration)
        print(try await session.get("users/7").string())
    }
}
