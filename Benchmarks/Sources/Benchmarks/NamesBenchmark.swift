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
        let targets = (0..<count).map { "n\($0).example:9" }
        var (status, one, lookups) = ([Double](), [Double](), [Double]())
        for _ in 0..<(isQuick ? 2 : 5) {
            lookups.append(try seconds(in: host, [programs.dnsLookups, "\(count)"]))
            status.append(try seconds(in: host, inMounts(of: folder, [programs.netwatch, "status", "--json"] + targets)))
            one.append(try seconds(in: host, inMounts(of: folder, [programs.netwatch, "status", "--json", targets[0]])))
        }
        let name = "names: cold start of \(count) names, netwatch status, wall"
        let difference = Distribution(status).median - Distribution(one).median
        return [
            .against(name, Distribution(status).median, Distribution(lookups).median, milliseconds, "c-ares alone", atMost: nil),
            .bound("names: the same for each name, less the time with one target", difference / Double(count), microseconds),
        ]
    }

    /// Runs a program whose exit code says nothing here, and returns its wall time in nanoseconds.
    private static func seconds(in host: LabHost, _ command: [String]) throws -> Double {
        let start = Clock.now()
        let child = try Child(command, in: host)
        _ = child.wait()
        return Double(Clock.now() - start)
    }

    /// The command with the files of `folder` over those of /etc, for it alone.
    private static func inMounts(of folder: String, _ command: [String]) -> [String] {
        let script =
            #"mount --bind "$0/resolv.conf" /etc/resolv.conf && mount --bind "$0/nsswitch.conf" /etc/nsswitch.conf && exec "$@""#
        return ["unshare", "--mount", "sh", "-c", script, folder] + command
    }
}
