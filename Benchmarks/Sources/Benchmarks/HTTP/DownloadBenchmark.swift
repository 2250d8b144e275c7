import Foundation
import Glibc
import Hosts

/// A download of 2 GiB to a file, beside curl(1) on the same disk.
enum DownloadBenchmark {
    static func run(_ programs: LoadPrograms, _ isQuick: Bool) throws -> [Row] {
        let servers = try LoopbackServers()
        let rounds = isQuick ? 1 : 5
        let file = servers.folder.file("download")
        var (limit, session) = ([Double](), [Double]())
        var (limitWall, sessionWall, peak) = ([Double](), [Double](), [Double]())
        for _ in 0..<rounds {
            let (curlTime, curlWall, _) = try download(["curl", "--silent", "--fail", "--output", file, servers.huge], file)
            limit.append(curlTime)
            limitWall.append(curlWall)
            let (time, wall, output) = try download([programs.session, "download", servers.huge, file], file)
            session.append(time)
            sessionWall.append(wall)
            guard let memory = output.split(separator: " ").last.flatMap({ Double($0) }) else {
                throw BenchmarkError("\(programs.session): \(output)")
            }
            peak.append(memory)
        }
        let median = { (values: [Double]) in Distribution(values).median }
        return [
            .against(
                "2 GiB to disk: processor time, median of \(rounds)", median(session), median(limit), milliseconds, "curl -o",
                atMost: 1.15),
            // curl leaves writing the file to the kernel. HTTPSession waits for the disk before it renames the file.
            .against("2 GiB to disk: wall time", median(sessionWall), median(limitWall), seconds, "curl -o", atMost: nil),
            .bound("2 GiB to disk: peak resident memory", peak.max() ?? 0, mebibytes, atMost: 30 * 1024),
        ]
    }

    // Dirty pages of earlier runs are written before the clock starts, and the file is removed afterwards.
    private static func download(_ command: [String], _ file: String) throws -> (time: Double, wall: Double, output: String) {
        sync()
        let start = Clock.now()
        let child = try Child(command, output: .lines)
        let (code, time, _) = child.waitWithUsage()
        let wall = Double(Clock.now() - start)
        var status = stat()
        guard code == 0, stat(file, &status) == 0, status.st_size == 1 << 31 else {
            throw BenchmarkError("\(command.joined(separator: " ")): exit code \(code), \(status.st_size) bytes")
        }
        unlink(file)
        return (time, wall, child.output.last?.text ?? "")
    }
}
