/// One question to DNS: a complete name and a family of addresses.
package struct NameQuestion: Hashable, Sendable {
    package var id: UInt64
    /// The name without a final dot.
    package var name: String
    package var family: IPAddress.Family

    package init(id: UInt64, name: String, family: IPAddress.Family) {
        self.id = id
        self.name = name
        self.family = family
    }
}

/// The result of a question, with the evidence from its sockets.
package struct NameQuestionResult: Hashable, Sendable {
    package var id: UInt64
    package var result: FamilyLookup.Result
    /// The first addresses of the answer.
    package var addresses: [IPAddress]
    /// The shortest TTL of the answer's records, in seconds.
    package var ttl: UInt32
    package var exchanges: [NameServerExchange]

    package init(
        id: UInt64, _ result: FamilyLookup.Result, addresses: [IPAddress] = [], ttl: UInt32 = 0,
        exchanges: [NameServerExchange] = []
    ) {
        self.id = id
        self.result = result
        self.addresses = addresses
        self.ttl = ttl
        self.exchanges = exchanges
    }

    /// The server that answered.
    var server: ResolverConfiguration.Nameserver? { exchanges.first { $0.isNegative && $0.rcode == 0 }?.server }
}
