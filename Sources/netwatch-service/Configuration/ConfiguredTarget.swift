import Reachability
import Records

/// A target of the configuration.
struct ConfiguredTarget: Hashable, Sendable {
    /// The stable identifier; `nil` if the history belongs to the text of the target.
    var id: String?
    /// The name for people; `nil` for the text of the target.
    var name: String?
    var endpoint: Endpoint
    var group: String?
    var className: String?
    /// The labels of the class and of the target.
    var labels: [String: String] = [:]
    /// The severity of the target, else that of its class, of its group, or of the configuration; `nil` without any.
    var severity: Configuration.Severity?
    /// The settings of the probes, without the content of ``files``.
    var settings: ProbeSettings
    /// The files that the settings need.
    var files: [FileReference] = []
    /// The place of the target.
    var origin: ConfigurationOrigin

    /// The key of the target's history.
    var key: String { id ?? endpoint.text }
    /// The names of the target's records.
    var identity: TargetIdentity { TargetIdentity(id: id, name: name, group: group, labels: labels) }
    /// The name that people see.
    var title: String { name ?? endpoint.text }

    /// A file that a target's settings need.
    struct FileReference: Hashable, Sendable {
        enum Purpose: Hashable, Sendable {
            case authorities
            case revocationLists
            /// The client certificate with its chain, and its key unless that has a file of its own.
            case certificate
            case privateKey
            case bearerToken
            /// The token with which a job reports.
            case heartbeatToken
            /// A line with the user and the password of the proxy, `USER:PASSWORD`.
            case proxyCredentials
            case password(user: String)
        }

        var purpose: Purpose
        /// The path as the user wrote it.
        var path: String
        var origin: ConfigurationOrigin
    }
}

/// The parts of a configuration on which its targets depend.
struct TargetContext: Sendable {
    let probes: ProbeSettings
    let severity: Configuration.Severity?
    let classes: [String: Configuration.TargetClass]
    /// The names of the groups; empty if the configuration lists none.
    let groups: NameList
    let classNames: [String]
    let groupSeverities: [String: Configuration.Severity]

    init(_ configuration: Configuration) {
        (probes, severity, classes) = (configuration.probes, configuration.severity, configuration.classes)
        groups = NameList(configuration.groups.map(\.name))
        classNames = classes.keys.sorted()
        let severities = configuration.groups.compactMap { group in group.severity.map { (group.name, $0) } }
        groupSeverities = Dictionary(severities, uniquingKeysWith: { first, _ in first })
    }
}

/// Names in their order, of which each is found at once.
struct NameList: Sendable {
    let names: [String]
    private let known: Set<String>

    init(_ names: [String]) { (self.names, known) = (names, Set(names)) }

    func contains(_ name: String) -> Bool { known.contains(name) }
}

/// A target while its keys are read.
private struct TargetDraft: Sendable {
    var target: ConfiguredTarget
    /// Whether the text of the target is valid. Otherwise the errors of the other keys are shown too.
    var hasEndpoint = false
    let context: TargetContext
    /// The names of `http.headers` in lower case.
    var headers: Set<String> = []

    /// The settings of HTTP probes.
    var http: HTTPProbeSettings {
        get { target.settings.http }
        set { target.settings.http = newValue }
    }
}

extension ConfiguredTarget {
    /// The names and texts of the keys of a target.
    static let entries = TargetDraft.keys.entries(of: nil)
}

extension TargetDraft {
    private typealias Key = ConfigurationKey<TargetDraft>

