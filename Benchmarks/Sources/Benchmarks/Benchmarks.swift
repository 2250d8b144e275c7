import Foundation
import Glibc

/// `Benchmarks [latency] [storm] [table] [idle] [--quick]`: all measurements, or those that are named.
@main
struct Benchmarks {
    static func main() {
        var names = Array(CommandLine.arguments.dropFirst())
        let isQuick = names.contains("--quick")
        names.removeAll { $0 == "--quick" }
        let all: [(String, (Programs, Bool) throws -> [Row])] = [
            ("latency", LatencyBenchmark.run), ("storm", StormBenchmark.run), ("table", LargeTableBenchmark.run),
            ("idle", IdleBenchmark.run),
        ]
        guard names.allSatisfy({ name in all.contains { $0.0 == name } }) else {
            FileHandle.standardError.write(Data("usage: Benchmarks [latency] [storm] [table] [idle] [--quick]\n".utf8))
            exit(64)
        }
        do {
            let programs = try Programs()
            var table = Table()
            for (name, run) in all where names.isEmpty || names.contains(name) {
                FileHandle.standardError.write(Data("bench: \(name)\n".utf8))
                table.rows += try run(programs, isQuick)
            }
            print("\(Machine.date), \(Machine.description)\(isQuick ? ", --quick" : "")\n\n\(table.text)")
        } catch {
            FileHandle.standardError.write(Data("bench: \(error)\n".utf8))
            exit(1)
        }
    }
}

/// Where the programs are that scripts/bench has built.
struct Programs {
    let netwatch: String
    let flip: String
    let netlinkLatency: String

    init() throws {
        let environment = ProcessInfo.processInfo.environment
        let netwatch = environment["NETWATCH"] ?? ".build/release/netwatch"
        let limits = environment["LIMITS"] ?? ".build/limits"
        self.netwatch = netwatch
        flip = "\(limits)/flip"
        netlinkLatency = "\(limits)/netlink-latency"
        for program in [netwatch, flip, netlinkLatency] where access(program, X_OK) != 0 {
            throw BenchmarkError("\(program) is not there: run scripts/bench, which builds it")
        }
    }
}
