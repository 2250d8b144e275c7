internal import ByteComparison

/// The resolution of one name for all requests that wait for it.
///
/// ```
///                 ┌──────────── no addresses, or failed ───────────┐
///                 ▼                                                │
///   next step ──▶ hosts file / getaddrinfo / DNS: next candidate ──┤
///                                                                  │
///                        addresses of one family: wait 50 ms ──────┼──▶ answer; the late family only updates the cache
///                        addresses of all families ────────────────┘
/// ```
struct RunningLookup: Hashable, Sendable {
    /// The requests with the same name and families are answered together.
    struct Key: Hashable, Sendable {
        /// The name as it was requested, in lowercase.
        @ExactString private(set) var name: String
        // A set would be slow to hash.
        private let hasV4, hasV6: Bool

        init(name: String, families: Set<IPAddress.Family>) {
            self.name = name
            (hasV4, hasV6) = (families.contains(.v4), families.contains(.v6))
        }

        /// The families, IPv6 first.
        var families: [IPAddress.Family] {
            switch (hasV6, hasV4) {
            case (true, true): Self.bothFamilies
            case (true, false): Self.onlyV6
            case (false, true): Self.onlyV4
            case (false, false): []
            }
        }

        // Stored: a lookup needs its families ten times.
        private static let bothFamilies: [IPAddress.Family] = [.v6, .v4]
        private static let onlyV6: [IPAddress.Family] = [.v6]
        private static let onlyV4: [IPAddress.Family] = [.v4]
    }

    /// The state of the question for one family.
    enum Question: Hashable, Sendable {
        case notAsked
        case asked(id: UInt64)
        // Indirect: there may be thousands of lookups that wait for their answers.
        indirect case answered(NameQuestionResult)
        /// The cache has the addresses.
        indirect case cached(NameCache.Entry)

        var addresses: [IPAddress] {
            switch self {
            case .notAsked, .asked: []
            case .answered(let result): result.addresses
            case .cached(let entry): entry.addresses
            }
        }

        var isOpen: Bool {
            switch self {
            case .notAsked, .asked: true
            case .answered, .cached: false
            }
        }

        var hasAddresses: Bool { !addresses.isEmpty }

        var result: FamilyLookup.Result {
            switch self {
            case .notAsked, .asked: .unanswered
            case .answered(let result): result.result
            case .cached(let entry): entry.addresses.isEmpty ? .noData : .addresses
            }
        }

        var server: ResolverConfiguration.Nameserver? {
            switch self {
            case .notAsked, .asked: nil
            case .answered(let result): result.server
            case .cached(let entry): entry.server
            }
        }

        var lookup: FamilyLookup {
            switch self {
            case .notAsked, .asked, .cached: FamilyLookup(result)
            case .answered(let answer): FamilyLookup(result, exchanges: answer.exchanges)
            }
        }
    }

    /// The resolution delay of RFC 8305 section 3, in nanoseconds.
    ///
    /// The RFC waits only for AAAA. This waits for A too, because each family is probed: if AAAA arrives first, A would otherwise
    /// be missing in the first probe.
    static let resolutionDelay: Int64 = 50_000_000

    private(set) var started: Int64
    /// The steps that remain after the present one, the last one first.
    var steps: [NameServiceSwitch.Step]
    /// The complete names that remain after the present one, the last one first.
    var candidates: [String] = []
    /// The complete name that DNS is asked for; `nil` if DNS is not asked now.
    var candidate: String?
    private var v4: Question?
    private var v6: Question?
    /// The number of the request to getaddrinfo that is running.
    var libcRequest: UInt64?
    /// The time at which the requests are answered although a family is missing.
    var answerDue: Int64?
    /// The time at which a question was sent that had to wait for others; `nil` if all were sent at once.
    var delayedUntil: Int64?
    var requests: [LookupRequest] = []
    /// Cached answers that are older are not used.
    var notBefore = Int64.min
    /// The cached answer that is asked for again, because an address of it has failed; `nil` if there is none.
    private var keptFallback: Boxed<CachedAnswer>?
    /// The most informative failure of the earlier candidates and steps.
    private var keptFailure: Boxed<LookupAnswer>?

    init(_ steps: [NameServiceSwitch.Step], started: Int64) {
        self.steps = steps.reversed()
        self.started = started
    }

