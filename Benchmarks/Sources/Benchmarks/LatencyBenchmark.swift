import Foundation
import Glibc
import Hosts
import Reachability
import Synchronization

/// The delay from the kernel's change to the user's callback, beside a C program that does what any path
/// monitor must, and one that only waits in recv(2).
///
/// The interface has an address in 198.51.100.0/24, for which the library queries the route, so each flip of its administrative
/// state makes the path satisfied or unsatisfied. It is an ifb device, which has no carrier: the kernel would announce the loss
/// of a carrier late.
enum LatencyBenchmark {
    private static let index = 10
    /// The pause between two flips, in nanoseconds. It lets every program return to its wait.
    private static let pause = 5_000_000

    static func run(_ programs: Programs, _ isQuick: Bool) throws -> [Row] {
        let (rounds, flips) = isQuick ? (2, 50) : (10, 200)
        let host = try LabHost()
        try host.ip("link set lo up")
        try host.ip("link add ifb0 index \(index) type ifb")
        try host.ip("address add 198.51.100.2/24 dev ifb0")
        try host.ip("link set ifb0 up")
        var (receive, limit, library, pipe) = (Measured(), Measured(), Measured(), Measured())
        for _ in 0..<rounds {
            receive.add(try readNotices(programs.netlinkLatency, programs, host, flips))
            limit.add(try readNotices(programs.netlinkReader, programs, host, flips))
            library.add(try callBack(programs, host, flips))
            pipe.add(try readPipe(programs, host, flips))
        }
        var rows: [Row] = []
        for (change, isUp, goal) in [("loss", false, 1.2), ("gain", true, 1.4)] {
            let (base, least) = (receive.distribution(isUp), limit.distribution(isUp))
            let (callback, line) = (library.distribution(isUp), pipe.distribution(isUp))
            rows += [
                .against(
                    "\(change) → callback, median of \(callback.count)", callback.median, least.median, microseconds, "C",
                    atMost: goal),
                .against("\(change) → callback, 99th percentile", callback.p99, least.p99, microseconds, "C", atMost: 1.5),
                .against("\(change) → callback, beside recv(2)", callback.median, base.median, microseconds, "recv", atMost: nil),
                .against("\(change) → line from the pipe, median", line.median, least.median, microseconds, "C", atMost: nil),
                .bound("\(change): callback → line from the pipe", line.median - callback.median, microseconds, atMost: 100_000),
            ]
        }
        let missing = library.missing + pipe.missing + limit.missing + receive.missing
        return rows + [.bound("changes reported only after the next, 5 ms later", Double(missing), count)]
    }

    /// A change, or the kernel event that reports it.
    private struct Notice {
        let moment: Int64
        let isUp: Bool
    }

    private struct Measured {
        private var gains: [Double] = []
        private var losses: [Double] = []
        private(set) var missing = 0

        func distribution(_ isUp: Bool) -> Distribution { Distribution(isUp ? gains : losses) }

        /// Adds the delay of each flip's first kernel event. An event after the next flip counts as missing.
        mutating func add(_ round: (flips: [Notice], notices: [Notice])) {
            for (number, flip) in round.flips.enumerated() {
                let end = number + 1 < round.flips.count ? round.flips[number + 1].moment : Int64.max
                let first = round.notices.first { $0.isUp == flip.isUp && $0.moment >= flip.moment && $0.moment < end }
                guard let first else {
                    missing += 1
                    continue
                }
                let delay = Double(first.moment - flip.moment)
                if flip.isUp { gains.append(delay) } else { losses.append(delay) }
            }
        }
    }

    private static func flip(_ programs: Programs, _ host: LabHost, _ count: Int) throws -> [Notice] {
        let child = try Child([programs.flip, "\(index)", "\(count)", "\(pause)"], in: host, output: .lines)
        guard child.wait() == 0 else { throw BenchmarkError("flip failed") }
        usleep(50_000)
        return notices(child.output.map(\.text))
    }

    /// Parses the lines of the C programs: nanoseconds, and 1 for up.
    private static func notices(_ lines: [String]) -> [Notice] {
        lines.compactMap { line in
            let words = line.split(separator: " ")
            guard words.count == 2, let moment = Int64(words[0]) else { return nil }
            return Notice(moment: moment, isUp: words[1] == "1")
        }
    }

    /// Measures one of the C programs.
    private static func readNotices(_ program: String, _ programs: Programs, _ host: LabHost, _ count: Int) throws -> (
        flips: [Notice], notices: [Notice]
    ) {
        let receiver = try Child([program, "\(index)"], in: host, output: .lines)
        _ = try receiver.await(program) { $0 == "ready" }
        usleep(100_000)
        let flips = try flip(programs, host, count)
        receiver.stop()
        return (flips, notices(receiver.output.map(\.text)))
    }

    private static func callBack(_ programs: Programs, _ host: LabHost, _ count: Int) throws -> (
        flips: [Notice], notices: [Notice]
    ) {
        let found = Notices()
        let monitor = try PathMonitor(namespace: NetworkNamespace(host.path))
        let token = monitor.onChange { update in
            let moment = Clock.now()
            found.add(Notice(moment: moment, isUp: update.path.status == .satisfied))
        }
        while found.all.isEmpty { usleep(1000) }
        // The monitor dumps all tables once more after a second.
        usleep(1_500_000)
        let flips = try flip(programs, host, count)
        token.cancel()
        return (flips, found.all)
    }

    private final class Notices: Sendable {
        private let list = Mutex<[Notice]>([])
        func add(_ notice: Notice) { list.withLock { $0.append(notice) } }
        var all: [Notice] { list.withLock { $0 } }
    }

    private static func readPipe(_ programs: Programs, _ host: LabHost, _ count: Int) throws -> (
        flips: [Notice], notices: [Notice]
    ) {
        let watch = try Child([programs.netwatch, "watch", "--json", "--netns", host.path], output: .lines)
        _ = try watch.await("the first record") { $0.contains("\"hello\"") }
        usleep(1_500_000)
        let flips = try flip(programs, host, count)
        watch.stop()
        let notices = watch.output.filter { $0.text.contains("\"type\":\"path\"") }.map {
            Notice(moment: $0.moment, isUp: $0.text.contains("\"status\":\"satisfied\""))
        }
        return (flips, notices)
    }
}
