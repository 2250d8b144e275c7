import Foundation
import Hosts

/// A client whose cable to its server is pulled and put back. Measures when a download continues, and the load on a server of
/// many tasks that waited.
enum ConnectivityBenchmark {
    private static let index = 300
    private static let connections = 6.0

    static func resume(_ programs: LoadPrograms, _ isQuick: Bool) throws -> [Row] {
        let site = try Site()
        let rounds = isQuick ? 5 : 50
        let limit = try site.limit(programs)
        let load = try Child(
            [programs.session, "resume", site.url("huge"), "\(rounds)", site.folder.file("download")], in: site.client,
            output: .lines)
        _ = try load.await("the first bytes") { $0 == "running" }
        for round in 1...rounds {
            try site.cable(isIn: false)
            try awaitLine(load, "waiting", times: round)
            // The pause is long enough for everything that an outage starts, and random so that it never runs in step with it.
            usleep(UInt32.random(in: 300_000...1_000_000))
            try site.cable(isIn: true)
            try awaitLine(load, "resumed", times: round)
        }
        guard load.wait() == 0 else { throw BenchmarkError("the download failed") }
        let links = try site.links(limit, rounds)
        let resumed = load.output.map { $0.text.split(separator: " ") }.filter { $0.first == "resumed" }.compactMap {
            Int64($0[1])
        }
        let delays = Distribution(zip(resumed, links).map { Double($0 - $1.notified) })
        let connects = Distribution(links.map { Double($0.connected - $0.notified) })
        let beyond = Distribution(zip(resumed, links).map { Double($0 - $1.connected) })
        return [
            .against(
                "cable in → first byte of a resumed download, median of \(delays.count)", delays.median, connects.median,
                milliseconds,
                "connect(2)", atMost: nil),
            .against(
                "cable in → first byte of a resumed download, the longest", delays.quantile(1), connects.quantile(1),
                milliseconds, "connect(2)", atMost: nil),
            .bound("the same beyond that connect(2), median", beyond.median, milliseconds, atMost: 20e6),
        ]
    }

    static func release(_ programs: LoadPrograms, _ isQuick: Bool) throws -> [Row] {
        let site = try Site()
        let tasks = isQuick ? 1_000 : 10_000
        let limit = try site.limit(programs)
        let load = try Child([programs.session, "release", site.url("1k"), "\(tasks)"], in: site.client, output: .lines)
        let direct = try load.await("the tasks that need not wait") { $0.hasPrefix("direct ") }
        try site.cable(isIn: false)
        try awaitLine(load, "waiting", times: 1)
        usleep(1_000_000)
        let plugged = Date().timeIntervalSince1970
        try site.cable(isIn: true)
        let released = try load.await("the end of the tasks") { $0.hasPrefix("released ") }
        guard load.wait() == 0 else { throw BenchmarkError("a task failed") }
        let notified = try site.links(limit, 1)[0].notified
        guard let end = Int64(released.text.dropFirst("released ".count)),
            let usual = Double(direct.text.dropFirst("direct ".count))
        else { throw BenchmarkError("no moments: \(released.text), \(direct.text)") }
        let served = try site.served().filter { $0.moment >= plugged }
        // A request that was sent before the loss was known may wait in the kernel for its next hop, and is served too.
        guard (tasks...tasks + Int(connections)).contains(served.count) else {
            throw BenchmarkError("\(served.count) requests for \(tasks) tasks")
        }
        return [
            .against(
                "\(tasks) waiting tasks, \(Int(connections)) connections: cable in → all have ended", Double(end - notified),
                usual * 1e9,
                seconds, "without a wait", atMost: nil),
            .bound(
                "the same: connections at the server, at most", served.map(\.connections).max() ?? 0, count, atMost: connections),
            .bound("the same: requests a second at the server, busiest 100 ms", busiest(served.map(\.moment)) * 10, count),
        ]
    }

    /// The largest number of moments within 100 ms.
    private static func busiest(_ moments: [Double]) -> Double {
        let sorted = moments.sorted()
        var (first, most) = (0, 0)
        for (last, moment) in sorted.enumerated() {
            while moment - sorted[first] > 0.1 { first += 1 }
            most = max(most, last - first + 1)
        }
        return Double(most)
    }

    private static func awaitLine(_ child: Child, _ word: String, times: Int) throws {
        let end = Clock.now() + 60_000_000_000
        while child.output.filter({ $0.text.hasPrefix(word) }).count < times {
            guard Clock.now() < end else { throw BenchmarkError("'\(word)' did not come within 60 s") }
            usleep(1000)
        }
    }

    /// A client and a server's host, with a cable between them. The server's address is behind the client's default route.
    private final class Site {
        let client: LabHost
        let folder: WorkFolder
        private let host: LabHost
        private let nginx: Nginx
        private static let address = "203.0.113.9"

        init() throws {
            (client, host, folder) = (try LabHost(), try LabHost(), try WorkFolder())
            for each in [client, host] { try each.ip("link set lo up") }
            try host.ip("address add \(Site.address)/32 dev lo")
            try client.connect(to: host, "cable", index: index)
            try client.ip("route add default via 10.9.1.1")
            let log =
                "log_format moments '$msec $connections_active'; access_log \(folder.file("served")) moments buffer=64k flush=1s;"
            nginx = try Nginx(
                folder, in: host, http: log,
                servers: ["listen \(Site.address):80 backlog=4096; location /huge { limit_rate 2m; }"])
        }

        func url(_ file: String) -> String { "http://\(Site.address)/\(file)" }

        /// Pulls or puts back the cable at the server's end. The client's interface keeps its addresses and routes, and has no
        /// carrier.
        func cable(isIn: Bool) throws { try host.ip("link set cable \(isIn ? "up" : "down")") }

        /// Starts the program that connects as soon as the cable is back.
        func limit(_ programs: LoadPrograms) throws -> Child {
            let child = try Child([programs.linkConnect, "\(index)", Site.address, "80"], in: client, output: .lines)
            _ = try child.await("link-connect") { $0 == "ready" }
            return child
        }

        /// The moments at which the cable was back and at which that program was connected, for each round.
        func links(_ limit: Child, _ count: Int) throws -> [(notified: Int64, connected: Int64)] {
            _ = try limit.await("the last connection") { _ in limit.output.count > count }
            limit.stop()
            return limit.output.dropFirst().compactMap { line in
                let moments = line.text.split(separator: " ").compactMap { Int64($0) }
                return moments.count == 2 ? (moments[0], moments[1]) : nil
            }
        }

        /// The moment of each response in seconds since 1970, and the number of the server's connections at that moment.
        func served() throws -> [(moment: Double, connections: Double)] {
            usleep(1_500_000)
            return try String(contentsOfFile: folder.file("served"), encoding: .utf8).split(separator: "\n").compactMap { line in
                let words = line.split(separator: " ").compactMap { Double($0) }
                return words.count == 2 ? (words[0], words[1]) : nil
            }
        }
    }
}
