internal import Pacing

/// The echo requests of `ping://` targets. By default: one request of 56 bytes.
public struct PingSettings: Hashable, Sendable {
    /// The number of requests of one probe, 1 to 100; 1 by default. One answer suffices for success. Loss and jitter are those of the burst.
    public var count: Int {
        get { values.count }
        set { values.count = min(max(newValue, 1), 100) }
    }
    /// The time between two requests of a probe, 1 ms to 10 s; 20 ms by default. The burst has to end within the probe's timeout: requests after it are
    /// not sent.
    public var spacing: Duration {
        get { .nanoseconds(values.spacing) }
        set { values.spacing = min(max(newValue, .milliseconds(1)), .seconds(10)).saturatingNanoseconds }
    }
    /// The number of bytes of a request behind the ICMP header, 0 to 65,000; 56 by default.
    public var size: Int {
        get { values.size }
        set { values.size = min(max(newValue, 0), 65_000) }
    }
    /// The hop limit of the requests, 1 to 255; `nil`, the default, for the system's.
    public var hopLimit: Int? {
        get { values.hopLimit }
        set { values.hopLimit = newValue.map { min(max($0, 1), 255) } }
    }
    /// Whether routers may not fragment the requests, so that they find a path with a smaller MTU; false by default.
    public var forbidsFragments: Bool {
        get { values.forbidsFragments }
        set { values.forbidsFragments = newValue }
    }

    private struct Values: Hashable, Sendable {
        var count = 1
        var spacing: Int64 = 20_000_000
        var size = 56
        var hopLimit: Int?
        var forbidsFragments = false
    }

    private var values = Values()

    /// Creates the default settings.
    public init() {}
}

extension PingSettings: KindSettings {
    package static let name = "ping"
    package static let help = "the echo requests"
    package static let keys: [SettingKey<PingSettings>] = [
        SettingKey("count", .number(\.count, 1...100), "the requests of a probe; one answer is enough"),
        SettingKey("spacing", .duration(\.spacing, .milliseconds(1)...(.seconds(10))), "the time between two requests"),
        SettingKey("size", .number(\.size, 0...65_000), "the bytes behind the ICMP header"),
        SettingKey("ttl", .optionalNumber(\.hopLimit, 1...255), "the hop limit"),
        SettingKey("dont_fragment", .flag(\.forbidsFragments), "whether routers may not fragment the requests"),
    ]

    package struct Recorded: Codable {
        var count: Int
        var spacing: Int64
        var size: Int
        var hopLimit: Int?
        var forbidsFragments: Bool
    }

    package var recorded: Recorded {
        Recorded(count: count, spacing: values.spacing, size: size, hopLimit: hopLimit, forbidsFragments: forbidsFragments)
    }

    package init(_ recorded: Recorded) {
        self.init()
        (count, spacing, size) = (recorded.count, .nanoseconds(recorded.spacing), recorded.size)
        (hopLimit, forbidsFragments) = (recorded.hopLimit, recorded.forbidsFragments)
    }
}

extension ProbeSettings {
    /// The echo requests of `ping://` targets.
    public var ping: PingSettings {
        get { self[kind: PingSettings.self] }
        set { self[kind: PingSettings.self] = newValue }
    }
}
