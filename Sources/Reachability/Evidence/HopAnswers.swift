/// The answers of a first hop to questions of its own, which need no privilege. A host answers each of them unless it filters:
/// a datagram to a closed port by ICMP (RFC 1122 section 4.1.3.1), a connection by RST or SYN-ACK, an echo request by an echo reply.
package struct HopAnswers: Hashable, Sendable {
    package enum Question: String, Hashable, Sendable, CaseIterable, Codable {
        case datagram, connection, echo

        /// The questions in a sentence.
        var plural: String {
            switch self {
            case .datagram: "datagrams"
            case .connection: "connections"
            case .echo: "echo requests"
            }
        }
    }

    /// The questions that were sent. This machine may not permit all of them.
    package var asked: [Question]
    /// The question that the hop answered first; `nil` if it answered none.
    package var answered: Question?

    package init(asked: [Question], answered: Question? = nil) {
        self.asked = asked
        self.answered = answered
    }
}