    /// The keys of a target. `target` is read before the others, and `class` before those whose values it has, too. A dialogue precedes `tls`, which has
    /// an effect on it, and the files of `tls` precede those of `http`.
    static let keys = ConfigurationKeys<TargetDraft>(
        [
            Key("id", optional: \.target.id, .parsed(identifier), "1 to 64 letters, digits, `-`, `_` and `.`, and not `.` first")
                .documented(": the target keeps its history when its text or its name changes"),
            Key("name", optional: \.target.name, .name, "the name for people").documented(", without control characters"),
            Key("target", "the text") { reader, value, draft in
                guard let endpoint = reader.value(value.node, value.name, ConfigurationReader.endpoint) else { return }
                (draft.target.endpoint, draft.hasEndpoint) = (endpoint, true)
            }.stage(-1).documented(
                ", \(Endpoint.Scheme.allCases.map { "`\($0.form.text)`" }.joined(separator: ", ")); required"),
            Key("group", "the group on the page") { reader, value, draft in reader.group(value, of: &draft) }
                .documented(", without control characters. If `groups` is set, it must be one of them"),
            Key("class", "the class of `classes`") { reader, value, draft in reader.className(value, of: &draft) },
            Key("labels", "the texts that records and documents have, by their names") { reader, value, draft in
                guard let labels = ConfigurationForm<[String: String]>.labels.read(&reader, value.node, value.name) else {
                    return
                }
                draft.target.labels.merge(labels) { $1 }
            }.documented(
                """
                . They are added to those of the class, and replace those with the same name. A name has 1 to 64 letters, digits and \
                `_`, and no digit first; at most 32
                """),
            Key("severity", optional: \.target.severity, .severity, "as above, for this target; its page shows it"),
            ProbeSettings.thresholdsKey.lifted(to: \.target.settings).shared(),
            Key("family", "`4` or `6`") { reader, value, draft in reader.family(value, of: &draft) },
            Key(
                "interface", optional: \.target.settings.interface, .parsed(interface),
                "the interface to which its probes are bound"),
            Key("http", keys: requestKeys, "the request") { reader, value, draft in
                let members = reader.read(value.node, value.name, requestKeys, into: &draft)
                reader.require(HTTPProbeSettings.self, value, members, draft.target)
            }.stage(2),
            Key("tls", keys: tlsKeys, "the trust, and the certificate that is expected") { reader, value, draft in
                let members = reader.read(value.node, value.name, tlsKeys, into: &draft)
                reader.require(TLSProbeSettings.self, value, members, draft.target)
            }.stage(1),
            Key("heartbeat", keys: heartbeatKeys, HeartbeatSettings.help) { reader, value, draft in
                let members = reader.read(value.node, value.name, heartbeatKeys, into: &draft)
                reader.require(HeartbeatSettings.self, value, members, draft.target)
            },
            Key("expect", keys: expectationKeys, "the response that is expected") { reader, value, draft in
                let members = reader.read(value.node, value.name, expectationKeys, into: &draft)
                reader.require(HTTPProbeSettings.self, value, members, draft.target)
            },
        ] + kindKeys + ProbeSettings.pacingKeys.map { $0.lifted(to: \.target.settings).shared() })

    /// The maps of the kinds of probes whose keys need nothing but a text.
    private static let kindKeys: [Key] = {
        var keys: [Key] = []
        for settings in ProbeKinds.all.flatMap(\.settings) where !settings.hasOwnReading { keys.append(key(of: settings)) }
        return keys
    }()

    private static func key<Settings: KindSettings>(of _: Settings.Type) -> Key {
        let keys = ConfigurationKeys<Settings>(ConfigurationKey<Settings>.ofKind())
        return Key(Settings.name, keys: keys, Settings.help) { reader, value, draft in
            let (node, known) = (value.node.expanded(by: Settings.shortForms), reader.problems.count)
            let members = reader.read(node, value.name, keys, into: &draft.target.settings[kind: Settings.self])
            reader.require(Settings.self, value, members, draft.target)
            let (endpoint, lack) = (draft.target.endpoint, draft.target.settings[kind: Settings.self].lack)
            // Another error explains it.
            if let lack, endpoint.scheme.kind.lack(in: draft.target.settings) == nil, reader.problems.count == known {
                reader.note(value.node.origin, "the target \(lack)")
            }
            draft.target.endpoint = endpoint.scheme.kind.replacement(of: endpoint, draft.target.settings) ?? endpoint
        }
    }

