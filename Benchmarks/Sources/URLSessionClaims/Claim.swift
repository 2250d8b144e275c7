import Foundation

/// What was said about URLSession on Linux, and the program that shows whether it is so.
struct Claim: Sendable {
    let name: String
    let text: String
    /// Where it was read, below Sources/FoundationNetworking of swift-corelibs-foundation.
    let source: String
    /// Whether the process ends when the claim holds.
    var endsProcess = false
    /// What the child's environment has besides.
    var environment: [String: String] = [:]
    /// A command that the child is run by.
    var wrapper: [String] = []
    let check: @Sendable () throws -> Finding

    static let all: [Claim] = redirects + cache + downloads + authentication + timeouts + reports + trust + sessions
}

/// What came out.
struct Finding: Sendable {
    enum Verdict: String, Sendable {
        case confirmed
        case refuted
        /// The process ended where nobody had claimed that.
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
