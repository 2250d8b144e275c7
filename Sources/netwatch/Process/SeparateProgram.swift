import Console
import Glibc
import Reachability

/// A program that implements some commands of netwatch, and that replaces this one by exec. A monitor then loads none of its libraries,
/// and stays below 25 MB.
struct SeparateProgram: Hashable {
    /// The program for transfers, which loads libcurl.
    static let transfer = SeparateProgram(name: "netwatch-transfer")
    /// The program for the service, which loads all of Foundation.
    static let service = SeparateProgram(name: "netwatch-service")

    let name: String

    /// Returns the paths at which the program may be, relative to this program.
    ///
    /// A path without a slash names no directory: the shell found it in PATH, and the working directory may belong to another
    /// user.
    func places(besides program: String) -> [String] {
        guard let slash = program.lastIndex(of: "/") else { return [] }
        let directory = program[..<slash]
        return ["\(directory)/\(name)", "\(directory)/../libexec/netwatch/\(name)"]
    }

    /// Replaces this program. Returns only if that failed.
    func replaceThisProgram(_ arguments: [String]) -> Failure {
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
        // SIGHUP asks the service to load its configuration. Until it handles the signal, it would end the program.
        if arguments.first == "serve" { Signals.block(SIGHUP) }
        let number = OpenDescriptors.execute([program] + arguments)
        return Failure(ExitCode.unavailable, "\(program): cannot run: \(errorText(number))")
    }
}
