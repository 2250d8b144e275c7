import FoundationEssentials
import Glibc
import HTTPSession
import Reachability
import RequestLoad
import Synchronization

/// Tasks that lose their network and get it back. Another program changes the network and reads this one's output line by line.
/// Moments are `CLOCK_MONOTONIC` in nanoseconds.
struct ConnectivityLoad {
    private let url: URL
    private let count: Int
    private let monitor: PathMonitor

    init(url: String, count: String) async throws {
        guard let url = URL(string: url), let count = Int(count), count > 0 else { RequestLoad.usage(HTTPSessionLoad.usage) }
        (self.url, self.count) = (url, count)
        monitor = try PathMonitor()
        await path(is: .satisfied)
    }

    private func path(is status: NetworkPath.Status) async {
        for await update in monitor.updates where update.path.status == status { return }
    }

    private static func report(_ words: String) { RequestLoad.write("\(words)\n", to: STDOUT_FILENO) }

    private static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Runs one download that does not end. Prints `running` at its first bytes. Then, for each outage, it prints `waiting` when
    /// the task waits for the network and `resumed MOMENT` at the next bytes.
    func resume(to path: String) async throws {
        let outages = Outages()
        let session = try HTTPSessionManager(
            configuration: HTTPSessionLoad.configuration(), monitor: monitor, eventMonitors: [outages])
        let task = session.downloadTask(for: TransferRequest(url: url), to: DownloadDestination(URL(fileURLWithPath: path)))
        var resumed = 0
        for await progress in task.progress where progress.bytesReceived > 0 {
            guard let wasWaiting = outages.received(progress.bytesReceived) else { continue }
            Self.report(wasWaiting ? "resumed \(Self.now)" : "running")
            if wasWaiting { resumed += 1 }
            if resumed == count { break }
        }
        task.cancel()
        guard resumed == count else { _ = try await task.response; return }
    }

    /// The state that connects the event of a waiting task with the task's progress.
    private final class Outages: EventMonitor {
        private let state = Mutex((received: Int64(0), isWaiting: false))

        /// - Returns: true for the first bytes after an outage, false for the first bytes of all, and `nil` for other bytes.
        func received(_ bytes: Int64) -> Bool? {
            state.withLock { state in
                guard bytes > state.received else { return nil }
                let wasWaiting = state.isWaiting
                let isFirst = state.received == 0
                (state.received, state.isWaiting) = (bytes, false)
                return wasWaiting || isFirst ? wasWaiting : nil
            }
        }

        func handle(_ event: SessionEvent) {
            guard case .waitingForConnectivity(let task, _) = event else { return }
            state.withLock { $0 = (max($0.received, task.currentProgress.bytesReceived), true) }
            ConnectivityLoad.report("waiting")
        }
    }

    /// Runs tasks, six at a time. Prints `direct SECONDS` when all tasks that had a network from the beginning have ended. When
    /// the network is gone it starts as many others. It prints `waiting` when all of them wait, and `released MOMENT` when the
    /// last one has ended.
    func release() async throws {
        let session = try HTTPSessionManager(
            configuration: HTTPSessionLoad.configuration(connectionsPerHost: 6), monitor: monitor)
        _ = try await session.dataTask(for: TransferRequest(url: url)).data()
        let start = Self.now
        try await finish(make(session))
        Self.report("direct \(Double(Self.now - start) / 1e9)")
        await path(is: .unsatisfied)
        let tasks = make(session)
        while !tasks.allSatisfy({ $0.state == .waitingForConnectivity }) { try await Task.sleep(for: .milliseconds(20)) }
        Self.report("waiting")
        try await finish(tasks)
        Self.report("released \(Self.now)")
    }

    private func make(_ session: HTTPSessionManager) -> [TransferTask] {
        (0..<count).map { _ in session.dataTask(for: TransferRequest(url: url)) }
    }

    private func finish(_ tasks: [TransferTask]) async throws {
        for task in tasks {
            guard try await task.data().count == 1024 else { throw UnexpectedStatus(code: 0) }
        }
    }
}
