import Glibc
import Hosts

/// A large routing table: the time to the first status, and the memory to hold the table.
enum LargeTableBenchmark {
    /// Measures 100,000 routes.
    static func run(_ programs: Programs, _ isQuick: Bool) throws -> [Row] {
        try run(programs, size: isQuick ? 10_000 : 100_000, rounds: 5, atMost: Requirements(ratio: 2.2, resident: 45, peak: 70))
    }

    /// Measures 1,000,000 routes once. Nothing is required of them.
    static func runMillion(_ programs: Programs, _ isQuick: Bool) throws -> [Row] {
        try run(programs, size: isQuick ? 100_000 : 1_000_000, rounds: 1, atMost: nil)
    }

    /// The largest ratio to ip(8), and the largest memory in MB.
    private struct Requirements {
        let ratio: Double
        let resident: Double
        let peak: Double
    }

    private static func run(_ programs: Programs, size: Int, rounds: Int, atMost: Requirements?) throws -> [Row] {
        let host = try LabHost()
        try host.ip("link set lo up")
        try host.ip("link add ifb0 type ifb")
        try host.ip("address add 198.51.100.2/24 dev ifb0")
        try host.ip("link set ifb0 up")
        try host.ip("route add default via 198.51.100.1")
        try host.run(Script((0..<size).map { "route add \(destination($0)) via 198.51.100.1" }))

        var (first, status, listing) = ([Double](), [Double](), [Double]())
        var (resident, peak, processor) = ([Double](), [Double](), [Double]())
        for _ in 0..<rounds {
            var start = Clock.now()
            try Child.run(["ip", "route", "show", "table", "all"], in: host)
            listing.append(Double(Clock.now() - start))

            start = Clock.now()
            try Child.run([programs.netwatch, "status", "--json", "--netns", host.path])
            status.append(Double(Clock.now() - start))

            start = Clock.now()
            let watch = try Child([programs.netwatch, "watch", "--json", "--netns", host.path], output: .lines)
            let hello = try watch.await("the first record") { $0.contains("\"hello\"") }
            first.append(Double(hello.moment - start))
            let figures = ProcessFigures(processID: watch.processID)
            processor.append(Double(figures.awaitIdle(seconds: 0.5)))
            resident.append(Double(figures.residentKibibytes))
            peak.append(Double(figures.peakKibibytes))
            watch.stop()
        }
        let name = "\(size / 1000)k routes: "
        let median = { (values: [Double]) in Distribution(values).median }
        return [
            .against(
                name + "time to the first record of watch", median(first), median(listing), milliseconds, "ip route show",
                atMost: atMost?.ratio),
            .against(
                name + "netwatch status, wall", median(status), median(listing), milliseconds, "ip route show",
                atMost: atMost?.ratio),
            .bound(name + "processor time until idle", median(processor), milliseconds),
            .bound(name + "resident memory of watch", median(resident), mebibytes, atMost: atMost.map { $0.resident * 1024 }),
            .bound(name + "peak resident memory of watch", median(peak), mebibytes, atMost: atMost.map { $0.peak * 1024 }),
        ]
    }

    /// The /24 with this number, from 10.0.0.0/24 on.
    static func destination(_ number: Int) -> String {
        "\(10 + number >> 16).\(number >> 8 & 255).\(number & 255).0/24"
    }
}
