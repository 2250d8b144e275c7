import Foundation
import Glibc
import Hosts

/// The memory of a small client, and the time until a program that was just started has the first byte of a file.
enum SmallBenchmark {
    static func run(_ programs: LoadPrograms, _ isQuick: Bool) throws -> [Row] {
        let servers = try LoopbackServers()
        func peak(_ program: String) throws -> Double {
            try (0..<(isQuick ? 1 : 5)).map { _ in
                try LoadRun([program, "json", servers.document, "1000"], count: 1).numbers[0]
            }.max() ?? 0
        }
        let starts = try (0..<(isQuick ? 5 : 20)).map { _ in
            try firstByte([programs.netwatch, "get", "-q", "-o"], servers.kibibyte, in: servers.folder)
        }
        let curl = try (0..<(isQuick ? 5 : 20)).map { _ in
            try firstByte(["curl", "--silent", "--fail", "-o"], servers.kibibyte, in: servers.folder)
        }
        return [
            .bound("1,000 JSON requests: peak resident memory", try peak(programs.session), mebibytes, atMost: 28 * 1024),
            .bound(
                "1,000 JSON requests, static Swift library: peak resident memory", try peak(programs.staticSession), mebibytes,
                atMost: 28 * 1024),
            .bound(
                "netwatch get: start → first byte in the file, median of \(starts.count)", Distribution(starts).median,
                beside: Distribution(curl).median, milliseconds, "curl -o", atMost: 40e6),
        ]
    }

    /// Downloads a file into an empty folder. - Returns: the nanoseconds from the program's start until the first byte was written.
    private static func firstByte(_ command: [String], _ url: String, in work: WorkFolder) throws -> Double {
        let folder = work.file("start")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let watch = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
        guard watch >= 0, inotify_add_watch(watch, folder, UInt32(IN_MODIFY)) >= 0 else {
            throw BenchmarkError("inotify: errno \(errno)")
        }
        defer { close(watch) }
        let start = Clock.now()
        let child = try Child(command + ["\(folder)/1k", url])
        var elapsed: Double?
        while elapsed == nil {
            var waiting = pollfd(fd: watch, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, 10_000) == 1 else { break }
            var events = [UInt8](repeating: 0, count: 4096)
            _ = read(watch, &events, events.count)
            // The event may be that of an empty file, or of netwatch's sidecar.
            if hasContent("\(folder)/1k.netwatch-part") || hasContent("\(folder)/1k") { elapsed = Double(Clock.now() - start) }
        }
        if elapsed == nil { kill(child.processID, SIGTERM) }
        let code = child.wait()
        guard let elapsed, code == 0 else { throw BenchmarkError("\(command[0]) \(command[1]): exit code \(code)") }
        return elapsed
    }

    private static func hasContent(_ file: String) -> Bool {
        var status = stat()
        return stat(file, &status) == 0 && status.st_size > 0
    }
}
