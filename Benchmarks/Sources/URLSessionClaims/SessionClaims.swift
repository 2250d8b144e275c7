import Foundation
import FoundationNetworking
import HTTPSessionTestKit

extension Claim {
    static let sessions: [Claim] = [
        Claim(
            name: "invalidated", text: "A task made on an invalidated session ends the process",
            source: "URLSession.swift:575, 589, 601",
            endsProcess: true
        ) {
            let server = try TestServer { _ in StubResponse(body: "x") }
            let session = URLSession(configuration: .ephemeral)
            session.invalidateAndCancel()
            let task = session.dataTask(with: server.url("/"))
            task.resume()
            return Finding(.refuted, "a task in state \(task.state.rawValue)")
        },
        Claim(
            name: "resume-data", text: "A download from foreign resume data fails", source: "URLSession.swift:489-508, 624-636"
        ) {
            let end = DispatchSemaphore(value: 0)
            nonisolated(unsafe) var text = "the handler was not called"  // written before the semaphore's signal, read after it
            nonisolated(unsafe) var isError = false  // likewise
            let session = URLSession(configuration: .ephemeral)
            let task = session.downloadTask(withResumeData: Data("no resume data".utf8)) { _, _, error in
                isError = error != nil
                text = error.map { "\(($0 as? URLError).map { "URLError \($0.code.rawValue)" } ?? "\($0)")" } ?? "no error"
                end.signal()
            }
            task.resume()
            _ = end.wait(timeout: .now() + 5)
            return Finding(isError, text)
        },
    ]
}
