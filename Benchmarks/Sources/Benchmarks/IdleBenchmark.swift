import Glibc
import Hosts

/// The cost of netwatch while nothing happens.
enum IdleBenchmark {
    static func run(_ programs: Programs, _ isQuick: Bool) throws -> [Row] {
        let host = try LabHost()
        try host.ip("link set lo up")
        try host.ip("link add ifb0 type ifb")
        try host.ip("address add 198.51.100.2/24 dev ifb0")
        try host.ip("link set ifb0 up")

        let watch = try Child([programs.netwatch, "watch", "--json", "--netns", host.path], output: .lines)
        _ = try watch.await("the first record") { $0.contains("\"hello\"") }
        let figures = ProcessFigures(processID: watch.processID)
        // IPv6's duplicate address detection ends after one to two seconds.
        usleep(3_000_000)
        figures.awaitIdle()
        let before = figures.voluntarySwitches
        let length: UInt32 = isQuick ? 2 : 10
        usleep(length * 1_000_000)
        let switches = figures.voluntarySwitches - before
        let memory = figures.residentKibibytes
        watch.stop()

        let durations = try (0..<(isQuick ? 5 : 20)).map { _ in
            let start = Clock.now()
            try Child.run([programs.netwatch, "status", "--json", "--netns", host.path])
            return Double(Clock.now() - start)
        }
        // A program that does nothing, started and awaited in the same way.
        let nothing = try (0..<(isQuick ? 5 : 20)).map { _ in
            let start = Clock.now()
            try Child.run(["true"])
            return Double(Clock.now() - start)
        }
        return [
            .bound("idle: voluntary context switches in \(length) s", Double(switches), count, atMost: 0),
            .bound("idle: resident memory of netwatch watch", Double(memory), mebibytes, atMost: 25 * 1024),
            .bound(
                "idle: netwatch status, wall, median of \(durations.count)", Distribution(durations).median,
                beside: Distribution(nothing).median, milliseconds, "true(1)", atMost: 60e6),
        ]
    }
}
