/// A name that a target's machine requests to be resolved.
package struct LookupRequest: Hashable, Sendable {
    package var id: UInt64
    package var name: String
    package var families: Set<IPAddress.Family>
    /// The name server that alone is asked; `nil` for the system's way.
    var resolver: Boxed<NameServerAddress>?
    /// The latest time of an answer, on the monotonic clock in nanoseconds. If no answer has arrived by then, the request fails
    /// with the evidence so far.
    package var deadline: Int64
    /// The time at which an address of the name has failed, on the same clock; `.min` if none has. Answers that are older are asked for
    /// again, as far as ``NameTable/refreshesPerSecond`` allows.
    package var notBefore: Int64

    package init(
        id: UInt64, name: String, families: Set<IPAddress.Family>, deadline: Int64 = .max, notBefore: Int64 = .min
    ) {
        self.init(id: id, name: name, families: families, resolver: nil, deadline: deadline, notBefore: notBefore)
    }

    init(
        id: UInt64, name: String, families: Set<IPAddress.Family>, resolver: Boxed<NameServerAddress>?, deadline: Int64 = .max,
        notBefore: Int64 = .min
    ) {
        self.resolver = resolver
        self.id = id
        self.name = name
        self.families = families
        self.deadline = deadline
        self.notBefore = notBefore
    }
}

/// The answer to a request: the addresses of a name, or the evidence of the failure.
package struct LookupAnswer: Hashable, Sendable, Codable {
    /// The source of an answer.
    package enum Source: String, Hashable, Sendable, Codable {
        /// A name server.
        case dns
        /// The hosts file, or the reserved name localhost (RFC 6761 section 6.3).
        case hosts
        /// getaddrinfo(3), with the modules of nsswitch.conf(5).
        case nss
        /// Nothing was asked, because no name server is configured. Only earlier recordings have it: 127.0.0.1 is asked now.
        case notAsked = "nobody"
    }

    package var id: UInt64
    /// The addresses in the order in which they are to be used; at most 16.
    package var addresses: [IPAddress]
    /// The result code `EAI_*` of getaddrinfo(3), or the code that a failure of DNS corresponds to; 0 on success.
    package var code: Int32
    /// The errno for EAI_SYSTEM; otherwise 0.
    package var errno: Int32
    package var elapsedNanoseconds: Int64
    /// The part of the time during which the questions waited behind those of other names (``SendQueue``); `nil` if they did not wait,
    /// or if the answer is a failure that name servers reported.
    package var queuedNanoseconds: Int64?
    /// The time since a name server gave the addresses; 0 for a new answer, and `nil` for other sources.
    package var ageNanoseconds: Int64?
    /// `nil` in recordings of earlier versions, in which getaddrinfo answered.
    package var answeredBy: Source?
    /// The name server whose answer has the addresses; `nil` for other sources, and after a failure.
    package var server: ResolverConfiguration.Nameserver?
    /// The questions for IPv4 addresses (A); `nil` if DNS was not asked for them.
    package var v4: FamilyLookup?
    /// The questions for IPv6 addresses (AAAA); `nil` if DNS was not asked for them.
    package var v6: FamilyLookup?

    package init(
        id: UInt64, addresses: [IPAddress] = [], code: Int32 = 0, errno: Int32 = 0, elapsedNanoseconds: Int64 = 0,
        answeredBy: Source? = nil, server: ResolverConfiguration.Nameserver? = nil, v4: FamilyLookup? = nil,
        v6: FamilyLookup? = nil
    ) {
        self.id = id
        self.addresses = addresses
        self.code = code
        self.errno = errno
        self.elapsedNanoseconds = elapsedNanoseconds
        self.answeredBy = answeredBy
        self.server = server
        self.v4 = v4
        self.v6 = v6
    }

    /// The questions to DNS.
    package var families: [FamilyLookup] { [v4, v6].compactMap { $0 } }

    package subscript(family: IPAddress.Family) -> FamilyLookup? {
        get { family == .v4 ? v4 : v6 }
        set { if family == .v4 { v4 = newValue } else { v6 = newValue } }
    }
}

