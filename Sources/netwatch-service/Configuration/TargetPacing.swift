import Reachability

/// When a target is probed, how many results change its status, and when its failures are incidents: the keys that the configuration has
/// for all targets, for a class and for a target. What is `nil` is left to the more general place.
struct TargetPacing: Hashable, Sendable {
    var interval: Duration?
    var probeTimeout: Duration?
    var failAfter: Int?
    var recoverAfter: Int?
    var openAfter: Duration?
    var closeAfter: Duration?

    static let keys = ["interval", "probe_timeout", "fail_after", "recover_after", "open_after", "close_after"]

    /// Replaces the values that are set here.
    func apply(to settings: inout ProbeSettings) {
        if let interval { settings.interval = interval }
        if let probeTimeout { settings.timeout = probeTimeout }
        if let failAfter { settings.failAfter = failAfter }
        if let recoverAfter { settings.recoverAfter = recoverAfter }
        if let openAfter { settings.openAfter = openAfter }
        if let closeAfter { settings.closeAfter = closeAfter }
    }
}

extension ConfigurationReader {
    /// Reads the keys of pacing among those of a map. - Parameter prefix: the name of the map in errors, with a dot; empty for none.
    mutating func pacing(_ members: Members, _ prefix: String = "") -> TargetPacing {
        TargetPacing(
            interval: duration(members["interval"], "\(prefix)interval", minimum: .milliseconds(10)),
            probeTimeout: duration(members["probe_timeout"], "\(prefix)probe_timeout"),
            failAfter: number(members["fail_after"], "\(prefix)fail_after", in: 1...1_000),
            recoverAfter: number(members["recover_after"], "\(prefix)recover_after", in: 1...1_000),
            openAfter: duration(members["open_after"], "\(prefix)open_after", minimum: .zero),
            closeAfter: duration(members["close_after"], "\(prefix)close_after", minimum: .zero))
    }
}
