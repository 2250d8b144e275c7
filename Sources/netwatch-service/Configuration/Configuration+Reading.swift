import Reachability

extension Configuration {
    /// Reads a configuration from its tree.
    ///
    /// - Parameters:
    ///   - tree: the combined sources; `nil` for the defaults.
    ///   - reader: receives the errors.
    init(_ tree: ConfigurationNode?, _ reader: inout ConfigurationReader) {
        self.init()
        let members = reader.members(tree, "", keys: Self.keys)
        if let listen = reader.value(members["listen"], "listen", ListenAddress.init) { self.listen = listen }
        allowedHosts = (members["allowed_hosts"]?.elements ?? []).compactMap { element in
            reader.value(element, "allowed_hosts") { text throws(ConfigurationReader.Invalid) in
                guard Self.isHostName(text) else {
                    throw ConfigurationReader.Invalid("write names of this machine without a port, as in netwatch.example")
                }
                return text.lowercased()
            }
        }
        socket = reader.value(members["socket"], "socket") { path in
            guard path.hasPrefix("/") else { throw ConfigurationReader.Invalid("write an absolute path") }
            guard path.utf8.count <= Self.longestSocketPath else {
                throw ConfigurationReader.Invalid("the path of a socket has at most \(Self.longestSocketPath) bytes")
            }
            return path
        }
        state = reader.value(members["state"], "state") { path in
            guard path.hasPrefix("/") else { throw ConfigurationReader.Invalid("write an absolute path") }
            return path
        }
        timeZone = reader.value(members["time_zone"], "time_zone", Self.timeZone)
        reader.pacing(members).apply(to: &probes)
        reader.thresholds(members["thresholds"], "thresholds").apply(to: &probes.quality)
        if let flushEvery = reader.duration(members["flush_every"], "flush_every", minimum: .seconds(1)) {
            self.flushEvery = flushEvery
        }
        severity = reader.severity(members["severity"], "severity")
        canary = reader.canary(members["canary"])
        retention = reader.retention(members["retention"])
        classes = reader.classes(members["classes"])
        groups = reader.groups(members["groups"])
        let context = TargetContext(probes: probes, severity: severity, classes: classes, groups: groups)
        targets = (members["targets"]?.elements ?? []).compactMap { reader.target($0, context) }
        reader.checkKeys(of: targets)
        let names = NameList(targets.flatMap { [$0.key, $0.title] + ($0.group.map { [$0] } ?? []) } + groups.map(\.name))
        maintenance = (members["maintenance"]?.elements ?? []).compactMap { reader.maintenance($0, names: names) }
    }

    /// Returns whether a text is a host name (RFC 1123 section 2.1) or an IPv4 address. A pattern is none.
    private static func isHostName(_ text: String) -> Bool {
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        return text.utf8.count <= 253
            && labels.allSatisfy { label in
                1...63 ~= label.utf8.count && label.first != "-" && label.last != "-"
                    && label.utf8.allSatisfy { 0x30...0x39 ~= $0 || 0x61...0x7a ~= $0 | 0x20 || $0 == UInt8(ascii: "-") }
            }
    }

    /// Checks the syntax of a name of the tz database. Only its files show whether the zone exists.
    private static func timeZone(_ text: String) throws(ConfigurationReader.Invalid) -> String {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        let isName = parts.allSatisfy { part in
            part.first?.isLetter == true && part.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "_-+".contains($0)) }
        }
        guard isName, text.utf8.count <= 64 else {
            throw ConfigurationReader.Invalid("not a name of the tz database; write one such as Europe/Berlin or UTC")
        }
        return text
    }
}

extension ConfigurationReader {
    static func loss(_ text: String) throws(Invalid) -> Double {
        let isPercent = text.hasSuffix("%")
        guard let number = Double(isPercent ? text.dropLast() : text[...]), number.isFinite,
            case let part = isPercent ? number / 100 : number, 0...1 ~= part
        else { throw Invalid("write a part from 0% to 100%, as in 20%, or none") }
        return part
    }

    mutating func canary(_ node: ConfigurationNode?) -> Configuration.Canary? {
        guard let node, node.content != .empty else { return nil }
        let members = members(node, "canary", keys: ["url", "status", "body"])
        var settings = HTTPProbeSettings()
        settings.isCanary = true
        if let statuses = text(members["status"], "canary.status") {
            note(members["status"], "canary.status") { try settings.setStatuses(statuses) }
        }
        if let body = text(members["body"], "canary.body") {
            note(members["body"], "canary.body") { try settings.expectBody(containing: body) }
        }
        guard let url = members["url"], url.content != .empty else {
            note(node.origin, "'canary' needs 'url'")
            return nil
        }
        let endpoint = value(url, "canary.url") { text in
            let endpoint = try Endpoint(text)
            guard endpoint.scheme == .http || endpoint.scheme == .https else { throw Invalid("write a URL with http or https") }
            return endpoint
        }
        return endpoint.map { Configuration.Canary(endpoint: $0, settings: settings) }
    }

    mutating func retention(_ node: ConfigurationNode?) -> Retention {
        let members = members(node, "retention", keys: ["size", "samples", "hours", "days"])
        var retention = Retention()
        if let size = value(members["size"], "retention.size", { try ByteSize.parse($0, minimum: 16 << 20) }) {
            retention.size = size
        }
        if let days = value(members["samples"], "retention.samples", DayCount.parse) { retention.samples = days }
        if let days = value(members["hours"], "retention.hours", DayCount.parse) { retention.hours = days }
        if let days = value(members["days"], "retention.days", DayCount.parse) { retention.days = days }
        return retention
    }

