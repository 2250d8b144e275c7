import Glibc
import Hosts

/// As many events as ip(8) can make. Measures the cost of following them beside `ip monitor`, and checks that the final state is
/// known.
enum StormBenchmark {
    static func run(_ programs: Programs, _ isQuick: Bool) throws -> [Row] {
        let events = isQuick ? 10_000 : 100_000
        let rounds = isQuick ? 1 : 3
        let script = try Script(storm(events))
        var (monitor, watch, making) = ([Double](), [Double](), [Double]())
        var (resyncs, lost, records) = (0, 0, 0)
        for _ in 0..<rounds {
            let reference = try Round(script, ["ip", "monitor", "link", "address", "route"], awaitsHello: false)
            monitor.append(reference.processorTime)
            let measured = try Round(script, [programs.netwatch, "watch", "--json"], awaitsHello: true)
            watch.append(measured.processorTime)
            making.append(measured.making)
            resyncs += measured.resyncs
            records += measured.records
            if !measured.isFinalStateRight { lost += 1 }
        }
        let name = "storm of \(events / 1000)k events: "
        return [
            .against(
                name + "processor time", Distribution(watch).median, Distribution(monitor).median, milliseconds, "ip monitor",
                atMost: 1.5),
            .bound(name + "wall time of ip -batch", Distribution(making).median, seconds),
            .bound(name + "resyncs in \(rounds) runs", Double(resyncs), count),
            .bound(name + "runs that ended in a wrong state", Double(lost), count, atMost: 0),
            .bound(name + "records written, a run", Double(records / rounds), count),
        ]
    }

    /// Commands of which eight in ten concern routes and two a link. Each makes at least one event. Together they leave the state
    /// unchanged.
    private static func storm(_ events: Int) -> [String] {
        (0..<events / 10).flatMap { number -> [String] in
            let routes = (0..<4).map { LargeTableBenchmark.destination(number * 4 + $0) }
            return routes.map { "route add \($0) dev ifb1" } + ["link set ifb1 mtu 1400", "link set ifb1 mtu 1500"]
                + routes.map { "route del \($0) dev ifb1" }
        }
    }

    private struct Round {
        let processorTime: Double
        let making: Double
        var resyncs = 0
        var records = 0
        var isFinalStateRight = true

        init(_ script: Script, _ command: [String], awaitsHello: Bool) throws {
            let host = try LabHost()
            try host.ip("link set lo up")
            for name in ["ifb0", "ifb1"] {
                try host.ip("link add \(name) type ifb")
                try host.ip("link set \(name) up")
            }
            try host.ip("address add 198.51.100.2/24 dev ifb0")
            // netwatch is given the namespace's path, as in normal use. ip has no such option for a namespace without a name.
            let child: Child
            if awaitsHello {
                child = try Child(command + ["--netns", host.path], output: .lines)
                _ = try child.await("the first record") { $0.contains("\"hello\"") }
            } else {
                child = try Child(command, in: host)
            }
            let figures = ProcessFigures(processID: child.processID)
            // IPv6's duplicate address detection has finished after this pause.
            usleep(2_500_000)
            let before = figures.awaitIdle()
            let start = Clock.now()
            try host.run(script)
            making = Double(Clock.now() - start)
            processorTime = Double(figures.awaitIdle(seconds: 1.2) - before)
            if awaitsHello {
                resyncs = child.output.count { $0.text.contains("\"type\":\"resync\"") }
                let count = child.output.count
                records = count - 1
                // The next change must be reported once and from the right state: then the last state was right, and the stream
                // works.
                try host.ip("link set ifb0 down")
                usleep(500_000)
                let after = child.output.dropFirst(count).map(\.text)
                let unsatisfied = after.filter { $0.contains("\"status\":\"unsatisfied\"") }
                let routable = child.output.last { !$0.text.contains("\"unsatisfied\"") }?.text ?? ""
                isFinalStateRight = unsatisfied.count == 1 && routable.contains("\"level\":\"routable\"")
            }
            child.stop()
        }
    }
}
