import Expectations
import Foundation
import Glibc
import NetworkLab
import Reachability
import Testing

/// Runs random commands. Whenever the monitor is settled, its snapshot must equal the kernel's tables.
@Suite(.requiresNamespaces)
struct RandomTests {
    private static let seeds: [UInt64] = {
        if let text = ProcessInfo.processInfo.environment["NETWATCH_SEED"], let seed = UInt64(text) { return [seed] }
        return [UInt64.random(in: 0..<1_000_000)]
    }()

    private static let count = Sanitizer.isUsed ? 150 : 500
    private static let batchSize = 10

    @Test("random commands leave no difference between the monitor's snapshot and the kernel", arguments: seeds)
    func commands(_ seed: UInt64) throws {
        print("NETWATCH_SEED=\(seed) repeats this run")
        let network = try Network()
        try network.host.ip("link set lo up")
        try network.uplink("u0", "10.0.0.1/24", "2001:db8:0::1/64")
        try network.uplink("u1", "10.1.0.1/24", "2001:db8:1::1/64")
        try network.host.ip("route add default via 10.0.0.9 dev u0 metric 10")
        try network.host.ip("-6 route add default via 2001:db8:0::9 dev u0 metric 10")
        let observer = try LibraryObserver(MonitorConfiguration(namespace: NetworkNamespace(network.host.path)))
        var commands = RandomCommands(seed: seed)
        var log: [String] = []
        var satisfied = 0
        let batches = Self.count / Self.batchSize
        for _ in 0..<batches {
            let drawn = (0..<Self.batchSize).map { _ in commands.next() }
            for command in drawn + commands.repairs() {
                log.append("\(command.isRouters ? "router" : "host") ip \(command.family) \(command.words)")
                let host = command.isRouters ? network.router : network.host
                let program = try Program(
                    ["ip", command.family] + command.words.split(separator: " ").map(String.init), on: host, output: .null)
                if try program.wait() != 0 {
                    log[log.count - 1] += "   # \(program.standardError.split(separator: "\n").first ?? "")"
                }
            }
            try compare(observer, network.host, log, seed)
            var isSatisfied = false
            let isRight = try (0..<20).contains { _ in
                isSatisfied = try observer.latestPath()?.hasPrefix("satisfied") ?? false
                return !isSatisfied || Self.hasRoute(network.host)
            }
            #expect(isRight, "satisfied without a route; seed \(seed)")
            if isSatisfied { satisfied += 1 }
        }
        #expect(satisfied * 3 >= batches, "satisfied at \(satisfied) of \(batches) settled points; seed \(seed)")
        print("seed \(seed): satisfied at \(satisfied) of \(batches) settled points")
    }

    /// True if the kernel has a route of either family.
    private static func hasRoute(_ host: LabHost) -> Bool {
        (try? host.ip("route get 198.51.100.1")) != nil || (try? host.ip("-6 route get 2001:db8:ffff::1")) != nil
    }

    /// Compares the snapshot with the kernel. Only a difference that lasts counts. The kernel announces a carrier's change up to
    /// a second after its dumps show it (linkwatch), and the two are not read at the same moment.
    private func compare(_ observer: LibraryObserver, _ host: LabHost, _ log: [String], _ seed: UInt64) throws {
        var (last, since): ([KernelSnapshot], ContinuousClock.Instant) = ([], .now)
        let start = since
        while start.duration(to: .now) < patience {
            let known = try observer.settledState().snapshot
            let real = try FreshDump.take(of: host)
            if known == real { return }
            if last != [known, real] { (last, since) = ([known, real], .now) }
            guard since.duration(to: .now) > .seconds(30) else {
                poll(nil, 0, 50)
                continue
            }
            let missing = real.changes(since: known).map { "\($0)" }.joined(separator: "\n  ")
            let wrong = known.changes(since: real).map { "\($0)" }.joined(separator: "\n  ")
            let routes = try ["-4", "-6"].map { try host.ip("\($0) route show table all") }.joined()
            let last = log.suffix(150).joined(separator: "\n")
            throw LabError(
                "seed \(seed): the settled monitor lacks\n  \(missing)\nit has\n  \(wrong)\nthe kernel has\n\(routes)\nafter\n\(last)"
            )
        }
        throw LabError("seed \(seed): the kernel's tables change all the time")
    }
}