    private static let requestKeys = ConfigurationKeys<TargetDraft>(
        ConfigurationKey.ofKind().map { $0.lifted(to: \.http) } + [
            Key("headers", "a map") { reader, value, draft in
                for field in reader.map(value.node, value.name) {
                    draft.headers.insert(field.key.lowercased())
                    guard let text = reader.text(field.value, value.name, limit: 8_192) else { continue }
                    reader.note(field.value, value.name) { try draft.http.addField(field.key, text) }
                }
            }.secret(),
            Key("forward", "names of `headers` that another origin receives after a redirect, but not from https to http") {
                reader, value, draft in
                for element in value.node.elements {
                    guard let name = reader.text(element, value.name) else { continue }
                    if !draft.headers.contains(name.lowercased()) {
                        reader.note(
                            element.origin,
                            "'http.forward' names '\(ConfigurationReader.shown(name))', which is not in 'http.headers'")
                    }
                    draft.http.forwardedFields.append(name)
                }
            },
            Key("basic", keys: BasicCredentials.keys, "") { reader, value, draft in reader.basicCredentials(value, of: &draft) },
            Key("bearer_file", "") { reader, value, draft in reader.addFile(value, .bearerToken, to: &draft.target) },
            Key("proxy", "`http://HOST[:PORT]`, a proxy that the requests use, without credentials") { reader, value, draft in
                reader.proxy(value, of: &draft)
            },
            Key("no_proxy", "the hosts that are connected to without it, as in the variable `no_proxy`") { reader, value, _ in
                // A part of the proxy.
                if value.siblings["proxy"] == nil { reader.note(value.node.origin, "'\(value.name)' needs 'http.proxy'") }
            },
            Key("proxy_file", "a file whose first line has the credentials of the proxy, `USER:PASSWORD`") {
                reader, value, draft in
                if value.siblings["proxy"] == nil { reader.note(value.node.origin, "'\(value.name)' needs 'http.proxy'") }
                reader.addFile(value, .proxyCredentials, to: &draft.target)
            },
        ])

    private static let heartbeatKeys = ConfigurationKeys<TargetDraft>(
        ConfigurationKey.ofKind().map { $0.lifted(to: \.target.settings.heartbeat) } + [
            Key("token_file", "a file whose first line is the token with which the job reports; required") {
                reader, value, draft in
                reader.addFile(value, .heartbeatToken, to: &draft.target)
            }
        ])

    private static let tlsKeys = ConfigurationKeys<TargetDraft>(
        ConfigurationKey.ofKind().map { $0.lifted(to: \.target.settings.tls) } + [
            Key("cafile", "") { reader, value, draft in reader.addFile(value, .authorities, to: &draft.target) },
            Key("crlfile", "") { reader, value, draft in reader.addFile(value, .revocationLists, to: &draft.target) },
            Key("cert", "the client certificate with its chain") { reader, value, draft in
                reader.addFile(value, .certificate, to: &draft.target)
            },
            Key("key", "the file of its key, `cert` without it") { reader, value, draft in
                if value.siblings["cert"] == nil { reader.note(value.node.origin, "'tls.key' needs 'tls.cert'") }
                reader.addFile(value, .privateKey, to: &draft.target)
            },
        ])

    private static let expectationKeys = ConfigurationKeys<TargetDraft>([
        Key("status", of: \.http, "as in `200-299,401`") { http, text in try http.setStatuses(text) },
        Key("version", "`1.0`, `1.1`, or both") { reader, value, draft in
            for element in value.node.elements {
                let version = reader.value(element, value.name) { text in
                    guard ["1.0", "1.1"].contains(text) else { throw ConfigurationReader.Invalid("write 1.0 or 1.1") }
                    return text
                }
                if let version { draft.http.versions.insert(version) }
            }
        },
        Key("body", of: \.http, limit: 8_192, "EXPRESSION") { http, text in try http.expectBody(text) },
        Key("not_body", of: \.http, limit: 8_192, "an EXPRESSION that must not match") { http, text in
            try http.expectBody(text, mustMatch: false)
        },
        Key("headers", "a map of names to EXPRESSIONs") { reader, value, draft in
            reader.expectFields(value, mustMatch: true, &draft)
        }.secret(),
        Key("not_headers", "as `headers`, and no value may match") { reader, value, draft in
            reader.expectFields(value, mustMatch: false, &draft)
        }.secret(),
        Key("json", keys: JSONRule.keys, "values of a JSON text, a list of maps") { reader, value, draft in
            for element in value.node.elements {
                var rule = JSONRule()
                reader.read(element, value.name, JSONRule.keys, into: &rule)
                reader.note(element, value.name) { try rule.apply(to: &draft.http) }
            }
        },
        Key("min_size", "the least bytes of the body") { reader, value, draft in
            reader.size(value, of: &draft) { ($0, $1.upperBound) }
        },
        Key("max_size", "the most bytes of the body") { reader, value, draft in
            reader.size(value, of: &draft) { ($1.lowerBound, $0) }
        },
    ])

