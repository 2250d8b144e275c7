internal import Pacing

/// What a job has reported.
package struct HeartbeatReport: Hashable, Sendable, Codable {
    /// The kind of a report.
    package enum Kind: Hashable, Sendable, Codable {
        case started
        case succeeded
        /// The job has failed, with the exit code of its process if that is known.
        case failed(code: Int32?)
    }

    /// The most bytes of a text that a report has: its end, where errors are.
    package static let textLimit = 10_240

    package var kind: Kind
    /// What the job has written, at most ``textLimit`` bytes; empty for nothing.
    package var text: String
    /// The time of the event in nanoseconds since 1970, if the report has waited for its delivery; `nil` for now.
    package var time: Int64?

    /// Creates a report. Of a longer text, the end is kept.
    package init(_ kind: Kind, text: String = "", time: Int64? = nil) {
        (self.kind, self.time) = (kind, time)
        self.text = Self.cut(text, to: Self.textLimit)
    }

    private static func cut(_ text: String, to limit: Int) -> String {
        guard text.utf8.count > limit else { return text }
        // Not within a character.
        return String(decoding: text.utf8.suffix(limit).drop { $0 & 0xc0 == 0x80 }, as: UTF8.self)
    }

    /// The report as it is remembered, and as causes have it: with the end of its text, if that explains a failure.
    var remembered: HeartbeatReport {
        if case .failed = kind { return HeartbeatReport(kind, text: Self.cut(text, to: 1_024), time: time) }
        return HeartbeatReport(kind, time: time)
    }
}

/// What is remembered of a job, so that a later process continues with it. Times are in nanoseconds since 1970.
package struct HeartbeatMemory: Hashable, Sendable, Codable {
    /// The schedule by which ``expected`` was computed.
    package var schedule: String
    package var status: String
    /// The code of the cause; `nil` without one.
    package var code: String?
    /// The last report, and the end of the last run; `nil` before the first one.
    package var sign: Int64?
    package var ended: Int64?
    /// The start of the present run; `nil` if nothing runs.
    package var started: Int64?
    /// The time at which the next report is expected.
    package var expected: Int64
    /// The end of a time in which reports may have been missed; `nil` for none.
    package var missedUntil: Int64?
    /// Whether the present run has overrun.
    package var hasOverrun: Bool
    /// The last end of a run; `nil` if none has ended.
    package var last: HeartbeatReport?

    package init(
        schedule: String, status: String, code: String?, sign: Int64?, ended: Int64?, started: Int64?, expected: Int64,
        missedUntil: Int64?, hasOverrun: Bool, last: HeartbeatReport?
    ) {
        (self.schedule, self.status, self.code) = (schedule, status, code)
        (self.sign, self.ended, self.started) = (sign, ended, started)
        (self.expected, self.missedUntil, self.hasOverrun, self.last) = (expected, missedUntil, hasOverrun, last)
    }
}

/// What an earlier process remembers of jobs.
package struct HeartbeatMemories: Hashable, Sendable {
    /// A job: its name, and what distinguishes several targets of the same name.
    package struct Job: Hashable, Sendable {
        package var endpoint: Endpoint
        /// The SHA-256 of its token, in hexadecimal digits.
        package var token: String

        package init(_ endpoint: Endpoint, token: String) { (self.endpoint, self.token) = (endpoint, token) }

        package init(_ endpoint: Endpoint, _ settings: ProbeSettings) {
            let digits = Array("0123456789abcdef")
            let token = settings.heartbeat.tokenDigest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
            self.init(endpoint, token: String(token))
        }
    }

    private struct Known: Hashable, Sendable {
        var token: String
        var memory: HeartbeatMemory
    }

    private var jobs: [Endpoint: [Known]] = [:]
    /// The time since which that process did not run, in nanoseconds since 1970; `nil` if it is not known.
    package var absentSince: Int64?

    package init(_ jobs: [Job: HeartbeatMemory] = [:], absentSince: Int64? = nil) {
        self.absentSince = absentSince
        for (job, memory) in jobs { self.jobs[job.endpoint, default: []].append(Known(token: job.token, memory: memory)) }
    }

    /// What is remembered of a job, also if it has another token now and no other job has its name.
    subscript(job: Job) -> HeartbeatMemory? {
        let known = jobs[job.endpoint] ?? []
        return known.first { $0.token == job.token }?.memory ?? (known.count == 1 ? known[0].memory : nil)
    }
}

