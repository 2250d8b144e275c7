import Certificates
import EventLoop
import FoundationEssentials
import NIOCore
import Pacing
import Reachability

/// A request in which a job reports: `NAME[/TOKEN][/start|/fail|/CODE]`.
struct HeartbeatRequest {
    let name: String
    let token: String
    let report: HeartbeatReport

    /// Creates the request.
    ///
    /// - Parameters:
    ///   - path: the segments behind the route's own, percent-encoded.
    ///   - query: the query, which may have `at`: the time of a report that has waited for its delivery.
    ///   - authorization: the value of the field `Authorization`.
    ///   - content: the beginning of the content.
    ///   - now: the present time.
    /// - Throws: ``WebProblem``, which has no part of the path: a segment may be a token.
    init(
        path: some StringProtocol, query: String, authorization: String?, content: ByteBuffer, at now: Moment
    ) throws(WebProblem) {
        // A script may have a variable there that is not set.
        guard path.last != "/" else { throw WebProblem(.badRequest, "the last segment of the path is empty") }
        let segments = path.split(separator: "/").map { QueryParameters.decoded($0.utf8) }
        let bearer = Self.bearer(authorization)
        let named = bearer == nil ? 2 : 1
        guard let name = segments.first, segments.count <= named + 1 else {
            throw WebProblem(.notFound, "write /api/v1/heartbeat/NAME, with /TOKEN, and with /start, /fail or /CODE behind it")
        }
        let word = segments.count > named ? segments[named] : nil
        let parameters = QueryParameters(query)
        if let problem = parameters.problem { throw WebProblem(problem) }
        self.name = name
        token = bearer ?? (segments.count > 1 ? segments[1] : "")
        report = HeartbeatReport(
            try word.map(Self.kind) ?? .succeeded, text: String(decoding: content.readableBytesView, as: UTF8.self),
            time: try parameters["at"].map { text throws(WebProblem) in try Self.time(text, now) })
    }

    /// Returns what a segment says of the job.
    private static func kind(_ segment: String) throws(WebProblem) -> HeartbeatReport.Kind {
        switch segment {
        case "start": return .started
        case "fail": return .failed(code: nil)
        case let text where text.utf8.allSatisfy { 0x30...0x39 ~= $0 }:
            guard let code = Int32(text), code <= 255 else { throw WebProblem(.badRequest, "an exit code is at most 255") }
            return code == 0 ? .succeeded : .failed(code: code)
        // The name of a signal: systemd sets EXIT_STATUS to it.
        case let text where (2...8).contains(text.utf8.count) && text.utf8.allSatisfy { 0x41...0x5a ~= $0 || 0x30...0x39 ~= $0 }:
            return .failed(code: nil)
        default: throw WebProblem(.notFound, "write /start, /fail, or an exit code behind the name and the token")
        }
    }

    private static func bearer(_ authorization: String?) -> String? {
        guard let parts = authorization?.split(separator: " ", maxSplits: 1), parts.count == 2, parts[0].lowercased() == "bearer"
        else { return nil }
        return String(parts[1].drop { $0 == " " })
    }

    /// The most time for which a report may have waited for its delivery, in nanoseconds: 30 days.
    private static let longestDelay: Int64 = 2_592_000_000_000_000

    /// Returns the time of a delayed report in nanoseconds. The clock of the job's machine may be ahead by a minute.
    private static func time(_ text: String, _ now: Moment) throws(WebProblem) -> Int64 {
        // A plus sign in a query is a space.
        let text = text.count > 20 && text.dropLast(5).last == " " ? "\(text.dropLast(6))+\(text.suffix(5))" : text
        guard let time = try? LocalTime(text), time.offsetMinutes != nil else {
            throw WebProblem(.badRequest, "at: write a time as in 2026-12-01T02:00:00Z")
        }
        let nanoseconds = time.time { _ in 0 }.multipliedSaturated(by: 1_000_000)
        guard nanoseconds <= now.wallClockNanoseconds.addingSaturated(60_000_000_000) else {
            throw WebProblem(.badRequest, "at: is in the future")
        }
        guard nanoseconds >= now.wallClockNanoseconds.addingSaturated(-longestDelay) else {
            throw WebProblem(.badRequest, "at: is more than 30 days ago")
        }
        return nanoseconds
    }
}

/// The jobs that report in, and their tokens. Requests come on the threads of the web server, configurations on that of the keeper.
final class HeartbeatDesk: Sendable {
    /// A job of the configuration.
    struct Job: Sendable {
        /// The number of its target at the monitor.
        var target: TargetID
        /// The SHA-256 of its token.
        var digest: [UInt8]
    }

    private struct State: Sendable {
        var jobs: [String: [Job]] = [:]
        var rates: [TargetID: TokenBucket] = [:]
        var isClosed = false
        var deliver: (@Sendable (HeartbeatReport, TargetID) -> Void)?
        var isChanged = false
    }

    /// A job may report twice a second, and thirty times at once.
    private static let rate = TokenBucket(intervalNanoseconds: 500_000_000, burst: 30)

    private let state = Locked(State())

    init() {}

    /// Sets the receiver of reports, which must not block.
    func deliver(to body: @escaping @Sendable (HeartbeatReport, TargetID) -> Void) { state.withLock { $0.deliver = body } }

    /// Replaces the jobs, by their names in lower case. Several targets may be the same job.
    func set(_ jobs: [String: [Job]]) {
        state.withLock { state in
            state.jobs = jobs
            let targets = Set(jobs.values.joined().map(\.target))
            state.rates = state.rates.filter { targets.contains($0.key) }
        }
    }

    /// Refuses all reports from now on, because the service ends.
    func close() { state.withLock { $0.isClosed = true } }

    /// Whether a job has reported since the last call.
    func takeChange() -> Bool {
        state.withLock { state in
            defer { state.isChanged = false }
            return state.isChanged
        }
    }

    /// Passes on the report of a request.
    ///
    /// - Throws: ``WebProblem``: one answer, after the same work, for a name that nothing has and for a wrong token.
    func receive(_ request: HeartbeatRequest, at now: Moment) throws(WebProblem) {
        let name = request.name.lowercased()
        let digest = Self.digest(of: request.token) ?? []
        let jobs = state.withLock { $0.jobs[name] } ?? [Job(target: TargetID(0), digest: Self.noDigest)]
        let known = jobs.filter { Self.isEqual(digest, $0.digest) }
        guard !known.isEmpty else { throw WebProblem(.notFound, "no job has this name and this token") }
        try state.withLock { state throws(WebProblem) in
            guard let deliver = state.deliver, !state.isClosed else {
                throw WebProblem(.unavailable, state.isClosed ? "the service ends" : "the service is starting")
            }
            for job in known {
                guard state.rates[job.target, default: Self.rate].consume(now: now.monotonicNanoseconds) else {
                    throw WebProblem(.tooManyRequests, "the job reports more than twice a second")
                }
            }
            // Under the lock, so that none is delivered after the service has begun to end.
            for job in known { deliver(request.report, job.target) }
            state.isChanged = true
        }
    }

    /// Returns the SHA-256 of a token, as which it is kept; `nil` if OpenSSL fails.
    static func digest(of token: String) -> [UInt8]? { DigestHasher.sha256(of: Data(token.utf8)).map(Array.init) }

    /// The digest of no known token, with which that of an unknown job is compared.
    private static let noDigest = [UInt8](repeating: 0, count: 32)

    /// Compares in a time that does not depend on the bytes.
    private static func isEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        guard one.count == other.count else { return false }
        return zip(one, other).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
