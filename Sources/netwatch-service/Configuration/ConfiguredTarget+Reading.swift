import Reachability

/// The parts of a configuration on which its targets depend.
struct TargetContext {
    var probes: ProbeSettings
    let severity: Configuration.Severity?
    let classes: [String: Configuration.TargetClass]
    /// The names of the groups; empty if the configuration lists none.
    let groups: NameList
    let classNames: [String]
    let groupSeverities: [String: Configuration.Severity]

    init(
        probes: ProbeSettings, severity: Configuration.Severity?, classes: [String: Configuration.TargetClass],
        groups: [Configuration.TargetGroup]
    ) {
        (self.probes, self.severity, self.classes, self.groups) = (probes, severity, classes, NameList(groups.map(\.name)))
        classNames = classes.keys.sorted()
        let severities = groups.compactMap { group in group.severity.map { (group.name, $0) } }
        groupSeverities = Dictionary(severities, uniquingKeysWith: { first, _ in first })
    }
}

/// Names in their order, of which each is found at once.
struct NameList {
    let names: [String]
    private let known: Set<String>

    init(_ names: [String]) { (self.names, known) = (names, Set(names)) }

    func contains(_ name: String) -> Bool { known.contains(name) }
}

extension ConfigurationReader {
    private static let targetKeys =
        [
            "id", "name", "target", "group", "class", "labels", "severity", "thresholds", "family", "interface", "http", "tls",
            "expect",
        ] + TargetPacing.keys

    /// Reads a target: a map of keys, or the text of the target alone.
    mutating func target(_ node: ConfigurationNode, _ context: TargetContext) -> ConfiguredTarget? {
        if case .scalar = node.content {
            guard let endpoint = value(node, "target", Self.endpoint) else { return nil }
            return ConfiguredTarget(
                endpoint: endpoint, severity: context.severity, settings: context.probes, origin: node.origin)
        }
        let members = members(node, "targets", keys: Self.targetKeys)
        let endpoint: Endpoint?
        if let address = members["target"], address.content != .empty {
            endpoint = value(address, "target", Self.endpoint)
        } else {
            note(node.origin, "a target needs 'target', as in 'target: db.example:5432'")
            endpoint = nil
        }
        // Without one, the errors of the other keys are shown too.
        guard let known = endpoint ?? Self.unknownEndpoint else { return nil }
        var target = ConfiguredTarget(endpoint: known, settings: context.probes, origin: node.origin)
        target.id = value(members["id"], "id", Self.identifier)
        target.name = name(members["name"], "name")
        readMembership(members, context, into: &target)
        pacing(members).apply(to: &target.settings)
        target.labels.merge(labels(members["labels"], "labels")) { $1 }
        let own = severity(members["severity"], "severity")
        target.severity =
            own ?? target.severity ?? target.group.flatMap { context.groupSeverities[$0] } ?? context.severity
        thresholds(members["thresholds"], "thresholds").apply(to: &target.settings.quality)
        readNetwork(members, into: &target)
        readTLS(members["tls"], into: &target)
        readRequest(members["http"], into: &target)
        readExpectation(members["expect"], into: &target)
        return endpoint == nil ? nil : target
    }

    /// Takes the place of a target whose text is not valid, so that its other keys are checked. All of them apply to https.
    private static let unknownEndpoint = try? Endpoint("https://target.invalid")

    private static func endpoint(_ text: String) throws -> Endpoint {
        let endpoint = try Endpoint(text)
        guard !hasControlCharacters(text) else { throw Invalid("contains a control character") }
        return endpoint
    }

    private static func identifier(_ text: String) throws(Invalid) -> String {
        let isValid = text.utf8.allSatisfy { byte in
            0x30...0x39 ~= byte || 0x41...0x5A ~= byte || 0x61...0x7A ~= byte || [0x2D, 0x2E, 0x5F].contains(byte)
        }
        guard isValid, 1...64 ~= text.utf8.count, text.utf8.first != 0x2E else {
            throw Invalid("write 1 to 64 letters, digits, '-', '_' or '.', and not '.' first")
        }
        return text
    }

    /// Reads the group, and the class, whose settings replace the general ones.
    private mutating func readMembership(_ members: Members, _ context: TargetContext, into target: inout ConfiguredTarget) {
        target.group = name(members["group"], "group")
        if let group = target.group, let node = members["group"], !context.groups.names.isEmpty, !context.groups.contains(group) {
            note(
                node.origin, "the group '\(Self.shown(group))' is not in 'groups'", unknown: group, among: context.groups.names)
        }
        guard let node = members["class"], let name = text(node, "class") else { return }
        guard let settings = context.classes[name] else {
            return note(
                node.origin, "the class '\(Self.shown(name))' is not in 'classes'", unknown: name,
                among: context.classNames)
        }
        target.className = name
        (target.labels, target.severity) = (settings.labels, settings.severity)
        settings.pacing.apply(to: &target.settings)
        settings.thresholds.apply(to: &target.settings.quality)
        if let bytes = settings.bytesPerDay { target.settings.metered.bytesPerDay = bytes }
    }

