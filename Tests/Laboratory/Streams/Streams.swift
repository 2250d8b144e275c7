import EventLoop
import Foundation
import HTTPSession
import HTTPSessionTestKit

/// `laboratory streams COUNT SESSIONS`: reads COUNT streams in Swift tasks, divided among several sessions, from a server in this process. It prints
/// how many failed, and the smallest number of descriptors that were free at a response. With few descriptors (`ulimit -n`), the sessions and the
/// server together want more than there are.
enum Streams {
    static func main(_ arguments: [String]) async throws {
        let numbers = arguments.compactMap { Int($0) }
        guard numbers.count == 2, numbers.allSatisfy({ $0 > 0 }) else {
            print("usage: laboratory streams COUNT SESSIONS")
            exit(64)
        }
        let fewest = Locked(Int.max)
        // Long enough that libdispatch looks at its threads, which it does once a second.
        let server = try TestServer { _ in
            let use = DescriptorUse.now()
            fewest.withLock { $0 = min($0, use.limit - use.open) }
            return StubResponse(body: .pattern(10_000)).delayed(.milliseconds(100))
        }
        var configuration = SessionConfiguration()
        configuration.insecureHTTP = .allowed
        configuration.proxy = .none
        configuration.maximumConnectionsPerHost = 256
        // The server accepts a connection when it has a descriptor for it. A stream that waits longer than this fails.
        configuration.requestTimeout = .seconds(2)
        configuration.retryPolicy = .never
        let settings = configuration
        let sessions = try (0..<numbers[1]).map { _ in try HTTPSessionManager(configuration: settings) }
        let failures = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<numbers[0] {
                let session = sessions[number % sessions.count]
                group.addTask {
                    do {
                        var bytes = 0
                        for try await chunk in session.stream(server.url("/").absoluteString).chunks { bytes += chunk.count }
                        return bytes == 10_000
                    } catch { return false }
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 0 : 1 }
        }
        print("\(failures) of \(numbers[0]) streams failed, \(fewest.withLock { $0 }) descriptors stayed free")
        withExtendedLifetime((sessions, server)) {}
    }
}
