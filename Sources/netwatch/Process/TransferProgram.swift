import Console
import Glibc
import Reachability

/// The program for transfers, which replaces this one by exec. It loads libcurl and OpenSSL; a monitor stays below 25
/// MB.
enum TransferProgram {
    static let name = "netwatch-transfer"
    static let commands: Set<String> = ["get", "put"]

    /// Returns the arguments for the transfer program; `nil` if this program handles the arguments itself.
    static func arguments(of arguments: [String]) -> [String]? {
        guard let first = arguments.first else { return nil }
        if commands.contains(first) { return arguments }
        guard first == "help", arguments.count > 1, commands.contains(arguments[1]) else { return nil }
        return [arguments[1], "--help"]
    }

    /// Returns the paths at which the transfer program may be, relative to this program.
    ///
    /// A path without a slash names no directory: the shell found it in PATH, and the working directory may belong to another
    /// user.
    static func places(besides program: String) -> [String] {
        guard let slash = program.lastIndex(of: "/") else { return [] }
        let directory = program[..<slash]
        return ["\(directory)/\(name)", "\(directory)/../libexec/netwatch/\(name)"]
    }

    /// Replaces this program. Returns only if that failed.
    static func replaceThisProgram(_ arguments: [String]) -> Failure {
        let places = places(besides: ProgramStart.executable)
        guard !places.isEmpty else {
            let message =
                "without /proc this program does not know its own directory; start it by its path, as in /usr/bin/netwatch"
            return Failure(ExitCode.unavailable, "\(arguments.first ?? ""): \(message)")
        }
        guard let program = places.first(where: { access($0, X_OK) == 0 }) else {
            let message =
                "the program \(name) is missing: searched \(places.joined(separator: " and ")); install it beside netwatch"
            return Failure(ExitCode.unavailable, "\(arguments.first ?? ""): \(message)")
        }
        let number = OpenDescriptors.execute([program] + arguments)
        return Failure(ExitCode.unavailable, "\(program): cannot run: \(errorText(number))")
    }
}
