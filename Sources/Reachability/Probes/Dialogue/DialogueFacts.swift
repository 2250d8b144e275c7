/// What a dialogue has found out.
package struct DialogueFacts: ProbeFacts {
    /// How a dialogue ended before its last step.
    enum Failure: Hashable, Sendable, Codable {
        /// The server has closed the connection.
        case closed
        /// Nothing that was awaited has come until the deadline.
        case deadline
        /// The server has answered that it will not.
        case refused(String)
        /// The server offers no TLS, for this reason.
        case withoutTLS(String)
        /// The bytes are none that the dialogue can have.
        case unreadable(String)
        /// The system has reported an errno, such as ECONNRESET.
        case systemError(Int32)
    }

    /// The number of steps that are done; `nil` without a dialogue.
    var done: Int?
    var failure: Failure?
    /// What the client was waiting for, in words; `nil` if it was not.
    var awaited: String?
    /// `true` if that was the server's consent to TLS, which the client has asked for; omitted otherwise.
    var asksForTLS: Bool?
    /// `true` if a refusal would have been recognized, so that other lines mean nothing; omitted otherwise.
    var knowsRefusals: Bool?
    /// The last lines that came instead, each shortened; `nil` for none.
    var others: [String]?
    /// The last line that was expected, shortened.
    var answer: String?
    /// The groups that expressions have captured; `nil` for none.
    var captures: [String: String]?

    private enum CodingKeys: String, CodingKey {
        case done = "dialogueDone"
        case failure = "dialogueFailure"
        case awaited = "dialogueAwaited"
        case asksForTLS = "dialogueAsksForTLS"
        case knowsRefusals = "dialogueKnowsRefusals"
        case others = "dialogueOthers"
        case answer = "dialogueAnswer"
        case captures = "dialogueCaptures"
    }

    package init() {}

    package var isEmpty: Bool { done == nil }

    package func checkRanges() throws(RecordedNumberError) {
        try RecordedRanges.check("dialogueDone", done, RecordedRanges.count)
        if case .systemError(let errno) = failure { try RecordedRanges.check("systemError", errno, RecordedRanges.errno) }
    }
}