    @Sendable private static func identifier(_ text: String) throws(ConfigurationReader.Invalid) -> String {
        let isValid = text.utf8.allSatisfy { byte in
            0x30...0x39 ~= byte || 0x41...0x5A ~= byte || 0x61...0x7A ~= byte || [0x2D, 0x2E, 0x5F].contains(byte)
        }
        guard isValid, 1...64 ~= text.utf8.count, text.utf8.first != 0x2E else {
            throw ConfigurationReader.Invalid("write 1 to 64 letters, digits, '-', '_' or '.', and not '.' first")
        }
        return text
    }

    @Sendable private static func interface(_ text: String) throws(ConfigurationReader.Invalid) -> String {
        guard 1...127 ~= text.utf8.count, !text.contains(where: { $0.isWhitespace || $0 == "/" }) else {
            throw ConfigurationReader.Invalid("not the name of an interface")
        }
        return text
    }
}

extension ConfigurationNode {
    /// The map that a text or a list abbreviates.
    fileprivate func expanded(by forms: (text: String, list: String)?) -> ConfigurationNode {
        guard let forms else { return self }
        switch content {
        case .empty, .map: return self
        case .scalar: return ConfigurationNode(self, at: [forms.text])
        case .list: return ConfigurationNode(self, at: [forms.list])
        }
    }
}

/// The credentials of `http.basic` while their keys are read.
private struct BasicCredentials: Sendable {
    var user: String?

    static let keys = ConfigurationKeys<BasicCredentials>([
        ConfigurationKey("user", optional: \.user, .text(), ""),
        // The file is one of the target.
        ConfigurationKey("password_file", "") { _, _, _ in },
    ])
}

/// A value that is expected of a JSON text, while its keys are read.
private struct JSONRule: Sendable {
    var path: String?
    var comparisons: [HTTPProbeSettings.JSONComparison] = []

    static let keys = ConfigurationKeys<JSONRule>([
        ConfigurationKey("path", of: \.self, "a JSON pointer (RFC 6901), such as `/checks/0/status`") { rule, text in
            rule.path = text
        },
        ConfigurationKey("equals", of: \.comparisons, "the value") { rules, text in rules.append(.equals(text)) },
        ConfigurationKey("differs", of: \.comparisons, "another value than this") { rules, text in
            rules.append(.differs(from: text))
        },
        ConfigurationKey("above", of: \.comparisons, "a number above this") { rules, text in
            rules.append(.above(try number(text)))
        },
        ConfigurationKey("below", of: \.comparisons, "a number below this") { rules, text in
            rules.append(.below(try number(text)))
        },
        ConfigurationKey("matches", of: \.comparisons, limit: 8_192, "EXPRESSION") { rules, text in rules.append(.matches(text))
        },
        ConfigurationKey("exists", of: \.comparisons, "`true` or `false`") { rules, text in
            guard let exists = Bool(text) else { throw ConfigurationReader.Invalid("write true or false") }
            rules.append(.exists(exists))
        },
    ])

    private static func number(_ text: String) throws(ConfigurationReader.Invalid) -> Double {
        guard let number = Double(text), number.isFinite else { throw ConfigurationReader.Invalid("write a number") }
        return number
    }

    func apply(to http: inout HTTPProbeSettings) throws {
        guard let path else { throw ConfigurationReader.Invalid("a value needs 'path'") }
        for comparison in comparisons.isEmpty ? [.exists(true)] : comparisons { try http.expectJSON(path, comparison) }
    }
}

