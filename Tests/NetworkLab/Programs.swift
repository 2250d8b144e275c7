import Foundation

/// The programs that the package built. They are found beside the test bundle, or in the directory `NETWATCH_PROGRAMS`.
public enum Programs {
    /// The path of the built `netwatch`.
    public static var netwatch: String {
        get throws { try built("netwatch") }
    }

    /// The path of a program that this build made.
    public static func built(_ name: String) throws -> String {
        let bundles = CommandLine.arguments.filter { $0.hasSuffix(".xctest") } + ["/proc/self/exe"]
        let beside = bundles.map { URL(fileURLWithPath: $0).resolvingSymlinksInPath().deletingLastPathComponent().path }
        let folders = ProcessInfo.processInfo.environment["NETWATCH_PROGRAMS"].map { [$0] } ?? beside
        for folder in folders where FileManager.default.isExecutableFile(atPath: "\(folder)/\(name)") {
            return "\(folder)/\(name)"
        }
        throw LabError("\(name): not built: looked in \(folders.joined(separator: ", "))")
    }
}
