import Reachability
import Records

/// The settings of the service. A new value has the defaults.
struct Configuration: Hashable, Sendable {
    /// The address of the page and of the API.
    var listen = ListenAddress.standard
    /// The names beside `localhost` and the address by which browsers may open the page.
    var allowedHosts: [String] = []
    /// The path of the API's Unix socket; `nil` for the default of the environment.
    var socket: String?
    /// The directory of the history; `nil` for the default of the environment.
    var state: String?
    /// The time zone of days and of maintenance windows (tz database); `nil` for that of this machine.
    var timeZone: String?
    /// The settings of targets without a class, and their thresholds.
    var probes = ProbeSettings()
    /// The probe of a URL with a known answer, which finds captive portals; `nil` for none.
    var canary: Canary?
    var retention = Retention()
    /// The time between two checkpoints of the history.
    var flushEvery = Duration.seconds(3_600)
    /// The severity of targets without one of their own; `nil` for none.
    var severity: Severity?
    /// The classes of targets, by name.
    var classes: [String: TargetClass] = [:]
    /// The groups of the page, in their order.
    var groups: [TargetGroup] = []
    var maintenance: [MaintenanceWindow] = []
    /// The targets, in their order.
    var targets: [ConfiguredTarget] = []

    /// The URL with a known answer.
    struct Canary: Hashable, Sendable {
        var endpoint: Endpoint
        var settings: HTTPProbeSettings
    }

    /// Settings that several targets share.
    struct TargetClass: Hashable, Sendable {
        /// The general settings, replaced by those of the class.
        var settings = ProbeSettings()
        /// The labels, to which those of a target are added.
        var labels: [String: String] = [:]
        var severity: Severity?
    }

    /// A group of the page.
    struct TargetGroup: Hashable, Sendable {
        var name: String
        /// Whether the page shows the group as one line at first.
        var isFolded = false
        var severity: Severity?
    }

    /// The importance of a target's failures.
    typealias Severity = Incident.Severity
}

extension Configuration {
    private typealias Key = ConfigurationKey<Configuration>

    /// The maximum number of bytes of the path of a Unix socket (unix(7)).
    static let longestSocketPath = 107

    /// All general keys. Where to add one: docs/architecture.md.
    static let keys = ConfigurationKeys<Configuration>(
        [
            Key(
                "listen", \.listen, .parsed(text: { "\($0)" }, ListenAddress.init), "the address of the page and of the API"
            ).documented(": a loopback address with a port; port 0 is any free one").option("addr:port").needingRestart(\.listen),
            Key("allowed_hosts", \.allowedHosts, .list(of: .hostName), "the names by which browsers may open the page")
                .documented(
                    """
                    , beside `localhost` and the address of the socket: a list of names and IPv4 addresses. Whoever answers for such a \
                    name can read the page through a browser on this machine ([threat-model.md](threat-model.md))
                    """, standard: "none"
                ).example("[netwatch.example]").needingRestart(\.allowedHosts),
            Key("socket", optional: \.socket, .parsed(socketPath), "the Unix socket of the API")
                .documented(
                    ", an absolute path of at most \(longestSocketPath) bytes. A socket of systemd replaces it",
                    standard: "see [The API](#the-api)"
                ).example("/run/netwatch/api.sock").option("path", path: "socket").needingRestart(\.socket),
            Key("state", optional: \.state, .parsed(absolutePath), "the directory of the history")
                .documented(", an absolute path", standard: "`$STATE_DIRECTORY`, else `$XDG_STATE_HOME/netwatch`")
                .example("/var/lib/netwatch").option("directory", path: "directory").needingRestart(\.state),
            Key("time_zone", optional: \.timeZone, .parsed(timeZoneName), "the zone of days and maintenance windows")
                .documented(", a name of the tz database such as `Europe/Berlin`", standard: "that of the machine")
                .example("Europe/Berlin").needingRestart(\.timeZone),
        ] + ProbeSettings.pacingKeys.map { $0.lifted(to: \.probes) } + [
            Key("severity", optional: \.severity, .severity, "how important the failures of targets are")
                .documented(
                    """
                    : `info`, `warning` or `critical`. That of the target counts, else that of its class, else of its group; an \
                    incident has the highest one of its targets
                    """, standard: "none"
                ).example("warning"),
            Key(
                "canary", keys: CanaryDraft.keys,
                "a URL with a known answer, which finds captive portals; nothing is requested without it"
            ) {
                reader, value, configuration in
                configuration.canary = reader.canary(value)
            }.documented("", standard: "none").example(lines: "  url: http://canary.example/generate_204")
                .needingRestart(\.canary),
            Key("retention", \.retention, keys: Retention.keys, "how much of the history is kept"),
            Key("flush_every", \.flushEvery, .duration(minimum: .seconds(1)), "the time between two checkpoints of the history")
                .option("duration"),
            Key("classes", keys: TargetClass.keys, "the settings that several targets share by their `class`") {
                reader, value, configuration in
                configuration.classes = reader.classes(value, probes: configuration.probes)
            }.stage(1).documented(", a map of their names", standard: "none").example(
                lines:
                    "  slow:\n    interval: 5m\n    labels: {line: cellular}\n    bytes_per_day: 1000000        # over a metered interface"
            ),
            ProbeSettings.thresholdsKey.lifted(to: \.probes),
            Key("groups", keys: GroupDraft.keys, "the groups of the page, in their order") { reader, value, configuration in
                configuration.groups = reader.groups(value)
            }.documented(", a list of names, or of maps", standard: "those of the targets").example(
                lines: "  - name: web\n    folded: true\n    severity: warning"),
            Key("maintenance", keys: MaintenanceWindow.keys, "the maintenance windows") {
                reader, value, configuration in
                configuration.maintenance = reader.maintenance(value, names: configuration.targetNames)
            }.stage(3).documented(", a list. A window has `from` and `to`, or `weekly` and `duration`", standard: "none").example(
                lines:
                    "  - targets: [web]                # ids, names or groups; all targets without it\n    weekly: sunday 02:00\n    duration: 2h"
            ),
            Key(
                "targets",
                "the servers that are probed"
            ) {
                reader, value, configuration in
                let context = TargetContext(configuration)
                configuration.targets = value.node.elements.compactMap { reader.target($0, context) }
                reader.checkKeys(of: configuration.targets)
            }.stage(2).documented(", as texts or as maps of the keys below", standard: "none").example(
                lines: """
                      - 192.0.2.7:22
                      - id: shop                      # keeps the history if 'target' or 'name' changes
                        name: Web shop
                        target: https://shop.example/health
                        group: web
                        labels: {team: shop}          # in records and documents
                        severity: critical            # info, warning or critical
                        expect:
                          status: 200-299
                          body: ok                    # a regular expression (RE2)
                        thresholds:
                          rtt: 200ms                  # slower answers make it degraded
                    """, set: "[]"),
        ])

