internal import CProcess
import Glibc
import Reachability

/// The program's arguments and its path, also without /proc, and its crash reports.
package enum ProgramStart {
    /// Returns the arguments after the program's name.
    ///
    /// `CommandLine` reads /proc/self/cmdline. If /proc is not mounted it is empty, as if the user had given no arguments.
    /// - Throws: ``Failure`` with code 71 if neither the C library nor /proc has them.
    package static func arguments() throws(Failure) -> [String] {
        let arguments = argumentsOfC ?? CommandLine.arguments
        guard !arguments.isEmpty else {
            throw Failure(ExitCode.system, "arguments: the system does not provide them; mount /proc")
        }
        return Array(arguments.dropFirst())
    }

    private static var argumentsOfC: [String]? {
        guard let values = netwatch_arguments(), netwatch_argument_count() > 0 else { return nil }
        return (0..<Int(netwatch_argument_count())).compactMap { index in values[index].map { String(cString: $0) } }
    }

    /// The path of this program's file if /proc has it. Otherwise it is the path with which the program was executed, which may
    /// be relative. Empty if neither is known. `argv[0]` is not used, because the caller may set it to anything.
    package static var executable: String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        if count > 0 { return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) }
        return netwatch_executed_path().map { String(cString: $0) } ?? ""
    }

    /// Installs the crash reports. On a crash or SIGQUIT the program writes a short backtrace to standard error, and ends by the
    /// signal within a second.
    package static func reportCrashes() { netwatch_report_crashes() }

    /// Restores the dispositions of crash signals at the start, before another program replaces this one.
    static func restoreIgnoredCrashes() { netwatch_restore_ignored_crashes() }
}
