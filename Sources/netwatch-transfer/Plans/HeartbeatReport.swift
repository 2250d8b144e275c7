import Console
import FoundationEssentials
import Reachability

/// A report of a job to a service: it has started, or how it has ended.
struct HeartbeatReport: Hashable, Sendable {
    /// The event that is reported, which is the last segment of the path.
    enum Outcome: Hashable, Sendable {
        case start
        case success
        case fail
        /// The exit code of a command, 0 to 255. 0 is a success.
        case code(Int)

        /// The segment of the path; `nil` for a success, which has none.
        var segment: String? {
            switch self {
            case .start: "start"
            case .success: nil
            case .fail: "fail"
            case .code(let code): "\(code)"
            }
        }

        /// Creates the outcome of a segment; `nil` for a text that is no segment.
        init?(segment: String?) {
            switch segment {
            case nil: self = .success
            case "start": self = .start
            case "fail": self = .fail
            case let digits?:
                guard let code = Int(digits), Self.codes.contains(code), "\(code)" == digits else { return nil }
                self = .code(code)
            }
        }

        static let codes = 0...255
    }

    /// The name of the heartbeat, as ``isName(_:)`` allows it.
    var name: String
    var outcome: Outcome
    /// The time of the event in nanoseconds since 1970.
    var time: Int64
    /// The text that the service keeps, at most ``OutputTail/limit`` bytes.
    var body: String

    /// Whether a service can have a job of this name: it is the name of a target.
    static func isName(_ text: String) -> Bool { (try? Endpoint("heartbeat:\(text)"))?.scheme == .heartbeat }

    /// Returns the path and the query of the request. A late report has its time; the service takes the time of arrival for others.
    func target(isLate: Bool) -> String {
        let path = (["/api/v1/heartbeat", name] + [outcome.segment].compactMap { $0 }).joined(separator: "/")
        return isLate ? "\(path)?at=\(Timestamp.text(wallClockNanoseconds: time))" : path
    }
}

/// The form of a report in a file. It has no token.
extension HeartbeatReport: Codable {
    private enum CodingKeys: String, CodingKey { case name, outcome, time, body }

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        name = try values.decode(String.self, forKey: .name)
        time = try values.decode(Int64.self, forKey: .time)
        body = try values.decode(String.self, forKey: .body)
        guard let outcome = Outcome(segment: try values.decodeIfPresent(String.self, forKey: .outcome)), Self.isName(name) else {
            throw DecodingError.dataCorruptedError(forKey: .outcome, in: values, debugDescription: "no outcome of a job")
        }
        self.outcome = outcome
    }

    func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(name, forKey: .name)
        try values.encodeIfPresent(outcome.segment, forKey: .outcome)
        try values.encode(time, forKey: .time)
        try values.encode(body, forKey: .body)
    }
}