    private mutating func readNetwork(_ members: Members, into target: inout ConfiguredTarget) {
        let family: IPAddress.Family? = value(members["family"], "family") { text in
            switch text {
            case "4": .v4
            case "6": .v6
            default: throw Invalid("write 4 or 6")
            }
        }
        if let family {
            target.settings.families = [family]
            if case .address(let address, _) = target.endpoint.host, address.family != family {
                note(
                    members["family"]?.origin ?? target.origin,
                    "the target is an \(address.family == .v4 ? "IPv4" : "IPv6") address")
            }
        }
        let interface = value(members["interface"], "interface") { text in
            guard 1...127 ~= text.utf8.count, !text.contains(where: { $0.isWhitespace || $0 == "/" }) else {
                throw Invalid("not the name of an interface")
            }
            return text
        }
        if let interface { target.settings.interface = interface }
    }

    private mutating func readTLS(_ node: ConfigurationNode?, into target: inout ConfiguredTarget) {
        let members = members(node, "tls", keys: ["server_name", "cafile", "crlfile", "insecure", "certificate_days"])
        if let node, !members.isEmpty, target.endpoint.scheme == .tcp || target.endpoint.scheme == .http {
            note(node.origin, "'tls' has no effect on a target of \(target.endpoint.scheme.rawValue); write tls:// or https://")
        }
        if let name = text(members["server_name"], "tls.server_name", limit: 253) { target.settings.tls.serverName = name }
        if let isInsecure = flag(members["insecure"], "tls.insecure") { target.settings.tls.isInsecure = isInsecure }
        if let days = number(members["certificate_days"], "tls.certificate_days", in: 0...36_500) {
            target.settings.tls.certificateDays = days
        }
        addFile(members["cafile"], "tls.cafile", .authorities, to: &target)
        addFile(members["crlfile"], "tls.crlfile", .revocationLists, to: &target)
    }

    private mutating func addFile(
        _ node: ConfigurationNode?, _ name: String, _ purpose: ConfiguredTarget.FileReference.Purpose,
        to target: inout ConfiguredTarget
    ) {
        guard let node, let path = text(node, name, limit: 4_095), !path.isEmpty else { return }
        target.files.append(ConfiguredTarget.FileReference(purpose: purpose, path: path, origin: node.origin))
    }

    private mutating func readRequest(_ node: ConfigurationNode?, into target: inout ConfiguredTarget) {
        let members = members(
            node, "http", keys: ["method", "headers", "host", "body", "forward", "redirects", "basic", "bearer_file"])
        requireHTTP(node, "http", members, target)
        var http = target.settings.http
        if let method = text(members["method"], "http.method") {
            note(members["method"], "http.method") { try http.setMethod(method) }
        }
        if let host = text(members["host"], "http.host") { note(members["host"], "http.host") { try http.setHost(host) } }
        if let body = text(members["body"], "http.body", limit: 65_536) { http.body = Array(body.utf8) }
        if let follows = flag(members["redirects"], "http.redirects") { http.followsRedirects = follows }
        var headers: Set<String> = []
        for field in map(members["headers"], "http.headers") {
            headers.insert(field.key.lowercased())
            guard let value = text(field.value, "http.headers", limit: 8_192) else { continue }
            note(field.value, "http.headers") { try http.addField(field.key, value) }
        }
        for element in members["forward"]?.elements ?? [] {
            guard let name = text(element, "http.forward") else { continue }
            if !headers.contains(name.lowercased()) {
                note(element.origin, "'http.forward' names '\(Self.shown(name))', which is not in 'http.headers'")
            }
            http.forwardedFields.append(name)
        }
        target.settings.http = http
        addFile(members["bearer_file"], "http.bearer_file", .bearerToken, to: &target)
        guard let basic = members["basic"] else { return }
        let credentials = self.members(basic, "http.basic", keys: ["user", "password_file"])
        guard let user = text(credentials["user"], "http.basic.user"), credentials["password_file"] != nil else {
            return note(basic.origin, "'http.basic' needs 'user' and 'password_file'")
        }
        if members["bearer_file"] != nil { note(basic.origin, "a request has either 'basic' or 'bearer_file'") }
        addFile(credentials["password_file"], "http.basic.password_file", .password(user: user), to: &target)
    }

    private mutating func readExpectation(_ node: ConfigurationNode?, into target: inout ConfiguredTarget) {
        let members = members(node, "expect", keys: ["status", "version", "body", "headers"])
        requireHTTP(node, "expect", members, target)
        var http = target.settings.http
        if let statuses = text(members["status"], "expect.status") {
            note(members["status"], "expect.status") { try http.setStatuses(statuses) }
        }
        for element in members["version"]?.elements ?? [] {
            let version = value(element, "expect.version") { text in
                guard ["1.0", "1.1"].contains(text) else { throw Invalid("write 1.0 or 1.1") }
                return text
            }
            if let version { http.versions.insert(version) }
        }
        if let body = text(members["body"], "expect.body", limit: 8_192) {
            note(members["body"], "expect.body") { try http.expectBody(body) }
        }
        for field in map(members["headers"], "expect.headers") {
            guard let pattern = text(field.value, "expect.headers", limit: 8_192) else { continue }
            note(field.value, "expect.headers") { try http.expectField(field.key, pattern) }
        }
        target.settings.http = http
    }

    private mutating func requireHTTP(_ node: ConfigurationNode?, _ name: String, _ members: Members, _ target: ConfiguredTarget)
    {
        guard let node, !members.isEmpty, target.endpoint.scheme == .tcp || target.endpoint.scheme == .tls else { return }
        note(node.origin, "'\(name)' has no effect on a target of \(target.endpoint.scheme.rawValue); write http:// or https://")
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
}
