// A program with the names that are equal in Network, URLSession and this package.
import Foundation
import HTTPSession
import Reachability

func watch(_ monitor: PathMonitor) async {
    for await path in monitor where path.status == .satisfied {
        print(path.isExpensive, path.isConstrained, path.supportsDNS, path.supportsIPv4, path.gateways)
        print(path.usesInterfaceType(.wifi), path.usesInterfaceType(.cellular))
    }
    monitor.cancel()
}

func load(_ session: HTTPSessionManager, _ url: URL) async throws -> Data {
    let (data, response) = try await session.data(for: TransferRequest(url: url))
    guard response.statusCode == 200 else { throw HTTPSessionError(.badServerResponse, "\(response.statusCode)") }
    let task = session.dataTask(for: TransferRequest(url: url), startsImmediately: false)
    task.resume()
    task.suspend()
    task.cancel()
    print(task.state, task.progress)
    session.cancel()
    let (again, _) = try await session.data(for: TransferRequest(url: url))
    return data + again
}

func load(_ url: URL, to file: URL) async throws {
    let session = try HTTPSessionManager(baseURL: url)
    let body = try await session.dataTask(for: url).data()
    for try await chunk in session.streamTask(for: url).chunks { print(chunk.count, body.count) }
    try await session.downloadTask(for: url, to: file).file()
    try await session.downloadTask(for: url, to: DownloadDestination(file)).file()
}
