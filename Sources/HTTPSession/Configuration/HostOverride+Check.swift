internal import FoundationEssentials
internal import Reachability

extension SessionConfiguration.HostOverride {
    /// The reason why libcurl would misread the override; `nil` if the override is valid.
    ///
    /// `CURLOPT_RESOLVE` gives a leading `+` or `-`, the host `*`, and every `:` and `,` a special meaning.
    var objection: String? {
        guard (1...65_535).contains(port) else { return "the port is not 1 to 65535" }
        guard isHostName(host) else { return "the host is not a valid host name" }
        guard !addresses.isEmpty else { return "no address is given" }
        guard addresses.allSatisfy({ IPAddress($0.withoutBrackets) != nil }) else {
            return "the addresses are not all IPv4 or IPv6 addresses"
        }
        return nil
    }

    /// Whether the text has at most 253 letters, digits, hyphens, dots and underscores, in labels of 1 to 63.
    private func isHostName(_ host: String) -> Bool {
        let name = host.hasSuffix(".") ? host.dropLast() : host[...]
        guard RequestURL.isPlain(host), (1...253).contains(name.utf8.count), !name.hasPrefix("-") else { return false }
        return name.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
            (1...63).contains(label.utf8.count)
                && label.utf8.allSatisfy { byte in
                    switch byte {
                    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): true
                    default: false
                    }
                }
        }
    }
}
