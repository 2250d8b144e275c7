import Console
import Glibc
import Reachability

/// The program that transfers: this one becomes it. It loads libcurl and Foundation, 41 MB; a monitor stays below 25 MB.
enum TransferProgram {
    static let name = "netwatch-transfer"
    static let commands: Set<String> = ["get", "put"]

    /// What the other program is called with for these arguments; `nil`: they are this program's own.
    static func arguments(of arguments: [String]) -> [String]? {
        guard let first = arguments.first else { return nil }
        if commands.contains(first) { return arguments }
        guard first == "help", arguments.count > 1, commands.contains(arguments[1]) else { return nil }
        return [arguments[1], "--help"]
    }

    /// Where it is looked for, given where this program is.
    static func places(besides program: String) -> [String] {
        let directory = program.lastIndex(of: "/").map { String(program[..<$0]) } ?? "."
        return ["\(directory)/\(name)", "\(directory)/../libexec/netwatch/\(name)"]
    }

    /// Comes back only with what went wrong.
    static func replaceThisProgram(_ arguments: [String]) -> Failure {
        let places = places(besides: executable ?? CommandLine.arguments.first ?? "")
        guard let program = places.first(where: { access($0, X_OK) == 0 }) else {
            let words =
                "the program \(name) is missing: looked for \(places.joined(separator: " and ")); install it beside netwatch"
            return Failure(ExitCode.unavailable, "\(arguments.first ?? ""): \(words)")
        }
        let number = OpenDescriptors.execute([program] + arguments)
        return Failure(ExitCode.unavailable, "\(program): cannot run: \(errorText(number))")
    }

    private static var executable: String? {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        guard count > 0 else { return nil }
        return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
