import Glibc

/// Measurements of this process so far.
package enum OwnFigures {
    /// The user and system time of all threads, in seconds.
    package static var processorSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// The resident memory in KiB.
    package static var residentKibibytes: Int { status("VmRSS:") }
    /// The peak resident memory of this program so far, in KiB. getrusage(2) would include that of the program that started it.
    package static var peakKibibytes: Int { status("VmHWM:") }

    // Foundation is avoided here, since its pages would be counted too.
    private static func status(_ name: String) -> Int {
        let descriptor = open("/proc/self/status", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return 0 }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = max(0, read(descriptor, &bytes, bytes.count))
        let line = bytes[..<count].split(separator: UInt8(ascii: "\n")).first { $0.starts(with: name.utf8) }
        let digits = line?.filter { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ?? []
        return Int(String(decoding: digits, as: UTF8.self)) ?? 0
    }
}