    /// The names and texts of all keys, with the defaults.
    static let entries = keys.entries(of: Configuration())

    /// Reads a configuration from its tree.
    ///
    /// - Parameters:
    ///   - tree: the combined sources; `nil` for the defaults.
    ///   - reader: receives the errors.
    init(_ tree: ConfigurationNode?, _ reader: inout ConfigurationReader) {
        self.init()
        reader.read(tree, "", Self.keys, into: &self)
    }

    /// The names that a maintenance window may have: ids, names and groups of targets.
    private var targetNames: NameList {
        NameList(targets.flatMap { [$0.key, $0.title] + ($0.group.map { [$0] } ?? []) } + groups.map(\.name))
    }

    /// Returns the keys whose values in another configuration need a restart of the service.
    func restartKeys(for next: Configuration) -> [String] { Self.keys.restarts(from: self, to: next) }
}

extension Configuration.TargetClass {
    private typealias Key = ConfigurationKey<Configuration.TargetClass>

    fileprivate static let keys = ConfigurationKeys<Configuration.TargetClass>(
        ProbeSettings.pacingKeys.map { $0.lifted(to: \.settings).shared() } + [
            Key(
                "bytes_per_day", optional: \.settings.metered.bytesPerDay, .number(in: 1...Int.max),
                "over a metered interface"),
            ProbeSettings.thresholdsKey.lifted(to: \.settings).shared(),
            Key("labels", \.labels, .labels, "").shared(),
            Key("severity", optional: \.severity, .severity, "").shared(),
        ])
}

// MARK: The forms of general values

extension Configuration {
    @Sendable private static func absolutePath(_ path: String) throws(ConfigurationReader.Invalid) -> String {
        guard path.hasPrefix("/") else { throw ConfigurationReader.Invalid("write an absolute path") }
        return path
    }

    @Sendable private static func socketPath(_ path: String) throws(ConfigurationReader.Invalid) -> String {
        let path = try absolutePath(path)
        guard path.utf8.count <= longestSocketPath else {
            throw ConfigurationReader.Invalid("the path of a socket has at most \(longestSocketPath) bytes")
        }
        return path
    }

