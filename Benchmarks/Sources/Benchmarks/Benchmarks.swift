import Foundation
import Glibc
import Hosts

/// `Benchmarks [NAME ...] [--quick]`: all measurements, or the named ones. `http` names all whose name begins with it.
@main
struct Benchmarks {
    typealias Measurement = (_ isQuick: Bool) throws -> [Row]

    static func main() {
        // The measured programs trust the system's authorities. A session loads those that the environment names when it is made.
        for variable in ["SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE"] { unsetenv(variable) }
        var names = Array(CommandLine.arguments.dropFirst())
        let isQuick = names.contains("--quick")
        names.removeAll { $0 == "--quick" }
        // This measurement adds a million routes to the kernel, so it runs only if its complete name is given.
        let million = "table-million"
        // Programs are located when a measurement needs them, since not every run has built them all.
        let reachability: [(name: String, run: Measurement)] = [
            ("latency", { try LatencyBenchmark.run(Programs(), $0) }), ("storm", { try StormBenchmark.run(Programs(), $0) }),
            ("table", { try LargeTableBenchmark.run(Programs(), $0) }),
            (million, { try LargeTableBenchmark.runMillion(Programs(), $0) }),
            ("idle", { try IdleBenchmark.run(Programs(), $0) }), ("names", { try NamesBenchmark.run(Programs(), $0) }),
            ("fleet", { try FleetBenchmark.run(Programs(), $0) }), ("levels", { try LevelsBenchmark.run(Programs(), $0) }),
            ("kinds", { try KindsBenchmark.run(Programs(), $0) }),
        ]
        let http: [(name: String, run: Measurement)] = [
            ("http-requests", { try RequestBenchmark.run(LoadPrograms(), $0) }),
            ("http-tls", { try RequestBenchmark.runSecure(LoadPrograms(), $0) }),
            ("http-2", { try RequestBenchmark.runMultiplexed(LoadPrograms(), $0) }),
            ("http-idle", { try RequestBenchmark.runBesideIdle(LoadPrograms(), $0) }),
            ("http-download", { try DownloadBenchmark.run(LoadPrograms(), $0) }),
            ("http-parallel", { try DownloadBenchmark.runParallel(LoadPrograms(), $0) }),
            ("http-slow", { try RequestBenchmark.runSlow(LoadPrograms(), $0) }),
            ("http-small", { try SmallBenchmark.run(LoadPrograms(), $0) }),
            ("http-queue", { try QueueBenchmark.run(LoadPrograms(), $0) }),
            ("http-resume", { try ConnectivityBenchmark.resume(LoadPrograms(), $0) }),
            ("http-release", { try ConnectivityBenchmark.release(LoadPrograms(), $0) }),
        ]
        let known = reachability.map(\.name) + ["http"] + http.map(\.name)
        guard names.allSatisfy(known.contains) else {
            let choice = known.map { "[\($0)]" }.joined(separator: " ")
            FileHandle.standardError.write(Data("usage: Benchmarks \(choice) [--quick]\n".utf8))
            exit(64)
        }
        do {
            var tables: [Table] = []
            for (subject, measurements) in [("netwatch", reachability), ("HTTPSession", http)] {
                var table = Table(subject: subject)
                for (name, run) in measurements
                where name == million ? names.contains(name) : names.isEmpty || names.contains(where: name.begins) {
                    FileHandle.standardError.write(Data("bench: \(name)\n".utf8))
                    table.rows += try run(isQuick)
                }
                if !table.rows.isEmpty { tables.append(table) }
            }
            let text = tables.map(\.text).joined(separator: "\n\n")
            print("\(Machine.date), \(Machine.description)\(isQuick ? ", --quick" : "")\n\n\(text)")
        } catch {
            FileHandle.standardError.write(Data("bench: \(error)\n".utf8))
            exit(1)
        }
    }
}

extension String {
    /// True if the name is `word` or begins with it, as `http-idle` begins with `http`.
    fileprivate func begins(with word: String) -> Bool { self == word || hasPrefix("\(word)-") }
}

/// The paths of the programs that scripts/bench has built.
struct Programs {
    let netwatch: String
    let flip: String
    let netlinkLatency: String
    let netlinkReader: String
    let dnsResponder: String
    let dnsLookups: String
    let tcpListener: String
    let tcpConnects: String

    init() throws {
        let environment = ProcessInfo.processInfo.environment
        let netwatch = "\(environment["STATIC_PRODUCTS"] ?? "Benchmarks/.build-static/release")/netwatch"
        let limits = environment["LIMITS"] ?? ".build/limits"
        self.netwatch = netwatch
        flip = "\(limits)/flip"
        netlinkLatency = "\(limits)/netlink-latency"
        netlinkReader = "\(limits)/netlink-reader"
        dnsResponder = "\(limits)/dns-responder"
        dnsLookups = "\(limits)/dns-lookups"
        tcpListener = "\(limits)/tcp-listener"
        tcpConnects = "\(limits)/tcp-connects"
        let all = [netwatch, flip, netlinkLatency, netlinkReader, dnsResponder, dnsLookups, tcpListener, tcpConnects]
        for program in all where access(program, X_OK) != 0 {
            throw BenchmarkError("\(program) is missing: run scripts/bench, which builds it")
        }
    }
}