    mutating func classes(_ node: ConfigurationNode?) -> [String: Configuration.TargetClass] {
        var classes: [String: Configuration.TargetClass] = [:]
        for member in map(node, "classes") {
            let name = "classes.\(Self.shown(member.key))"
            let members = members(
                member.value, name, keys: TargetPacing.keys + ["bytes_per_day", "thresholds", "labels", "severity"])
            classes[member.key] = Configuration.TargetClass(
                pacing: pacing(members, "\(name)."),
                bytesPerDay: number(members["bytes_per_day"], "\(name).bytes_per_day", in: 1...Int.max),
                thresholds: thresholds(members["thresholds"], "\(name).thresholds"),
                labels: labels(members["labels"], "\(name).labels"),
                severity: severity(members["severity"], "\(name).severity"))
        }
        return classes
    }

    /// Reads labels. A name has the form that Prometheus and others accept.
    mutating func labels(_ node: ConfigurationNode?, _ name: String) -> [String: String] {
        var labels: [String: String] = [:]
        for member in map(node, name) {
            let letters = member.key.utf8
            let isName = letters.allSatisfy { 0x30...0x39 ~= $0 || 0x61...0x7a ~= $0 | 0x20 || $0 == UInt8(ascii: "_") }
            guard isName, 1...64 ~= letters.count, letters.first.map({ 0x30...0x39 ~= $0 }) == false else {
                note(
                    member.origin,
                    "label '\(Self.shown(member.key))': write 1 to 64 letters, digits or '_', and no digit first")
                continue
            }
            if let value = self.name(member.value, "\(name).\(member.key)") { labels[member.key] = value }
        }
        if let node, labels.count > Self.labelLimit { note(node.origin, "'\(name)' has more than \(Self.labelLimit) labels") }
        return labels
    }

    /// The maximum number of labels of a class and of a target.
    private static let labelLimit = 32

    mutating func severity(_ node: ConfigurationNode?, _ name: String) -> Configuration.Severity? {
        value(node, name) { text throws(Invalid) in
            guard let severity = Configuration.Severity(rawValue: text) else { throw Invalid("write info, warning or critical") }
            return severity
        }
    }

    mutating func groups(_ node: ConfigurationNode?) -> [Configuration.TargetGroup] {
        var groups: [Configuration.TargetGroup] = []
        var names: Set<String> = []
        for element in node?.elements ?? [] {
            var group: Configuration.TargetGroup
            if case .scalar(let name) = element.content {
                group = Configuration.TargetGroup(name: name)
            } else {
                let members = members(element, "groups", keys: ["name", "folded", "severity"])
                let name = text(members["name"], "groups.name")
                group = Configuration.TargetGroup(name: name ?? "")
                if let isFolded = flag(members["folded"], "groups.folded") { group.isFolded = isFolded }
                group.severity = severity(members["severity"], "groups.severity")
                guard name != nil else {
                    note(element.origin, "a group needs 'name'")
                    continue
                }
            }
            if names.insert(group.name).inserted {
                groups.append(group)
            } else {
                note(element.origin, "the group '\(Self.shown(group.name))' is already in the list")
            }
        }
        return groups
    }

    /// Reads a maintenance window. - Parameter names: the names that its targets may have.
    mutating func maintenance(_ node: ConfigurationNode, names: NameList) -> MaintenanceWindow? {
        let members = members(node, "maintenance", keys: ["targets", "from", "to", "weekly", "duration"])
        var targets: [String] = []
        for element in members["targets"]?.elements ?? [] {
            guard let name = text(element, "maintenance.targets") else { continue }
            targets.append(name)
            if !names.contains(name) {
                note(
                    element.origin, "'\(Self.shown(name))' is no id, name or group of a target", unknown: name,
                    among: names.names)
            }
        }
        let from = value(members["from"], "maintenance.from", LocalTime.init)
        let to = value(members["to"], "maintenance.to", LocalTime.init)
        let weekly = value(members["weekly"], "maintenance.weekly", WeekTime.init)
        let duration = duration(members["duration"], "maintenance.duration")
        let keys = Set(members.keys).subtracting(["targets"])
        if keys == ["from", "to"] {
            guard let from, let to else { return nil }
            guard from.isBefore(to) else {
                note(members["to"]?.origin ?? node.origin, "'to' must be later than 'from'")
                return nil
            }
            return MaintenanceWindow(targets: targets, schedule: .once(from: from, to: to))
        }
        guard keys == ["weekly", "duration"] else {
            note(node.origin, "a maintenance window needs 'from' and 'to', or 'weekly' and 'duration'")
            return nil
        }
        guard let weekly, let duration else { return nil }
        guard duration <= .seconds(7 * 86_400) else {
            note(members["duration"]?.origin ?? node.origin, "'duration' is longer than a week")
            return nil
        }
        return MaintenanceWindow(targets: targets, schedule: .weekly(weekly, duration))
    }

    /// Notes the error of a change, which is not made then.
    mutating func note(_ node: ConfigurationNode?, _ name: String, _ change: () throws -> Void) {
        do { try change() } catch { note(node?.origin ?? .standard, "\(name): \(error)") }
    }
}
