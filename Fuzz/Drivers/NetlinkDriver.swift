@testable import Reachability

extension FuzzDriver {
    /// Datagrams of rtnetlink, which recordings keep as bytes.
    static let netlink = FuzzDriver(name: "netlink") { input in
        let messages = NetlinkDecoder.decode(input)
        // A message has at least a header of 16 bytes; a truncated one ends the datagram.
        try require(messages.count <= input.count / 16 + 1, "\(messages.count) messages")
        for message in messages {
            if case .done(let number) = message.event { try require(number >= 0, "errno \(number)") }
        }
        try require(NetlinkDecoder.decode(input) == messages, "a second decoding has another result")
    }
}