    /// Checks the syntax of a name of the tz database. Only its files show whether the zone exists.
    @Sendable private static func timeZoneName(_ text: String) throws(ConfigurationReader.Invalid) -> String {
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

extension ConfigurationForm<String> {
    /// A host name (RFC 1123 section 2.1) or an IPv4 address, in lower case. A pattern is none.
    fileprivate static var hostName: Self {
        .parsed { text throws(ConfigurationReader.Invalid) in
            let labels = text.split(separator: ".", omittingEmptySubsequences: false)
            let isHostName =
                text.utf8.count <= 253
                && labels.allSatisfy { label in
                    1...63 ~= label.utf8.count && label.first != "-" && label.last != "-"
                        && label.utf8.allSatisfy { 0x30...0x39 ~= $0 || 0x61...0x7a ~= $0 | 0x20 || $0 == UInt8(ascii: "-") }
                }
            guard isHostName else {
                throw ConfigurationReader.Invalid("write names of this machine without a port, as in netwatch.example")
            }
            return text.lowercased()
        }
    }
}

extension ConfigurationForm<Incident.Severity> {
    static var severity: Self {
        .parsed { text throws(ConfigurationReader.Invalid) in
            guard let severity = Incident.Severity(rawValue: text) else {
                throw ConfigurationReader.Invalid("write info, warning or critical")
            }
            return severity
        }
    }
}

extension ConfigurationForm<[String: String]> {
    /// The maximum number of labels of a class and of a target.
    private static var labelLimit: Int { 32 }

    /// Labels by their names. A name has the form that Prometheus and others accept.
    static var labels: Self {
        Self { reader, node, name in
            var labels: [String: String] = [:]
            for member in reader.map(node, name) {
                let letters = member.key.utf8
                let isName = letters.allSatisfy { 0x30...0x39 ~= $0 || 0x61...0x7a ~= $0 | 0x20 || $0 == UInt8(ascii: "_") }
                guard isName, 1...64 ~= letters.count, letters.first.map({ 0x30...0x39 ~= $0 }) == false else {
                    reader.note(
                        member.origin,
                        "label '\(ConfigurationReader.shown(member.key))': write 1 to 64 letters, digits or '_', and no digit first"
                    )
                    continue
                }
                if let value = reader.name(member.value, "\(name).\(member.key)") { labels[member.key] = value }
            }
            if labels.count > labelLimit { reader.note(node.origin, "'\(name)' has more than \(labelLimit) labels") }
            return labels
        }
    }
}

// MARK: The maps and lists among the general values

/// A canary while its keys are read.
private struct CanaryDraft: Sendable {
    var endpoint: Endpoint?
    var settings = HTTPProbeSettings()

    private typealias Key = ConfigurationKey<CanaryDraft>

    static let keys = ConfigurationKeys<CanaryDraft>([
        Key("url", optional: \.endpoint, .parsed(url), ""),
        Key("status", of: \.settings, "the expected one, as in `204`") { settings, text in try settings.setStatuses(text) },
        Key("body", of: \.settings, "a text in the response") { settings, text in try settings.expectBody(containing: text) },
    ])

    @Sendable private static func url(_ text: String) throws -> Endpoint {
        let endpoint = try Endpoint(text)
        guard endpoint.scheme.usesHTTP else {
            throw ConfigurationReader.Invalid("write a URL with http or https")
        }
        return endpoint
    }
}

/// A group while its keys are read.
private struct GroupDraft: Sendable {
    var name: String?
    var group = Configuration.TargetGroup(name: "")

    private typealias Key = ConfigurationKey<GroupDraft>

    static let keys = ConfigurationKeys<GroupDraft>([
        Key("name", optional: \.name, .text(), ""),
        Key("folded", \.group.isFolded, .flag, "as one line at first, `true` or `false`"),
        Key("severity", optional: \.group.severity, .severity, ""),
    ])
}

extension ConfigurationReader {
    fileprivate mutating func canary(_ value: ConfigurationValue) -> Configuration.Canary? {
        guard value.node.content != .empty else { return nil }
        var draft = CanaryDraft()
        draft.settings.isCanary = true
        let members = read(value.node, value.name, CanaryDraft.keys, into: &draft)
        guard let url = members["url"], url.content != .empty else {
            note(value.node.origin, "'canary' needs 'url'")
            return nil
        }
        return draft.endpoint.map { Configuration.Canary(endpoint: $0, settings: draft.settings) }
    }

    fileprivate mutating func classes(_ value: ConfigurationValue, probes: ProbeSettings) -> [String: Configuration.TargetClass] {
        var classes: [String: Configuration.TargetClass] = [:]
        for member in map(value.node, value.name) {
            var settings = Configuration.TargetClass(settings: probes)
            read(member.value, "classes.\(Self.shown(member.key))", Configuration.TargetClass.keys, into: &settings)
            classes[member.key] = settings
        }
        return classes
    }

    fileprivate mutating func groups(_ value: ConfigurationValue) -> [Configuration.TargetGroup] {
        var groups: [Configuration.TargetGroup] = []
        var names: Set<String> = []
        for element in value.node.elements {
            var draft = GroupDraft()
            if case .scalar(let name) = element.content {
                draft.name = name
            } else {
                read(element, value.name, GroupDraft.keys, into: &draft)
            }
            guard let name = draft.name else {
                note(element.origin, "a group needs 'name'")
                continue
            }
            draft.group.name = name
            if names.insert(name).inserted {
                groups.append(draft.group)
            } else {
                note(element.origin, "the group '\(Self.shown(name))' is already in the list")
            }
        }
        return groups
    }
}
