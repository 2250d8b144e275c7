/// The `hosts` line of nsswitch.conf(5): the services that glibc asks for the addresses of a name, in their order.
struct NameServiceSwitch: Hashable, Sendable {
    /// A step in the resolution of one name. The first step that finds addresses ends the resolution.
    enum Step: Hashable, Sendable {
        /// The hosts file.
        case hosts
        /// The name servers of resolv.conf.
        case dns
        /// getaddrinfo(3), for the modules that only glibc can load.
        case libc
    }

    /// The services, without their actions.
    let services: [String]
    /// Whether an action such as `[NOTFOUND=return]` follows `files` or `dns`. Only glibc then finds the same addresses as other
    /// programs.
    let hasActions: Bool

    /// The services of a machine without the file or the line.
    init() { self.init(services: ["files", "dns"], hasActions: false) }

    /// Name servers alone.
    static let onlyDNS = NameServiceSwitch(services: ["dns"], hasActions: false)

    private init(services: [String], hasActions: Bool) {
        self.services = services
        self.hasActions = hasActions
    }

    /// Parses the text of a file. The first `hosts` line counts.
    init(parsing text: some Sequence<UInt8>) {
        for line in String(decoding: Array(text), as: UTF8.self).split(whereSeparator: \.isNewline) {
            let content = line.prefix { $0 != "#" }
            guard let colon = content.firstIndex(of: ":") else { continue }
            guard content[..<colon].filter({ !$0.isWhitespace }).lowercased() == "hosts" else { continue }
            var (services, hasActions): ([String], Bool) = ([], false)
            // An action may contain blanks: `[ NOTFOUND = return ]`.
            var isInAction = false
            for word in content[content.index(after: colon)...].split(whereSeparator: \.isWhitespace) {
                if word.hasPrefix("[") {
                    isInAction = true
                    if ["files", "dns"].contains(services.last) { hasActions = true }
                }
                if !isInAction { services.append(word.lowercased()) }
                if word.hasSuffix("]") { isInAction = false }
            }
            self.init(services: services, hasActions: hasActions)
            return
        }
        self.init()
    }

    /// Returns the steps for a name. `nameservers` are those of resolv.conf, and `hostName` is the name of this machine.
    ///
    /// Modules that are known to answer only certain names, mdns and myhostname, are asked for these names alone. A module that
    /// may answer every name decides by its place: before `dns` it is asked instead of the name servers, after `dns` only if
    /// these know no address. systemd's `resolve` gives the same answers as its stub resolver, so the stub is asked if
    /// resolv.conf names it.
    func steps(for name: String, nameservers: [ResolverConfiguration.Nameserver], hostName: String) -> [Step] {
        if hasActions { return [.libc] }
        let name = (name.hasSuffix(".") ? String(name.dropLast()) : name).lowercased()
        let isSingleLabel = !name.contains(".")
        let usesStub = !nameservers.isEmpty && nameservers.allSatisfy { Self.stubs.contains($0.address) }
        var steps: [Step] = []
        for service in services {
            switch service {
            case "files": if !steps.contains(.hosts) { steps.append(.hosts) }
            case "dns": if !steps.contains(.dns) { steps.append(.dns) }
            case _ where service.hasPrefix("mdns"):
                if name == "local" || name.hasSuffix(".local") { return Self.withLibc(steps) }
            case "myhostname":
                if Self.isOwn(name, hostName: hostName.lowercased()) { return Self.withLibc(steps) }
            case "resolve" where usesStub && !isSingleLabel:
                if !steps.contains(.dns) { steps.append(.dns) }
            default:
                if !steps.contains(.dns) { return Self.withLibc(steps) }
                if !steps.contains(.libc) { steps.append(.libc) }
            }
        }
        return steps
    }

    /// The stub resolver of systemd-resolved, and its proxy.
    private static let stubs: Set<IPAddress> = [IPAddress(v4: 0x7f00_0035), IPAddress(v4: 0x7f00_0036)]

    /// The hosts file is read here even if glibc answers, because an entry there is known without a thread.
    private static func withLibc(_ steps: [Step]) -> [Step] { steps.filter { $0 == .hosts } + [.libc] }

    /// The names that nss-myhostname(8) answers.
    private static func isOwn(_ name: String, hostName: String) -> Bool {
        name == hostName || ["_gateway", "_outbound", "localhost", "localhost.localdomain"].contains(name)
            || name.hasSuffix(".localhost") || name.hasSuffix(".localhost.localdomain")
    }
}