    var failure: LookupAnswer? { keptFailure?.value }
    var fallback: CachedAnswer? { keptFallback?.value }

    /// Restarts the lookup because an address of a cached answer has failed.
    mutating func refresh(_ fallback: CachedAnswer, now: Int64) {
        keptFallback = Boxed(fallback)
        (started, answerDue) = (now, nil)
    }

    /// The time of the oldest cached addresses that the answer has; `nil` if there are none.
    var received: Int64? {
        questions.compactMap { question in
            if case .cached(let entry) = question, !entry.addresses.isEmpty { entry.received } else { nil }
        }.min()
    }

    /// The questions for the present name.
    var questions: [Question] { [v6, v4].compactMap { $0 } }
    var hasAddresses: Bool { v6?.hasAddresses ?? false || v4?.hasAddresses ?? false }
    var isComplete: Bool { !(v6?.isOpen ?? false || v4?.isOpen ?? false) }

    /// The question for a family; `nil` if DNS is not asked for it.
    subscript(family: IPAddress.Family) -> Question? {
        get { family == .v4 ? v4 : v6 }
        set { if family == .v4 { v4 = newValue } else { v6 = newValue } }
    }

    mutating func removeQuestions() { (v4, v6) = (nil, nil) }

    /// The numbers of the questions that are not answered yet.
    var openQuestions: [IPAddress.Family: UInt64] {
        var open: [IPAddress.Family: UInt64] = [:]
        for family in IPAddress.Family.allCases { if case .asked(let id) = self[family] { open[family] = id } }
        return open
    }

    /// The answer of DNS as far as it is known.
    var dnsAnswer: LookupAnswer {
        var answer = LookupAnswer(id: 0, answeredBy: .dns)
        (answer.v4, answer.v6) = (v4?.lookup, v6?.lookup)
        answer.addresses = merged
        answer.server = answer.addresses.first.flatMap { self[$0.family]?.server }
        guard answer.addresses.isEmpty else { return answer }
        answer.code =
            switch answer.families.map(\.result).negative {
            case .nameNotFound: NameCode.nameNotFound
            case .noData: NameCode.noData
            default: NameCode.tryAgain
            }
        return answer
    }

    /// The addresses of both families, at most 16: alternately, beginning with IPv6 (RFC 8305 section 4).
    private var merged: [IPAddress] {
        let (v6, v4) = (v6?.addresses ?? [], v4?.addresses ?? [])
        var addresses: [IPAddress] = []
        for index in 0..<max(v4.count, v6.count) {
            if index < v6.count { addresses.append(v6[index]) }
            if index < v4.count { addresses.append(v4[index]) }
        }
        return Array(addresses.prefix(NameTable.addressLimit))
    }

    /// Keeps the failure of a candidate or step if it says more than the earlier ones. As in glibc, a failing server says more
    /// than a missing family, and a missing family more than a missing name.
    mutating func keep(_ answer: LookupAnswer) {
        func rank(_ answer: LookupAnswer) -> Int {
            switch answer.code {
            case NameCode.nameNotFound: 0
            case NameCode.noData: 1
            default: 2
            }
        }
        guard let failure, rank(failure) > rank(answer) else { return keptFailure = Boxed(answer) }
    }
}

/// An answer from the cache that is used if no name server answers in time.
struct CachedAnswer: Hashable, Sendable {
    private let answer: LookupAnswer
    private let received: Int64
    /// The time at which the answer is used.
    let due: Int64

    /// Creates the answer; `nil` if the entries have no address.
    init?(_ entries: [(family: IPAddress.Family, entry: NameCache.Entry?)], due: Int64) {
        var lookup = RunningLookup([], started: 0)
        for (family, entry) in entries { lookup[family] = entry.map { .cached($0) } }
        guard let received = lookup.received else { return nil }
        (answer, self.received, self.due) = (lookup.dnsAnswer, received, due)
    }

    func answer(now: Int64) -> LookupAnswer {
        var answer = answer
        answer.ageNanoseconds = now - received
        return answer
    }
}

/// The codes of getaddrinfo(3) to which a failure of DNS corresponds, as glibc and musl number them.
enum NameCode {
    static let nameNotFound: Int32 = -2
    static let tryAgain: Int32 = -3
    static let noData: Int32 = -5
}
