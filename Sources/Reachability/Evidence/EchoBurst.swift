internal import Pacing

/// ICMP echo requests to one address (RFC 792, RFC 4443 section 4), one or more in a row.
struct EchoBurst: ProbePlan {
    let scheme: Endpoint.Scheme
    /// The number of requests, at least 1.
    let count: Int
    /// The time between two requests in nanoseconds.
    let spacing: Int64
    /// The number of bytes after the ICMP header.
    let size: Int
    /// The hop limit of the requests; `nil` for the system's.
    let hopLimit: UInt8?
    /// Whether routers may not fragment the requests.
    let forbidsFragments: Bool

    var transport: ProbeTransport { .echo(self) }
}

/// The answers to the requests of a burst so far.
struct EchoAnswers: Hashable, Sendable {
    /// The number of requests that were sent.
    private(set) var sent = 0
    /// The round trips of the answers in nanoseconds, in the order of their requests; 0 without an answer.
    private(set) var roundTrips: [Int64] = []

    /// Notes that the next request was sent.
    mutating func noteSent() {
        sent = min(sent + 1, .max - 1)
        roundTrips.append(0)
    }

    /// Notes an answer to the request with this place in the burst. Returns whether it is the first one to it.
    mutating func receive(_ index: Int, roundTrip: Int64) -> Bool {
        guard roundTrips.indices.contains(index), roundTrips[index] == 0 else { return false }
        roundTrips[index] = max(roundTrip, 1)
        return true
    }

    private var answered: [Int64] { roundTrips.filter { $0 > 0 } }
    /// The number of requests that were answered.
    var received: Int { answered.count }
    /// The mean round trip in nanoseconds; `nil` without an answer.
    var mean: Int64? {
        let answered = answered
        guard !answered.isEmpty else { return nil }
        return answered.reduce(0) { $0.addingSaturated($1) } / Int64(answered.count)
    }
    /// The mean difference of two consecutive round trips in nanoseconds; `nil` with fewer than two answers.
    var jitter: Int64? {
        let answered = answered
        guard answered.count > 1 else { return nil }
        let sum = zip(answered, answered.dropFirst()).reduce(Int64(0)) { $0.addingSaturated(abs($1.0 - $1.1)) }
        return sum / Int64(answered.count - 1)
    }
    /// The least and the greatest round trip in nanoseconds; `nil` without an answer.
    var range: ClosedRange<Int64>? {
        guard let least = answered.min(), let greatest = answered.max() else { return nil }
        return least...greatest
    }
}

/// What a burst of echo requests has found out.
package struct EchoFacts: ProbeFacts {
    package private(set) var sent = 0
    package private(set) var received = 0
    /// In nanoseconds; `nil` without an answer.
    package private(set) var least: Int64?
    package private(set) var greatest: Int64?
    /// The mean difference of two consecutive round trips in nanoseconds; `nil` with fewer than two answers.
    package private(set) var jitter: Int64?

    package init() {}

    init(_ answers: EchoAnswers) {
        (sent, received, jitter) = (answers.sent, answers.received, answers.jitter)
        (least, greatest) = (answers.range?.lowerBound, answers.range?.upperBound)
    }

    private enum CodingKeys: String, CodingKey {
        case sent = "echoSent"
        case received = "echoReceived"
        case least = "echoLeast"
        case greatest = "echoGreatest"
        case jitter = "echoJitter"
    }

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        sent = try values.decodeIfPresent(Int.self, forKey: .sent) ?? 0
        received = try values.decodeIfPresent(Int.self, forKey: .received) ?? 0
        least = try values.decodeIfPresent(Int64.self, forKey: .least)
        greatest = try values.decodeIfPresent(Int64.self, forKey: .greatest)
        jitter = try values.decodeIfPresent(Int64.self, forKey: .jitter)
    }

    package var isEmpty: Bool { sent == 0 }

    package func checkRanges() throws(RecordedNumberError) {
        try RecordedRanges.check("echoSent", sent, 0..<1_024)
        try RecordedRanges.check("echoReceived", received, 0..<1_024)
        for time in [least, greatest, jitter] { try RecordedRanges.check("echo", time, RecordedRanges.nanoseconds) }
    }
}