/// What is known of a job's last run.
package struct HeartbeatFacts: ProbeFacts {
    package enum Outcome: String, Hashable, Sendable, Codable {
        case success, failure, late, overrun
    }

    package private(set) var outcome: Outcome?
    /// The exit code of the job's process; `nil` if it is not known.
    package private(set) var code: Int32?
    /// What the job has written.
    package private(set) var text: String?
    /// The time from the start to the end of the run in nanoseconds; `nil` if the start was not reported.
    package private(set) var nanoseconds: Int64?
    /// The time at which the next report is expected, in nanoseconds since 1970; `nil` if it is not known.
    package var next: Int64?

    package init() {}

    init(_ outcome: Outcome, code: Int32? = nil, text: String = "", nanoseconds: Int64? = nil) {
        (self.outcome, self.code, self.nanoseconds) = (outcome, code, nanoseconds)
        self.text = text.isEmpty ? nil : text
    }

    private enum CodingKeys: String, CodingKey {
        case outcome = "heartbeatOutcome"
        case code = "heartbeatCode"
        case text = "heartbeatText"
        case nanoseconds = "heartbeatNanoseconds"
        case next = "heartbeatNext"
    }

    package var isEmpty: Bool { outcome == nil }

    package func checkRanges() throws(RecordedNumberError) {
        try RecordedRanges.check("heartbeatNanoseconds", nanoseconds, RecordedRanges.nanoseconds)
    }

    /// The duration of the run; `nil` if its start was not reported.
    package var duration: Duration? { nanoseconds.map { .nanoseconds($0) } }

    var sentence: String {
        let time = nanoseconds.map { " after \(HeartbeatText.duration($0))" } ?? ""
        switch outcome {
        case .success, nil: return "the job has ended\(time), and reported success"
        case .failure: return "the job has failed\(time)" + (code.map { ", with the exit code \($0)" } ?? "")
        case .late: return "no report has come in time"
        case .overrun: return "the job has begun, and has not ended in its time"
        }
    }

    var evidence: [String: Cause.Evidence] {
        var evidence: [String: Cause.Evidence] = [:]
        evidence["exit_code"] = code.map { .number(Int($0)) }
        evidence["duration_ms"] = nanoseconds.map { .number(Int($0 / 1_000_000)) }
        evidence["next_report"] = next.map { .text(HeartbeatText.time($0)) }
        evidence["output"] = text.map { .text($0) }
        return evidence
    }
}

extension ProbeReport {
    /// Whether the job of a `heartbeat:` target runs; `nil` for other targets.
    package var job: JobPhase? {
        levels?.facts[HeartbeatFacts.self].outcome.map { $0 == .overrun ? .running : .idle }
    }
}

/// Times in sentences about jobs.
enum HeartbeatText {
    /// Returns a duration with its two largest units, rounded down: `26 h 10 min`.
    static func duration(_ nanoseconds: Int64) -> String {
        guard nanoseconds >= 1_000_000_000 else { return "\(max(0, nanoseconds) / 1_000_000) ms" }
        let seconds = nanoseconds / 1_000_000_000
        let units: [(size: Int64, name: String)] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")]
        // Up to two days in hours, as people say them.
        let first = seconds >= 2 * 86_400 ? 0 : seconds >= 3_600 ? 1 : seconds >= 60 ? 2 : 3
        let large = "\(seconds / units[first].size) \(units[first].name)"
        guard first < 3 else { return large }
        let rest = seconds % units[first].size / units[first + 1].size
        return rest == 0 ? large : "\(large) \(rest) \(units[first + 1].name)"
    }

    /// Returns a time to the second: `2026-12-01T03:00:00Z`.
    static func time(_ nanoseconds: Int64) -> String { "\(Timestamp.text(wallClockNanoseconds: nanoseconds).prefix(19))Z" }
}
