import Reachability

/// The limits from which a target that answers is degraded: the keys that the configuration has for all targets, for a class and for a
/// target. What is `nil` is left to the more general place.
struct TargetThresholds: Hashable, Sendable {
    /// A value that is set: a limit, or none.
    enum Limit<Value: Hashable & Sendable>: Hashable, Sendable {
        case unlimited
        case value(Value)

        /// The limit of ``QualityLimits``; `nil` without one.
        var limit: Value? { if case .value(let value) = self { value } else { nil } }
    }

    var loss: Limit<Double>?
    var roundTrip: Limit<Duration>?
    var responseTime: Limit<Duration>?
    var jitter: Limit<Duration>?
    var window: Int?

    static let keys = ["loss", "rtt", "response", "jitter", "window"]

    /// Replaces the values that are set here.
    func apply(to limits: inout QualityLimits) {
        if let loss { limits.loss = loss.limit }
        if let roundTrip { limits.roundTrip = roundTrip.limit }
        if let responseTime { limits.responseTime = responseTime.limit }
        if let jitter { limits.jitter = jitter.limit }
        if let window { limits.window = window }
    }
}

extension ConfigurationReader {
    /// Reads the limits of loss, times and jitter. - Parameter name: the name of the map in errors.
    mutating func thresholds(_ node: ConfigurationNode?, _ name: String) -> TargetThresholds {
        let members = members(node, name, keys: TargetThresholds.keys)
        func isNone(_ key: String) -> Bool { members[key]?.content == .scalar("none") }
        func time(_ key: String) -> TargetThresholds.Limit<Duration>? {
            isNone(key) ? .some(.unlimited) : duration(members[key], "\(name).\(key)").map { .value($0) }
        }
        var thresholds = TargetThresholds()
        thresholds.loss =
            isNone("loss")
            ? .some(.unlimited) : value(members["loss"], "\(name).loss", Self.loss).map { .value($0) }
        thresholds.roundTrip = time("rtt")
        thresholds.responseTime = time("response")
        thresholds.jitter = time("jitter")
        thresholds.window = number(members["window"], "\(name).window", in: 5...20)
        return thresholds
    }
}
