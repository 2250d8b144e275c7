import Foundation

/// The programs that the tests and scripts start: `laboratory chaos …`, `laboratory verdicts …`, `laboratory durable-client …`.
///
/// One program, because each executable of the package is linked with everything that it uses.
@main
enum Laboratory {
    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst(2))
        switch CommandLine.arguments.dropFirst().first {
        case "chaos": try await Chaos.main(arguments)
        case "verdicts": try await Verdicts.main(arguments)
        case "durable-client": try await DurableClient.main(arguments)
        default:
            FileHandle.standardError.write(Data("usage: laboratory chaos|verdicts|durable-client [ARGUMENTS]\n".utf8))
            exit(64)
        }
    }
}
