import Pacing

/// A time in which the results of targets count as maintenance.
struct MaintenanceWindow: Hashable, Sendable {
    enum Schedule: Hashable, Sendable {
        /// One time, from a moment to a later one.
        case once(from: LocalTime, to: LocalTime)
        /// Each week, from a time of a day on; at most one week.
        case weekly(WeekTime, Duration)
    }

    /// The ids, names or groups of the targets; empty for all targets.
    var targets: [String]
    var schedule: Schedule

    private typealias Key = ConfigurationKey<Draft>

    static let keys = ConfigurationKeys<Draft>([
        Key("targets", "ids, names or groups; all without it") { reader, value, draft in
            for element in value.node.elements {
                guard let name = reader.text(element, value.name) else { continue }
                draft.targets.append(name)
                if draft.names.contains(name) { continue }
                reader.note(
                    element.origin, "'\(ConfigurationReader.shown(name))' is no id, name or group of a target", unknown: name,
                    among: draft.names.names)
            }
        },
        Key("from", optional: \.from, .parsed(LocalTime.init), ""),
        Key("to", optional: \.to, .parsed(LocalTime.init), ""),
        Key("weekly", optional: \.weekly, .parsed(WeekTime.init), "a day and a time"),
        Key("duration", optional: \.duration, .duration(), ""),
    ])

    /// A window while its keys are read.
    struct Draft: Sendable {
        /// The names that its targets may have.
        fileprivate let names: NameList
        fileprivate var targets: [String] = []
        fileprivate var from: LocalTime?
        fileprivate var to: LocalTime?
        fileprivate var weekly: WeekTime?
        fileprivate var duration: Duration?
    }
}

extension ConfigurationReader {
    /// Reads the maintenance windows. - Parameter names: the names that their targets may have.
    mutating func maintenance(_ value: ConfigurationValue, names: NameList) -> [MaintenanceWindow] {
        value.node.elements.compactMap { maintenance($0, value.name, names: names) }
    }

    private mutating func maintenance(_ node: ConfigurationNode, _ name: String, names: NameList) -> MaintenanceWindow? {
        var draft = MaintenanceWindow.Draft(names: names)
        let members = read(node, name, MaintenanceWindow.keys, into: &draft)
        let keys = Set(members.keys).subtracting(["targets"])
        if keys == ["from", "to"] {
            guard let from = draft.from, let to = draft.to else { return nil }
            guard from.isBefore(to) else {
                note(members["to"]?.origin ?? node.origin, "'to' must be later than 'from'")
                return nil
            }
            return MaintenanceWindow(targets: draft.targets, schedule: .once(from: from, to: to))
        }
        guard keys == ["weekly", "duration"] else {
            note(node.origin, "a maintenance window needs 'from' and 'to', or 'weekly' and 'duration'")
            return nil
        }
        guard let weekly = draft.weekly, let duration = draft.duration else { return nil }
        guard duration <= .seconds(7 * 86_400) else {
            note(members["duration"]?.origin ?? node.origin, "'duration' is longer than a week")
            return nil
        }
        return MaintenanceWindow(targets: draft.targets, schedule: .weekly(weekly, duration))
    }
}

extension MaintenanceWindow {
    private static let minute: Int64 = 60_000
    private static let day: Int64 = 86_400_000
    private static let week: Int64 = 7 * day

    /// Returns whether the window covers a time. - Parameter time: milliseconds since 1970.
    func covers(_ time: Int64, offset: TimeZoneOffset) -> Bool {
        switch schedule {
        case .once(let from, let to): from.time(offset) <= time && time < to.time(offset)
        case .weekly(let start, let duration):
            Self.start(start, before: time, offset: offset).contains {
                time >= $0 && time - $0 < duration.saturatingNanoseconds / 1_000_000
            }
        }
    }

    /// Returns the last starts before a time. Around a change of daylight saving time, the local time of one may be slightly later.
    private static func start(_ start: WeekTime, before time: Int64, offset: TimeZoneOffset) -> [Int64] {
        let local = time + offset(time)
        // 1970-01-01 was a Thursday, the fourth day of the week.
        let index = Int64(WeekTime.Weekday.allCases.firstIndex(of: start.weekday) ?? 0)
        let inWeek = index * day + Int64(start.hour) * 60 * minute + Int64(start.minute) * minute
        let monday = local - (local + 3 * day).floorDivided(by: week).remainder
        return [-1, 0, 1].map { LocalTime.time(local: monday + $0 * week + inWeek, offset) }
    }
}
