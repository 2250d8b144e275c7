import Foundation
import FoundationNetworking
import FoundationXML
import HTTPSession
import HTTPSessionFoundation

/// The examples of HTTPSessionFoundation's documentation: `Examples HTTPSessionFoundation FILE`.
struct HTTPSessionFoundationExamples {
    static func main(_ arguments: [String]) async throws {
        guard let file = arguments.first, let url = URL(string: "https://api.example.com/v1/users/7")
        else {
            return print("usage: Examples HTTPSessionFoundation FILE")
        }
        var request = URLRequest(url: url)
        request.setValue("signed", forHTTPHeaderField: "Authorization")
        try await readme(URL(fileURLWithPath: file), request)
    }

    static func readme(_ file: URL, _ signedURLRequest: URLRequest) async throws {
        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/")

        let document = try await session.get("feed.xml").serialized(by: XMLDocumentResponseSerializer())
        let download = session.download("models/big.bin", to: file)
        let progress = download.foundationProgress(.download)
        let task = session.dataTask(for: try TransferRequest(signedURLRequest))

        print("document", document.rootElement()?.name as Any)
        try await download.file()
        print("progress", progress.isPausable)
        print("task", try await task.string())
    }
}
