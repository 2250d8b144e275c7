import FoundationEssentials
import HTTPSession
import RequestLoad

/// Many tasks for one host with six connections, none of which ends. Prints the seconds until the caller had all tasks, the
/// seconds until the session had queued them all, and the resident KiB before and after.
struct QueueLoad {
    private let urls: [URL]

    /// `areDifferent`: Each URL has a query of its own, so no request equals the one before it.
    init(url: String, count: String, areDifferent: Bool) {
        guard let count = Int(count), count > 6, URL(string: url) != nil else { RequestLoad.usage(HTTPSessionLoad.usage) }
        urls = (0..<count).compactMap { URL(string: areDifferent ? "\(url)?\($0)" : url) }
    }

    func run() async throws -> String {
        let session = try HTTPSessionManager(configuration: HTTPSessionLoad.configuration(connectionsPerHost: 6))
        // Six tasks take the connections, so that the others only wait.
        let running = (0..<6).map { _ in session.dataTask(for: TransferRequest(url: urls[0])) }
        while !running.allSatisfy({ $0.state == .running }) { try await Task.sleep(for: .milliseconds(10)) }
        var tasks: [TransferTask] = []
        tasks.reserveCapacity(urls.count)
        let before = OwnFigures.residentKibibytes
        let start = ContinuousClock.now
        for url in urls { tasks.append(session.dataTask(for: TransferRequest(url: url))) }
        let made = (ContinuousClock.now - start) / .seconds(1)
        // The queue is served in order: if the last task waits, all do.
        while tasks.last?.state != .waiting { try await Task.sleep(for: .microseconds(200)) }
        let queued = (ContinuousClock.now - start) / .seconds(1)
        let memory = OwnFigures.residentKibibytes
        guard tasks.allSatisfy({ $0.state == .waiting }) else { throw NotQueued() }
        session.cancel()
        return "\(made) \(queued) \(before) \(memory)"
    }

    private struct NotQueued: Error {}
}
