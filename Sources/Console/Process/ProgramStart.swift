internal import CProcess
import Glibc
import Reachability

/// The start of the process: its arguments and its path, also without /proc, and the report of its crashes.
package enum ProgramStart {
    /// The arguments behind the program's name.
    ///
    /// `CommandLine` reads /proc/self/cmdline and is empty where /proc is not mounted, as if the user had typed nothing.
    /// - Throws: ``Failure`` with code 71 where neither C nor /proc has them.
    package static func arguments() throws(Failure) -> [String] {
        let arguments = argumentsOfC ?? CommandLine.arguments
        guard !arguments.isEmpty else {
            throw Failure(ExitCode.system, "arguments: the system does not hand them over; mount /proc")
        }
        return Array(arguments.dropFirst())
    }

    private static var argumentsOfC: [String]? {
        guard let values = netwatch_arguments(), netwatch_argument_count() > 0 else { return nil }
        return (0..<Int(netwatch_argument_count())).compactMap { index in values[index].map { String(cString: $0) } }
    }

    /// The path of this program: that of its file where /proc has it, else the path that it was executed by, which may be relative.
    /// Empty where neither is known. Never `argv[0]`, which is whatever the caller likes.
    package static var executable: String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        if count > 0 { return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) }
        return netwatch_executed_path().map { String(cString: $0) } ?? ""
    }

    /// Writes a short backtrace to standard error when the program crashes or receives SIGQUIT; it ends by the signal within a second.
    package static func reportCrashes() { netwatch_report_crashes() }

    /// Hands the signals to a program that takes this one's place as this one's starter had set them.
    static func restoreIgnoredCrashes() { netwatch_restore_ignored_crashes() }
}
