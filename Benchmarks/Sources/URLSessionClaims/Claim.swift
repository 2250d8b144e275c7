import Foundation

/// A claim about URLSession on Linux, and the program that checks it.
struct Claim: Sendable {
    let name: String
    let text: String
    /// The source of the claim, below Sources/FoundationNetworking of swift-corelibs-foundation.
    let source: String
    /// True if the process ends when the claim holds.
    var endsProcess = false
    /// Additional environment variables of the child.
    var environment: [String: String] = [:]
    /// A command that runs the child.
    var wrapper: [String] = []
    let check: @Sendable () throws -> Finding

    static let all: [Claim] = redirects + cache + downloads + authentication + timeouts + reports + trust + sessions
}

/// The result of a claim's program.
struct Finding: Sendable {
    enum Verdict: String, Sendable {
        case confirmed
        case refuted
        /// The process ended although the claim does not say so.
        case worse = "ends the process"
        case undecided
    }

    let verdict: Verdict
    let seen: String

    init(_ verdict: Verdict, _ seen: String) {
        self.verdict = verdict
        self.seen = seen.replacing("\n", with: " ")
    }

    init(_ isConfirmed: Bool, _ seen: String) {
        self.init(isConfirmed ? .confirmed : .refuted, seen)
    }
}
