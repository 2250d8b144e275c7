/// The contents of resolv.conf(5) as glibc reads them. Following glibc exactly avoids a resolver in the path that glibc itself
/// cannot use.
package struct ResolverConfiguration: Hashable, Sendable, Codable {
    package typealias Nameserver = NameServerAddress

    /// The maximum number of servers that glibc asks (`MAXNS` of resolv.h).
    package static let nameserverLimit = 3

    /// The servers in the order in which glibc asks them, at most ``nameserverLimit``.
    ///
    /// If there is none, glibc asks 127.0.0.1. That server is not listed here, because the file does not name it:
    /// ``askedNameservers`` has it.
    package var nameservers: [Nameserver]
    /// The domains in which short names are tried. The last `search` or `domain` line decides.
    package var search: [String]
    /// Whether the file exists.
    package var exists: Bool
    /// The number of dots from which a name is tried as it is before the domains of ``search`` (option `ndots`).
    package var ndots: Int
    /// Whether questions are asked over TCP only (option `use-vc`).
    package var usesTCP: Bool
    /// Whether names are resolved to IPv4 addresses only (option `no-aaaa`).
    package var isIPv4Only: Bool

    /// The maximum of ``ndots`` (`RES_MAXNDOTS` of resolv.h).
    private static let ndotsLimit = 15

    /// Creates a configuration; empty and absent by default.
    package init(
        nameservers: [Nameserver] = [], search: [String] = [], exists: Bool = false, ndots: Int = 1, usesTCP: Bool = false,
        isIPv4Only: Bool = false
    ) {
        self.nameservers = nameservers
        self.search = search
        self.exists = exists
        self.ndots = ndots
        self.usesTCP = usesTCP
        self.isIPv4Only = isIPv4Only
    }

    /// Decodes a configuration. Recordings of earlier versions have no options.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            nameservers: try container.decode([Nameserver].self, forKey: .nameservers),
            search: try container.decode([String].self, forKey: .search),
            exists: try container.decode(Bool.self, forKey: .exists),
            ndots: try container.decodeIfPresent(Int.self, forKey: .ndots) ?? 1,
            usesTCP: try container.decodeIfPresent(Bool.self, forKey: .usesTCP) ?? false,
            isIPv4Only: try container.decodeIfPresent(Bool.self, forKey: .isIPv4Only) ?? false)
    }

    /// Whether the file names at least one server. Without one, names can be resolved only by a server at 127.0.0.1.
    package var hasNameserver: Bool { !nameservers.isEmpty }

    /// The servers that are asked, each once: those of the file, or 127.0.0.1 if it names none, as in glibc.
    ///
    /// A connection to 0.0.0.0 or :: leads to this machine, and its answers come from 127.0.0.1 or ::1. glibc accepts them (`res_ourserver_p`
    /// of res_send.c), c-ares does not.
    package var askedNameservers: [Nameserver] {
        guard hasNameserver else { return [.implicit] }
        var asked: [Nameserver] = []
        for server in nameservers {
            let server = server.address.isUnspecified ? Nameserver(server.address.loopback, port: server.port) : server
            if !asked.contains(where: { $0.address == server.address }) { asked.append(server) }
        }
        return asked
    }

    /// Parses the text of an existing file. Like glibc, the parser skips invalid lines.
    ///
    /// The parser reads bytes, not characters: Swift joins CR and LF to one character. For glibc a CR is part of the address
    /// before it, and the line is invalid.
    package init(parsing text: some Sequence<UInt8>) {
        self.init(exists: true)
        for line in Array(text).split(separator: UInt8(ascii: "\n")) {
            // To glibc, a line is a C string and ends at a NUL.
            let line = line.prefix { $0 != 0 }
            // Keywords stand at the start of a line. Lines that start with the comment marks `#` and `;` match no keyword.
            guard let gap = line.firstIndex(where: Self.isBlank) else { continue }
            let words = line[gap...].split(whereSeparator: Self.isBlank).map { String(decoding: $0, as: UTF8.self) }
            guard let first = words.first else { continue }
            switch String(decoding: line[..<gap], as: UTF8.self) {
            case "nameserver":
                if nameservers.count < Self.nameserverLimit, let server = Nameserver(parsing: first) {
                    nameservers.append(server)
                }
            case "search": search = words
            case "domain": search = [first]
            case "options": for word in words { setOption(word) }
            default: break
            }
        }
    }

    // The options `timeout` and `attempts` have no effect here: the deadline of a probe limits a lookup.
    private mutating func setOption(_ word: String) {
        switch word {
        case "use-vc": usesTCP = true
        case "no-aaaa": isIPv4Only = true
        default:
            guard word.hasPrefix("ndots:"), let number = Int(word.dropFirst("ndots:".count)), number >= 0 else { return }
            ndots = min(number, Self.ndotsLimit)
        }
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
}

extension ResolverConfiguration.Nameserver {
    /// The server that is asked if resolv.conf names none.
    package static let implicit = Self(IPAddress(v4: 0x7f00_0001))

    /// Parses `ADDRESS`, or for IPv6 `ADDRESS%ZONE`. glibc's short forms of IPv4 (`127.1`) are refused, because no tool writes
    /// them.
    init?(parsing text: String) {
        let parts = text.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let address = IPAddress(first) else { return nil }
        guard parts.count == 2 else {
            self.init(address)
            return
        }
        guard address.family == .v6, !parts[1].isEmpty else { return nil }
        self.init(address, zone: String(parts[1]))
    }
}
