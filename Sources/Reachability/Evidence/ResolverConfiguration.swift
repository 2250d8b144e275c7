/// What resolv.conf(5) says, as glibc reads it: so that a file which glibc cannot use is not taken for a resolver.
package struct ResolverConfiguration: Hashable, Sendable, Codable {
    /// A server that answers questions about names.
    package struct Nameserver: Hashable, Sendable, Codable, CustomStringConvertible {
        package var address: IPAddress
        /// The interface of a link-local address, by name or number.
        package var zone: String?

        package init(_ address: IPAddress, zone: String? = nil) {
            self.address = address
            self.zone = zone
        }

        /// `ADDRESS`, or `ADDRESS%ZONE`.
        package var description: String { zone.map { "\(address)%\($0)" } ?? "\(address)" }
    }

    /// glibc asks no more servers than this (`MAXNS` of resolv.h).
    package static let nameserverLimit = 3

    /// The servers in the order of asking, at most ``nameserverLimit``.
    ///
    /// glibc asks 127.0.0.1 when there is none. That is not repeated here: nobody configured it.
    package var nameservers: [Nameserver]
    /// The domains that short names are tried in. The last `search` or `domain` line decides.
    package var search: [String]
    /// Whether there is a file at all.
    package var exists: Bool

    /// A configuration; empty and absent unless given.
    package init(nameservers: [Nameserver] = [], search: [String] = [], exists: Bool = false) {
        self.nameservers = nameservers
        self.search = search
        self.exists = exists
    }

    /// Whether names can be asked for: at least one server is configured.
    package var hasNameserver: Bool { !nameservers.isEmpty }

    /// Reads the text of a file that exists. Whatever is not understood is skipped, as glibc does.
    ///
    /// Bytes, not characters: Swift joins CR and LF to one character, while to glibc a CR is a part of the address before it,
    /// which makes that line useless.
    package init(parsing text: some Sequence<UInt8>) {
        self.init(exists: true)
        for line in Array(text).split(separator: UInt8(ascii: "\n")) {
            // The C string ends at a NUL.
            let line = line.prefix { $0 != 0 }
            // Keywords stand at the line's start; so do the marks of a comment, `#` and `;`, which then match no keyword.
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
            default: break
            }
        }
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
}

extension ResolverConfiguration.Nameserver {
    /// `ADDRESS`, or for IPv6 `ADDRESS%ZONE`. glibc's short forms of IPv4 (`127.1`) are not read: nothing writes them.
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
