import Foundation
import Glibc

/// Measurements of a running process from proc(5), for all threads together.
struct ProcessFigures {
    let processID: Int32

    private var threads: [String] {
        let folder = "/proc/\(processID)/task"
        return ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).map { "\(folder)/\($0)" }
    }

    private func text(_ path: String) -> String {
        (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    }

    private func field(_ name: String, in path: String) -> Int {
        let line = text(path).split(separator: "\n").first { $0.hasPrefix(name + ":") }
        return line.flatMap { $0.split { !$0.isNumber }.last.flatMap { Int($0) } } ?? 0
    }

    /// The time on a processor, user and system, in nanoseconds. It comes from the scheduler, since the ticks of /proc/PID/stat
    /// are coarse.
    var processorTime: Int64 {
        threads.reduce(0) { sum, thread in
            sum + (text("\(thread)/schedstat").split(separator: " ").first.flatMap { Int64($0) } ?? 0)
        }
    }

    /// The number of times that a thread gave up its processor to wait.
    var voluntarySwitches: Int { threads.reduce(0) { $0 + field("voluntary_ctxt_switches", in: "\($1)/status") } }

    /// The resident memory in KiB.
    var residentKibibytes: Int { field("VmRSS", in: "/proc/\(processID)/status") }
    /// The peak resident memory so far, in KiB.
    var peakKibibytes: Int { field("VmHWM", in: "/proc/\(processID)/status") }

    /// Waits until the process has not run for `seconds`. - Returns: its processor time then.
    @discardableResult
    func awaitIdle(seconds: Double = 0.3) -> Int64 {
        var last = processorTime
        while true {
            usleep(UInt32(seconds * 1e6))
            let now = processorTime
            if now == last { return now }
            last = now
        }
    }
}
