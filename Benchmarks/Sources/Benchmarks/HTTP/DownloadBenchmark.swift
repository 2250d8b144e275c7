import Foundation
import Glibc
import Hosts

/// Downloads to files, beside curl(1) on the same disk.
enum DownloadBenchmark {
    /// Measures a download of 2 GiB.
    static func run(_ programs: LoadPrograms, _ isQuick: Bool) throws -> [Row] {
        let servers = try LoopbackServers()
        let file = servers.folder.file("download")
        let download = Download(files: [file], size: 1 << 31)
        return try compare(
            "2 GiB to disk", download, ["curl", "--silent", "--fail", "--output", file, servers.huge], "curl -o",
            [programs.session, "download", servers.huge, file], rounds: isQuick ? 1 : 5, peakAtMost: 30 * 1024)
    }

    /// Measures 100 downloads of 10 MiB, all at a time.
    static func runParallel(_ programs: LoadPrograms, _ isQuick: Bool) throws -> [Row] {
        let servers = try LoopbackServers()
        let number = 100
        let folder = servers.folder.file("downloads")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        let download = Download(files: (0..<number).map { "\(folder)/\($0)" }, size: 10 << 20)
        let options = download.files.map { "url = \"\(servers.tenMebibytes)\"\noutput = \"\($0)\"\n" }
        let configuration = servers.folder.file("curl")
        try Data(options.joined().utf8).write(to: URL(fileURLWithPath: configuration))
        // With --parallel, --silent alone leaves the meter.
        let curl = [
            "curl", "--parallel", "--parallel-max", "\(number)", "--silent", "--no-progress-meter", "--fail", "--config",
            configuration,
        ]
        return try compare(
            "\(number) parallel downloads of 10 MiB", download, curl, "curl --parallel",
            [programs.session, "parallel", servers.tenMebibytes, "\(number)", folder], rounds: isQuick ? 1 : 5, peakAtMost: nil)
    }

    private static func compare(
        _ name: String, _ download: Download, _ curl: [String], _ curlName: String, _ session: [String], rounds: Int,
        peakAtMost: Double?
    ) throws -> [Row] {
        var (limits, runs) = ([Download.Run](), [Download.Run]())
        for _ in 0..<rounds {
            limits.append(try download.run(curl))
            runs.append(try download.run(session))
        }
        let peaks = try runs.map { run in
            guard let peak = run.output.split(separator: " ").last.flatMap({ Double($0) }) else {
                throw BenchmarkError("\(session[0]): \(run.output)")
            }
            return peak
        }
        let median = { (runs: [Download.Run], value: (Download.Run) -> Double) in Distribution(runs.map(value)).median }
        return [
            .against(
                "\(name): processor time, median of \(rounds)", median(runs, \.time), median(limits, \.time), milliseconds,
                curlName, atMost: 1.15),
            // curl leaves writing the file to the kernel. HTTPSession waits for the disk before it renames the file.
            .against("\(name): wall time", median(runs, \.wall), median(limits, \.wall), seconds, curlName, atMost: nil),
            .bound("\(name): peak resident memory", peaks.max() ?? 0, mebibytes, atMost: peakAtMost),
        ]
    }

    /// The files that a program has to download, and their size.
    private struct Download {
        let files: [String]
        let size: Int

        /// The processor time of the whole process and the wall time, in nanoseconds, and the last line of the output.
        typealias Run = (time: Double, wall: Double, output: String)

        /// Runs a program that downloads the files. Dirty pages of earlier runs are written before the clock starts, and the files
        /// are removed afterwards. - Throws: if a file has another size.
        func run(_ command: [String]) throws -> Run {
            try useMemory()
            sync()
            let start = Clock.now()
            let child = try Child(command, output: .lines)
            let (code, time, _) = child.waitWithUsage()
            let wall = Double(Clock.now() - start)
            for file in files {
                var status = stat()
                guard code == 0, stat(file, &status) == 0, status.st_size == size else {
                    throw BenchmarkError("\(command[0]): exit code \(code), \(file) has \(status.st_size) bytes")
                }
                unlink(file)
            }
            return (time, wall, child.output.last?.text ?? "")
        }

        /// Fills as much of the page cache as the files will, and frees it. The host of a virtual machine takes back free memory of its guest after
        /// two seconds (free page reporting). A program that gets such memory waits for the return of each page.
        private func useMemory() throws {
            let path = (files[0] as NSString).deletingLastPathComponent + "/memory"
            let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw BenchmarkError("\(path): errno \(errno)") }
            defer {
                close(descriptor)
                unlink(path)
            }
            let piece = [UInt8](repeating: 0, count: 1 << 20)
            // Half more than the files: other programs use memory too.
            for _ in 0..<size * files.count / piece.count * 3 / 2 {
                guard write(descriptor, piece, piece.count) == piece.count else {
                    throw BenchmarkError("\(path): errno \(errno)")
                }
            }
        }
    }
}
