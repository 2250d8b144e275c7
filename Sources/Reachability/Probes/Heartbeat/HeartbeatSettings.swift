internal import Pacing

/// When the reports of a `heartbeat:` target are expected: after a time, or by a schedule of cron.
package struct HeartbeatSettings: Hashable, Sendable {
    /// The most time between two reports; `nil` with ``cron``.
    package var every: Duration? {
        get { values.every.map { .nanoseconds($0) } }
        set { values.every = newValue.map { min(max($0, Self.times.lowerBound), Self.times.upperBound).saturatingNanoseconds } }
    }
    /// The times at which the job runs; `nil` with ``every``.
    package var cron: CronSchedule? {
        get { values.cron }
        set { values.cron = newValue }
    }
    /// The name of the time zone of ``cron``; `nil` for that of the owner.
    package var timeZone: String? {
        get { values.timeZone }
        set { values.timeZone = newValue }
    }
    /// The rules of that time zone, which the owner reads from the tz database.
    package var zoneRules: TimeZoneRules {
        get { values.zoneRules }
        set { values.zoneRules = newValue }
    }
    /// The time by which a report may be late, 5 minutes by default.
    package var grace: Duration {
        get { .nanoseconds(values.grace) }
        set { values.grace = min(max(newValue, .zero), Self.times.upperBound).saturatingNanoseconds }
    }
    /// The time for which a job may run after it has reported its start; `nil`, the default, until its next run would be late.
    package var maxDuration: Duration? {
        get { values.maxDuration.map { .nanoseconds($0) } }
        set {
            values.maxDuration = newValue.map { min(max($0, Self.times.lowerBound), Self.times.upperBound).saturatingNanoseconds }
        }
    }
    /// The SHA-256 of the token that reports must have; empty if none is accepted.
    package var tokenDigest: [UInt8] {
        get { values.tokenDigest }
        set { values.tokenDigest = newValue }
    }

    static let times: ClosedRange<Duration> = .seconds(1)...(.seconds(365 * 86_400))

    private struct Values: Hashable, Sendable {
        var every: Int64?
        var cron: CronSchedule?
        var timeZone: String?
        var zoneRules = TimeZoneRules.utc
        var grace: Int64 = 300_000_000_000
        var maxDuration: Int64?
        var tokenDigest: [UInt8] = []
    }

    private var values = Values()

    package init() {}
}

extension HeartbeatSettings {
    /// The times at which reports are expected, as a text that other times change.
    var schedule: String {
        if let cron { return "cron \(cron.text) \(timeZone ?? "")" }
        return "every \(values.every ?? 0)"
    }
}

extension HeartbeatSettings: KindSettings {
    package static let name = "heartbeat"
    package static let help = "when a job has to report"
    /// The file of the token, and the rules of the time zone, are read by the owner.
    package static let hasOwnReading = true
    package static let keys: [SettingKey<HeartbeatSettings>] = [
        SettingKey("every", .optionalDuration(\.every, times), "the most time between two reports"),
        SettingKey(
            "cron", .text(limit: 256) { settings, text in settings.cron = try CronSchedule(text) },
            "the times of the job in place of `every`, as in crontab(5): minute, hour, day, month, weekday"),
        SettingKey(
            "time_zone", .text(limit: 64) { settings, text in settings.timeZone = text },
            "the time zone of `cron`, as in `Europe/Berlin`; that of the service without it"),
        SettingKey(
            "grace", .duration(\.grace, .zero...times.upperBound), "the time by which a report may be late, 5 min without it"),
        SettingKey(
            "max_duration", .optionalDuration(\.maxDuration, times),
            "the time for which the job may run after it has reported its start; until its next report would be late without it"),
    ]

    package var lack: String? {
        switch (values.every, values.cron) {
        case (nil, nil): "needs heartbeat.every or heartbeat.cron"
        case (_?, _?): "has both heartbeat.every and heartbeat.cron; write one"
        default: timeZone != nil && cron == nil ? "has heartbeat.time_zone without heartbeat.cron" : nil
        }
    }

    package struct Recorded: Codable {
        var every: Int64?
        var cron: String?
        var timeZone: String?
        var zone: TimeZoneRules?
        var grace: Int64
        var maxDuration: Int64?
    }

    package var recorded: Recorded {
        Recorded(
            every: values.every, cron: cron?.text, timeZone: timeZone, zone: zoneRules == .utc ? nil : zoneRules,
            grace: values.grace,
            maxDuration: values.maxDuration)
    }

    package init(_ recorded: Recorded) {
        self.init()
        every = recorded.every.map { .nanoseconds($0) }
        cron = recorded.cron.flatMap { try? CronSchedule($0) }
        (timeZone, zoneRules) = (recorded.timeZone, recorded.zone ?? .utc)
        grace = .nanoseconds(recorded.grace)
        maxDuration = recorded.maxDuration.map { .nanoseconds($0) }
    }
}

extension ProbeSettings {
    /// When the reports of a `heartbeat:` target are expected.
    package var heartbeat: HeartbeatSettings {
        get { self[kind: HeartbeatSettings.self] }
        set { self[kind: HeartbeatSettings.self] = newValue }
    }
}
