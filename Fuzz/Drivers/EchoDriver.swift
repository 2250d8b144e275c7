@testable import Reachability

extension FuzzDriver {
    /// A datagram of an ICMP socket. The first byte chooses the family, and whether an IPv4 header precedes the message.
    static let echo = FuzzDriver(name: "echo") { input in
        guard let choice = input.first else { return }
        let bytes = Array(input.dropFirst())
        let family: IPAddress.Family = choice & 1 == 0 ? .v4 : .v6
        let hasHeader = choice & 2 != 0
        let reply = bytes.withUnsafeBytes { EchoMessage.reply($0, family, hasIPHeader: hasHeader) }
        if let reply {
            try require(bytes.count >= EchoMessage.headerLength + (hasHeader ? 20 : 0), "a reply of \(bytes.count) bytes")
            try require(reply.cookie.count <= 8, "a cookie of \(reply.cookie.count) bytes")
            let cookie = reply.cookie.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } << UInt64(8 * (8 - reply.cookie.count))
            try require(reply.matches(reply.cookie.isEmpty ? 0 : cookie), "the cookie does not match itself")
            // The request that this reply answers is no reply, and is what an error quotes.
            let request = EchoMessage.request(
                family, identifier: reply.identifier, sequence: reply.sequence, cookie: cookie, size: reply.cookie.count)
            try require(
                request.withUnsafeBytes { EchoMessage.reply($0, family, hasIPHeader: false) } == nil, "a request is a reply")
            let quoted = EchoMessage.quoted(request, family)
            try require(
                quoted?.identifier == reply.identifier && quoted?.sequence == reply.sequence,
                "quoted: \(String(describing: quoted))")
        }
        _ = EchoMessage.quoted(bytes, family)
    }
}
