/// 10,000 tasks for one host, of which six run.
enum QueueBenchmark {
    static func run(_ programs: LoadPrograms, _ isQuick: Bool) throws -> [Row] {
        let servers = try LoopbackServers()
        let tasks = 10_000
        let runs = try (0..<(isQuick ? 1 : 5)).map { _ in
            try LoadRun([programs.session, "queue", servers.never, "\(tasks)"], count: 4).numbers
        }
        let median = { (number: ([Double]) -> Double) in Distribution(runs.map(number)).median }
        return [
            .bound("10,000 queued tasks: made and started, median of \(runs.count)", median { $0[0] * 1e9 }, milliseconds),
            .bound("10,000 queued tasks: until all are queued", median { $0[1] * 1e9 }, milliseconds, atMost: 40e6),
            .bound(
                "10,000 queued tasks: resident memory of each", median { ($0[3] - $0[2]) / Double(tasks) }, kibibytes,
                atMost: 3.1),
        ]
    }
}
