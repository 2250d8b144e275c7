import Foundation
import Glibc

/// What this process has taken so far.
package enum OwnFigures {
    /// User and system time of all threads, in seconds.
    package static var processorSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Resident memory in KiB.
    package static var residentKibibytes: Int { status("VmRSS:") }
    /// The most resident memory so far, in KiB: of this program, where getrusage(2) counts that of the one which started it too.
    package static var peakKibibytes: Int { status("VmHWM:") }

    private static func status(_ name: String) -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
        return line.flatMap { $0.split { !$0.isNumber }.last }.flatMap { Int($0) } ?? 0
    }
}