/// The result of asking DNS for the addresses of one family.
package struct FamilyLookup: Hashable, Sendable, Codable {
    package enum Result: String, Hashable, Sendable, Codable {
        /// The name has addresses.
        case addresses
        /// The name exists and has no address of this family (NODATA, RFC 2308 section 2.2).
        case noData = "no-data"
        /// The name does not exist (NXDOMAIN).
        case nameNotFound = "name-not-found"
        /// No name server gave a usable answer.
        case failed
        /// The question was not answered before the deadline, or before the answer of the other family was used.
        case unanswered
    }

    package var result: Result
    /// The messages exchanged with the name servers, one element for each server; empty if the answer was cached.
    package var exchanges: [NameServerExchange]

    package init(_ result: Result, exchanges: [NameServerExchange] = []) {
        self.result = result
        self.exchanges = exchanges
    }
}

extension Collection where Element == FamilyLookup.Result {
    /// What name servers say of a name without addresses: that it does not exist, or that it has none; `nil` if a family was not answered.
    ///
    /// A name is missing only if it is so in every family: servers of containers and meshes answer NXDOMAIN for the family that they do not
    /// serve, against RFC 8020.
    var negative: FamilyLookup.Result? {
        if allSatisfy({ $0 == .nameNotFound }) { return .nameNotFound }
        return allSatisfy { $0 == .nameNotFound || $0 == .noData } ? .noData : nil
    }
}

/// The outcome of asking one name server one question, with the evidence of its socket.
package struct NameServerExchange: Hashable, Sendable, Codable {
    package enum Outcome: String, Hashable, Sendable, Codable {
        /// The question was sent, and no message came back.
        case silent
        /// The server answered with ``NameServerExchange/rcode``.
        case answered
        /// Only messages came back that do not answer the question: another id, another question, or no DNS message.
        case invalid
        /// A system call failed with ``NameServerExchange/errno``.
        case failed
    }

    /// The datagrams that this machine refuses to send to a server.
    package enum Scope: String, Hashable, Sendable, Codable {
        /// All datagrams to the server's address.
        case address
        /// Datagrams to its DNS port.
        case port
    }

    package var server: ResolverConfiguration.Nameserver
    package var outcome: Outcome
    /// The response code (RFC 1035 section 4.1.1); `nil` without an answer.
    package var rcode: UInt8?
    /// The errno of a failed call; otherwise 0.
    package var errno: Int32
    /// The call that failed: `socket`, `connect`, `send` or `receive`.
    package var call: String?
    /// The sender of the ICMP message that caused the errno.
    package var reporter: ProbeResult.Reporter?
    /// `nil` unless the errno of `send` is EPERM.
    package var scope: Scope?
    /// Whether the question was asked over TCP, because the answer was truncated.
    package var isOverTCP: Bool
    /// Whether an answer without addresses has the flag AA or an SOA record; `nil` for other answers, and in recordings of earlier versions.
    package var isAuthoritative: Bool?
    /// The names of a loop of aliases (CNAME) in the answer, in order; `nil` if there is none.
    package var aliasLoop: [String]?
    /// Whether the server only refers to others, so that the next one was asked; `nil` if it does not.
    package var isReferral: Bool?

    package init(
        _ server: ResolverConfiguration.Nameserver, _ outcome: Outcome, rcode: UInt8? = nil, errno: Int32 = 0,
        call: String? = nil, reporter: ProbeResult.Reporter? = nil, scope: Scope? = nil, isOverTCP: Bool = false
    ) {
        self.server = server
        self.outcome = outcome
        self.rcode = rcode
        self.errno = errno
        self.call = call
        self.reporter = reporter
        self.scope = scope
        self.isOverTCP = isOverTCP
    }

    /// Whether the server answered without an error, or that the name does not exist. Used for answers without addresses.
    var isNegative: Bool { outcome == .answered && [0, 3].contains(rcode) && isReferral != true }
}