extension ConfigurationReader {
    /// Reads a target: a map of keys, or the text of the target alone.
    mutating func target(_ node: ConfigurationNode, _ context: TargetContext) -> ConfiguredTarget? {
        if case .scalar = node.content {
            guard let endpoint = value(node, "target", Self.endpoint) else { return nil }
            let target = ConfiguredTarget(
                endpoint: endpoint, severity: context.severity, settings: context.probes, origin: node.origin)
            noteLack(of: target)
            return target
        }
        guard let unknown = Self.unknownEndpoint else { return nil }
        let known = problems.count
        var draft = TargetDraft(
            target: ConfiguredTarget(endpoint: unknown, settings: context.probes, origin: node.origin), context: context)
        let members = read(node, "targets", TargetDraft.keys, prefix: "", into: &draft)
        if members["target"].map({ $0.content == .empty }) ?? true {
            note(node.origin, "a target needs 'target', as in 'target: db.example:5432'")
        }
        guard draft.hasEndpoint else { return nil }
        var target = draft.target
        if target.endpoint.scheme.kind.isReported { refuseProbeKeys(members, target) }
        // Another error explains it.
        if problems.count == known { noteLack(of: target) }
        target.severity =
            target.severity ?? target.group.flatMap { context.groupSeverities[$0] } ?? context.severity
        return target
    }

    /// Notes the keys of probes in the map of a job, which nobody probes. Those of a class and of all targets may be for others.
    private mutating func refuseProbeKeys(_ members: [String: ConfigurationNode], _ target: ConfiguredTarget) {
        let ofIncidents: Set = ["open_after", "close_after"]
        let keys =
            ProbeSettings.pacingKeys.map(\.name).filter { !ofIncidents.contains($0) } + ["thresholds", "family", "interface"]
        for key in keys {
            guard let node = members[key] else { continue }
            note(
                node.origin,
                "'\(key)' has no effect on '\(Self.shown(target.endpoint.text))': a job reports by itself, and is not probed")
        }
    }

    private mutating func noteLack(of target: ConfiguredTarget) {
        if let problem = target.endpoint.exclusion(bySourceOf: target.settings) {
            note(target.origin, "the target '\(Self.shown(target.endpoint.text))' \(problem)")
        }
        let hasToken =
            !target.endpoint.scheme.has(HeartbeatSettings.self) || target.files.contains { $0.purpose == .heartbeatToken }
        guard let lack = target.endpoint.scheme.kind.lack(in: target.settings) ?? (hasToken ? nil : "needs heartbeat.token_file")
        else {
            return
        }
        note(target.origin, "the target '\(Self.shown(target.endpoint.text))' \(lack)")
    }

    /// Takes the place of a target whose text is not valid, so that its other keys are checked. All of them apply to https.
    private static let unknownEndpoint = try? Endpoint("https://target.invalid")

    @Sendable fileprivate static func endpoint(_ text: String) throws -> Endpoint {
        let endpoint = try Endpoint(text)
        guard !hasControlCharacters(text) else { throw Invalid("contains a control character") }
        return endpoint
    }

    /// Notes the targets whose history or whose name another target has.
    mutating func checkKeys(of targets: [ConfiguredTarget]) {
        var origins: [String: ConfigurationOrigin] = [:]
        for target in targets {
            guard let first = origins.updateValue(target.origin, forKey: target.key) else { continue }
            origins[target.key] = first
            let name = "\(target.id == nil ? "target" : "id") '\(Self.shown(target.key))'"
            let remedy = target.id == nil ? "; give one of them an 'id'" : ""
            switch (target.origin.isArgument, first.isArgument) {
            case (true, true): note(.argument(name), "is given twice")
            case (true, false): note(.argument(name), "is already used at \(first)")
            case (false, _): note(target.origin, "the \(name) is already used at \(first)\(remedy)")
            }
        }
    }

    fileprivate mutating func group(_ value: ConfigurationValue, of draft: inout TargetDraft) {
        guard let group = name(value.node, value.name) else { return }
        draft.target.group = group
        let known = draft.context.groups
        guard !known.names.isEmpty, !known.contains(group) else { return }
        note(value.node.origin, "the group '\(Self.shown(group))' is not in 'groups'", unknown: group, among: known.names)
    }

    /// Reads the class, whose settings replace the general ones.
    fileprivate mutating func className(_ value: ConfigurationValue, of draft: inout TargetDraft) {
        guard let name = text(value.node, value.name) else { return }
        guard let settings = draft.context.classes[name] else {
            return note(
                value.node.origin, "the class '\(Self.shown(name))' is not in 'classes'", unknown: name,
                among: draft.context.classNames)
        }
        draft.target.className = name
        (draft.target.labels, draft.target.severity) = (settings.labels, settings.severity)
        draft.target.settings = settings.settings
    }

