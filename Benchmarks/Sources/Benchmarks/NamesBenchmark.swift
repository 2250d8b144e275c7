import Foundation
import Glibc
import Hosts

/// A cold start with many names: the time until all targets have a status, with a name server on this machine.
enum NamesBenchmark {
    static func run(_ programs: Programs, _ isQuick: Bool) throws -> [Row] {
        let count = isQuick ? 1_000 : 10_000
        let host = try LabHost()
        try host.ip("link set lo up")
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("netwatch-names-\(getpid())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for (name, text) in ["resolv.conf": "nameserver 127.0.0.1\n", "nsswitch.conf": "hosts: files dns\n"] {
            try text.write(toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8)
        }
        let server = try Child([programs.dnsResponder], in: host, output: .lines)
        defer { server.stop() }
        _ = try server.await("the name server") { $0 == "ready" }

        // Port 9 is closed, so that each target has its status after one round trip.
        let names = (0..<count).map { "n\($0).example:9" }
        let addresses = (1...count).map { "127.\(1 + $0 >> 16).\($0 >> 8 & 255).\($0 & 255):9" }
        let status = { inMounts(of: folder, [programs.netwatch, "status", "--json"] + $0) }
        let connects = [programs.tcpConnects, "\(count)", "9", "\(Self.concurrentConnects)"]
        var (named, numbered, lookups, both) = (Runs(), Runs(), Runs(), Runs())
        for _ in 0..<(isQuick ? 2 : 5) {
            let lookup = try run(in: host, [programs.dnsLookups, "\(count)"])
            let connect = try run(in: host, connects)
            lookups.add(lookup)
            both.add(Run(wall: lookup.wall + connect.wall, processor: lookup.processor + connect.processor))
            named.add(try run(in: host, status(names)))
            numbered.add(try run(in: host, status(addresses)))
        }
        let name = "names: cold start of \(count) names, netwatch status"
        let (beyond, alone) = ((named.processor - numbered.processor) / Double(count), lookups.processor / Double(count))
        return [
            .against("\(name), wall", named.wall, lookups.wall, milliseconds, "c-ares alone", atMost: nil),
            .against("\(name), wall", named.wall, both.wall, milliseconds, "c-ares, then connect(2) in C", atMost: nil),
            .against(
                "\(name), processor time", named.processor, both.processor, milliseconds, "c-ares, then connect(2) in C",
                atMost: nil),
            .against(
                "names: processor time of a name beyond that of an address", beyond, alone, microseconds, "c-ares alone",
                atMost: nil),
        ]
    }

    /// The number of connections that the C program has open: netwatch has at most 150.
    private static let concurrentConnects = 150

    /// The wall time and the processor time of a run, in nanoseconds.
    private struct Run {
        let wall: Double
        let processor: Double
    }

    /// The medians of several runs.
    private struct Runs {
        private var runs: [Run] = []

        var wall: Double { Distribution(runs.map(\.wall)).median }
        var processor: Double { Distribution(runs.map(\.processor)).median }

        mutating func add(_ run: Run) { runs.append(run) }
    }

    /// Runs a program whose exit code says nothing here.
    private static func run(in host: LabHost, _ command: [String]) throws -> Run {
        let start = Clock.now()
        let child = try Child(command, in: host)
        let usage = child.waitWithUsage()
        return Run(wall: Double(Clock.now() - start), processor: usage.processorTime)
    }

    /// The command with the files of `folder` over those of /etc, for it alone.
    private static func inMounts(of folder: String, _ command: [String]) -> [String] {
        let script =
            #"mount --bind "$0/resolv.conf" /etc/resolv.conf && mount --bind "$0/nsswitch.conf" /etc/nsswitch.conf && exec "$@""#
        return ["unshare", "--mount", "sh", "-c", script, folder] + command
    }
}
