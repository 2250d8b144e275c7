import Foundation

/// The programs that the tests and scripts start: `laboratory chaos …`, `laboratory verdicts …`, `laboratory incidents …`,
/// `laboratory durable-client …`, `laboratory streams …`.
///
/// One program, because each executable of the package is linked with everything that it uses.
@main
enum Laboratory {
    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst(2))
        switch CommandLine.arguments.dropFirst().first {
        case "chaos": try await Chaos.main(arguments)
        case "verdicts": try await Verdicts.main(arguments)
        case "incidents": try await SharedFaults.main(arguments)
        case "durable-client": try await DurableClient.main(arguments)
        case "streams": try await Streams.main(arguments)
        default:
            FileHandle.standardError.write(
                Data("usage: laboratory chaos|verdicts|incidents|durable-client|streams [ARGUMENTS]\n".utf8))
            exit(64)
        }
    }
}