    fileprivate mutating func family(_ value: ConfigurationValue, of draft: inout TargetDraft) {
        let family: IPAddress.Family? = self.value(value.node, value.name) { text in
            switch text {
            case "4": .v4
            case "6": .v6
            default: throw Invalid("write 4 or 6")
            }
        }
        guard let family else { return }
        draft.target.settings.families = [family]
        if case .address(let address, _) = draft.target.endpoint.host, address.family != family {
            note(value.node.origin, "the target is an \(address.family == .v4 ? "IPv4" : "IPv6") address")
        }
    }

    fileprivate mutating func basicCredentials(_ value: ConfigurationValue, of draft: inout TargetDraft) {
        var credentials = BasicCredentials()
        let members = read(value.node, value.name, BasicCredentials.keys, into: &credentials)
        guard let user = credentials.user, let file = members["password_file"] else {
            return note(value.node.origin, "'http.basic' needs 'user' and 'password_file'")
        }
        if value.siblings["bearer_file"] != nil { note(value.node.origin, "a request has either 'basic' or 'bearer_file'") }
        let password = ConfigurationValue(node: file, name: "\(value.name).password_file", siblings: members)
        addFile(password, .password(user: user), to: &draft.target)
    }

    /// Reads the proxy, with the hosts that do not use it.
    fileprivate mutating func proxy(_ value: ConfigurationValue, of draft: inout TargetDraft) {
        guard let url = text(value.node, value.name) else { return }
        let exceptions = value.siblings["no_proxy"].flatMap { text($0, "http.no_proxy", limit: 8_192) } ?? ""
        guard !url.contains("@") else {
            return note(value.node.origin, "\(value.name): write the credentials in the file of 'http.proxy_file'")
        }
        note(value.node, value.name) { try draft.http.setProxy(url, except: exceptions) }
    }

    fileprivate mutating func expectFields(_ value: ConfigurationValue, mustMatch: Bool, _ draft: inout TargetDraft) {
        for field in map(value.node, value.name) {
            guard let pattern = text(field.value, value.name, limit: 8_192) else { continue }
            note(field.value, value.name) { try draft.http.expectField(field.key, pattern, mustMatch: mustMatch) }
        }
    }

    /// Reads a number of bytes, which changes the accepted sizes.
    fileprivate mutating func size(
        _ value: ConfigurationValue, of draft: inout TargetDraft, _ ends: (Int, ClosedRange<Int>) -> (Int, Int)
    ) {
        guard let number = ConfigurationForm<Int>.number(in: 0...1_000_000_000).read(&self, value.node, value.name) else {
            return
        }
        let (least, most) = ends(number, draft.http.bodySizes ?? 0...Int.max)
        guard least <= most else { return note(value.node.origin, "'expect.min_size' is above 'expect.max_size'") }
        draft.http.bodySizes = least...most
    }

    fileprivate mutating func addFile(
        _ value: ConfigurationValue, _ purpose: ConfiguredTarget.FileReference.Purpose, to target: inout ConfiguredTarget
    ) {
        guard let path = text(value.node, value.name, limit: 4_095), !path.isEmpty else { return }
        target.files.append(ConfiguredTarget.FileReference(purpose: purpose, path: path, origin: value.node.origin))
    }

    /// Notes settings that have no effect on a target's kind of probe.
    fileprivate mutating func require<Settings: KindSettings>(
        _: Settings.Type, _ value: ConfigurationValue, _ members: Members, _ target: ConfiguredTarget
    ) {
        let scheme = target.endpoint.scheme
        guard !members.isEmpty, !scheme.has(Settings.self) else { return }
        let forms = Endpoint.Scheme.allCases.filter { $0.has(Settings.self) }.map(\.form.prefix)
        note(
            value.node.origin,
            "'\(value.name)' has no effect on a target of \(scheme.rawValue); write \(forms.joined(separator: " or "))")
    }

    /// Notes the error of a change, which is not made then.
    fileprivate mutating func note(_ node: ConfigurationNode, _ name: String, _ change: () throws -> Void) {
        do { try change() } catch { note(node.origin, "\(name): \(error)") }
    }
}
