internal import Reachability

/// The hosts that are connected to without a proxy, matched as libcurl 7.88 does (CURLOPT_NOPROXY(3), lib/noproxy.c).
struct ProxyExceptions: Sendable {
    private let isEveryHost: Bool
    private let names: [String]
    private let networks: [IPPrefix]

    /// Parses names, addresses and networks (`10.0.0.0/8`), separated by commas or spaces, or `*` alone.
    init(_ list: String) {
        let words = list.split { $0 == "," || $0 == " " }.map(String.init)
        isEveryHost = words == ["*"]
        networks = words.compactMap(ProxyExceptions.network)
        names = words.map { word in
            var name = word.lowercased()[...]
            if name.hasSuffix(".") { name = name.dropLast() }
            if name.hasPrefix(".") { name = name.dropFirst() }
            return String(name)
        }
    }

    /// Whether `host`, in lower case, is one of the hosts or a subdomain of one.
    func contains(_ host: String) -> Bool {
        if isEveryHost { return true }
        if let address = IPAddress(host) { return networks.contains { $0.contains(address) } }
        let host = host.hasSuffix(".") ? String(host.dropLast()) : host
        return names.contains { !$0.isEmpty && (host == $0 || host.hasSuffix(".\($0)")) }
    }

    private static func network(_ text: String) -> IPPrefix? {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = IPAddress(String(parts[0]).withoutBrackets) else { return nil }
        let fullLength: UInt8 = address.family == .v4 ? 32 : 128
        guard parts.count == 2 else { return IPPrefix(address, length: fullLength) }
        guard let length = UInt8(parts[1]), length <= fullLength else { return nil }
        return IPPrefix(address, length: length)
    }
}
