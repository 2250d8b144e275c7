/// 10,000 tasks for one host, of which six run.
enum QueueBenchmark {
    static func run(_ programs: LoadPrograms, _ isQuick: Bool) throws -> [Row] {
        let servers = try LoopbackServers()
        let (tasks, count) = (10_000, isQuick ? 1 : 5)
        let kinds: [(name: String, words: [String])] = [("", []), (" with different URLs", ["different"])]
        return try kinds.flatMap { kind, words -> [Row] in
            let runs = try (0..<count).map { _ in
                try LoadRun([programs.session, "queue", servers.never, "\(tasks)"] + words, count: 4).numbers
            }
            let median = { (number: ([Double]) -> Double) in Distribution(runs.map(number)).median }
            let what = "10,000 queued tasks\(kind)"
            return [
                .bound("\(what): made and started, median of \(count)", median { $0[0] * 1e9 }, milliseconds),
                .bound("\(what): until all are queued", median { $0[1] * 1e9 }, milliseconds, atMost: 40e6),
                .bound(
                    "\(what): resident memory of each", median { ($0[3] - $0[2]) / Double(tasks) }, kibibytes, atMost: 3.1),
            ]
        }
    }
}
