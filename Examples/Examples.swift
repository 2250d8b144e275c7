import Foundation

/// The examples of the documents: `Examples LIBRARY ARGUMENTS`. Without arguments of its own, each library's examples print what they can show.
@main struct Examples {
    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst(2))
        switch CommandLine.arguments.dropFirst().first {
        case "Reachability": try await ReachabilityExamples.main(arguments)
        case "ReachabilityTestKit": try await ReachabilityTestKitExamples.main(arguments)
        case "HTTPSession": try await HTTPSessionExamples.main(arguments)
        case "HTTPSessionTestKit": try await HTTPSessionTestKitExamples.main(arguments)
        case "HTTPSessionFoundation": try await HTTPSessionFoundationExamples.main(arguments)
        case "HTTPSessionCompatibility": try await HTTPSessionCompatibilityExamples.main(arguments)
        case "HTTPSessionJournal": try await HTTPSessionJournalExamples.main(arguments)
        default:
            FileHandle.standardError.write(
                Data("usage: Examples LIBRARY [ARGUMENTS]; the libraries are the folders of Examples/\n".utf8))
            exit(64)
        }
    }
}
