import Expectations
import Testing

@testable import Reachability

/// Plays events to a table and lists its effects, one short line for each. Times are milliseconds.
private struct TableTranscript {
    var table = NameTable()
    private var numbers: [String: UInt64] = [:]
    private var libcRequest: UInt64 = 0
    private(set) var answers: [LookupAnswer] = []
    private(set) var unanswered: [IPAddress.Family: UInt64] = [:]

    static let server = ResolverConfiguration.Nameserver(IPAddress(v4: 0xc000_0235))

    init(_ resolver: String = "nameserver 192.0.2.53\n", services: String = "", hosts: String = "") {
        _ = configure(0, resolver, services: services, hosts: hosts)
    }

    mutating func configure(_ milliseconds: Int64, _ resolver: String, services: String = "", hosts: String = "") -> [String] {
        var configuration = NameTable.Configuration()
        configuration.resolver = ResolverConfiguration(parsing: resolver.utf8)
        configuration.services = NameServiceSwitch(parsing: services.utf8)
        configuration.hosts = HostsFile(parsing: hosts.utf8)
        return lines(table.configure(configuration, now: milliseconds * 1_000_000))
    }

    mutating func resolve(
        _ milliseconds: Int64, _ id: UInt64, _ name: String = "a.example", _ families: Set<IPAddress.Family> = [.v4, .v6],
        deadline: Int64 = 3_000, failed: Int64? = nil
    ) -> [String] {
        let request = LookupRequest(
            id: id << 32, name: name, families: families, deadline: (milliseconds + deadline) * 1_000_000,
            notBefore: failed.map { $0 * 1_000_000 } ?? .min)
        return lines(table.resolve(request, now: milliseconds * 1_000_000))
    }

    /// Answers the last question of this text, such as `A a.example`, with addresses and a TTL of 60 s, or with a result.
    mutating func answer(
        _ milliseconds: Int64, _ question: String, _ addresses: String..., result: FamilyLookup.Result = .noData,
        _ outcome: NameServerExchange.Outcome = .answered, rcode: UInt8? = 0
    ) -> [String] {
        let result = NameQuestionResult(
            id: numbers[question] ?? 0, addresses.isEmpty ? result : .addresses,
            addresses: addresses.compactMap { IPAddress($0) }, ttl: 60,
            exchanges: [NameServerExchange(Self.server, outcome, rcode: rcode)])
        return lines(table.answered(result, now: milliseconds * 1_000_000))
    }

    mutating func libcAnswers(_ milliseconds: Int64, _ addresses: String..., code: Int32 = 0) -> [String] {
        let answer = LookupAnswer(id: libcRequest, addresses: addresses.compactMap { IPAddress($0) }, code: code)
        return lines(table.libcAnswered(answer, now: milliseconds * 1_000_000))
    }

    mutating func tick(_ milliseconds: Int64) -> [String] { lines(table.tick(now: milliseconds * 1_000_000)) }

    /// The time in milliseconds at which the table wants its next tick.
    var tickDue: Int64? { table.deadline.map { $0 / 1_000_000 } }

    private mutating func lines(_ effects: [NameTable.Effect]) -> [String] {
        effects.map { effect in
            switch effect {
            case .ask(let question):
                let text = "\(question.family == .v4 ? "A" : "AAAA") \(question.name)"
                numbers[text] = question.id
                return text
            case .askLibc(let request):
                libcRequest = request.id
                return "getaddrinfo \(request.name)"
            case .cancelLibc(let target):
                return TargetID(owning: libcRequest) == target ? "cancel getaddrinfo" : "cancel another"
            case .answer(let answer, let unanswered):
                answers.append(answer)
                self.unanswered = unanswered
                let result = answer.code == 0 ? answer.addresses.map(\.description).joined(separator: " ") : "code \(answer.code)"
                return "\(answer.id >> 32): \(result)"
            }
        }
    }
}

@Suite struct NameTableTests {
    @Test func `both families are asked, and answered together, IPv6 first`() {
        var names = TableTranscript()
        expectEqual(names.resolve(0, 1), ["AAAA a.example", "A a.example"])
        expectEqual(names.answer(10, "A a.example", "192.0.2.1", "192.0.2.2"), [])
        expectEqual(names.answer(20, "AAAA a.example", "2001:db8::1"), ["1: 2001:db8::1 192.0.2.1 192.0.2.2"])
        expectEqual(names.answers.first?.answeredBy, .dns)
        expectEqual(names.answers.first?.server, TableTranscript.server)
        expectEqual(names.answers.first?.elapsedNanoseconds, 20_000_000)
    }

    @Test(arguments: [("A", "AAAA", "192.0.2.1", "2001:db8::1"), ("AAAA", "A", "2001:db8::1", "192.0.2.1")])
    func `an answer waits 50 ms for the other family, whose late answer is cached`(
        first: String, other: String, address: String, late: String
    ) {
        var names = TableTranscript()
        _ = names.resolve(0, 1)
        expectEqual(names.answer(10, "\(first) a.example", address), [])
        expectEqual(names.tickDue, 60)
        expectEqual(names.tick(59), [])
        expectEqual(names.tick(60), ["1: \(address)"])
        expectEqual(names.unanswered.count, 1)
        // Another target does not wait again.
        expectEqual(names.resolve(100, 2), ["2: \(address)"])
        expectEqual(names.answer(400, "\(other) a.example", late), [])
        expectEqual(names.resolve(500, 3), ["3: 2001:db8::1 192.0.2.1"])
    }

    @Test func `a missing family is cached beside the addresses of the other one`() {
        var names = TableTranscript()
        _ = names.resolve(0, 1)
        _ = names.answer(1, "AAAA a.example")
        expectEqual(names.answer(2, "A a.example", "192.0.2.1"), ["1: 192.0.2.1"])
        expectEqual(names.resolve(10_000, 1), ["1: 192.0.2.1"])
        expectEqual(names.resolve(60_001, 1), ["1: 192.0.2.1"])
        expectEqual(names.resolve(60_002, 1), ["AAAA a.example", "A a.example"])
    }

    @Test func `a failed family is asked again with the next request, and delays it by at most 50 ms`() {
        var names = TableTranscript()
        _ = names.resolve(0, 1)
        _ = names.answer(1, "A a.example", "192.0.2.1")
        expectEqual(names.tick(51), ["1: 192.0.2.1"])
        expectEqual(names.answer(2_100, "AAAA a.example", result: .failed, .silent, rcode: nil), [])
        expectEqual(names.resolve(10_000, 1), ["AAAA a.example"])
        expectEqual(names.tick(10_050), ["1: 192.0.2.1"])
    }

    @Test(arguments: [("AAAA a.example", "A a.example"), ("A a.example", "AAAA a.example")])
    func `a name that does not exist in one family may have addresses of the other, whichever comes first`(
        missing: String, found: String
    ) {
        var names = TableTranscript()
        _ = names.resolve(0, 1)
        let address = found.hasPrefix("AAAA") ? "2001:db8::1" : "192.0.2.1"
        expectEqual(names.answer(5, missing, result: .nameNotFound, rcode: 3), [])
        expectEqual(names.answer(9, found, address), ["1: \(address)"])
        names = TableTranscript()
        _ = names.resolve(0, 1)
        _ = names.answer(5, found, address)
        expectEqual(names.answer(9, missing, result: .nameNotFound, rcode: 3), ["1: \(address)"])
    }

    @Test func `a name that does not exist in one family, and has no address in the other, has no address`() {
        var names = TableTranscript()
        _ = names.resolve(0, 1)
        _ = names.answer(5, "AAAA a.example", result: .nameNotFound, rcode: 3)
        expectEqual(names.answer(9, "A a.example", result: .noData, rcode: 0), ["1: code -5"])
        _ = names.resolve(10, 1)
        _ = names.answer(15, "AAAA a.example", result: .nameNotFound, rcode: 3)
        expectEqual(names.answer(19, "A a.example", result: .failed, rcode: 2), ["1: code -3"])
    }

    @Test func `a name that does not exist in any family ends the lookup, and is not cached`() {
        var names = TableTranscript()
        _ = names.resolve(0, 1)
        expectEqual(names.answer(5, "AAAA a.example", result: .nameNotFound, rcode: 3), [])
        expectEqual(names.answer(9, "A a.example", result: .nameNotFound, rcode: 3), ["1: code -2"])
        expectEqual(names.resolve(10, 1), ["AAAA a.example", "A a.example"])
    }

    @Test func `1,000 targets of one name share one question for each family, and its answer until the TTL`() {
        var names = TableTranscript()
        expectEqual(names.resolve(0, 0).count, 2)
        for target in 1..<1_000 as Range<UInt64> { expectEqual(names.resolve(0, target), []) }
        _ = names.answer(1, "A a.example", "192.0.2.1")
        expectEqual(names.answer(2, "AAAA a.example", "2001:db8::1").count, 1_000)
        for target in 0..<1_000 as Range<UInt64> {
            expectEqual(names.resolve(59_000, target), ["\(target): 2001:db8::1 192.0.2.1"])
        }
    }

    /// A table that has the address of a name since time 1.
    private func cached() -> TableTranscript {
        var names = TableTranscript()
        _ = names.resolve(0, 1, "a.example", [.v4])
        _ = names.answer(1, "A a.example", "192.0.2.1")
        return names
    }

    @Test func `an address that has failed is asked for again once for each failure, long before its TTL`() {
        var names = cached()
        expectEqual(names.resolve(10_000, 1, "a.example", [.v4]), ["1: 192.0.2.1"])
        expectEqual(names.answers.last?.ageNanoseconds, 9_999_000_000)
        expectEqual(names.resolve(10_001, 1, "a.example", [.v4], failed: 10_001), ["A a.example"])
        expectEqual(names.answer(10_002, "A a.example", "192.0.2.9"), ["1: 192.0.2.9"])
        expectEqual(names.answers.last?.ageNanoseconds, 0)
        // The answer is newer than the failure, also for other targets of the name.
        expectEqual(names.resolve(11_000, 1, "a.example", [.v4], failed: 10_001), ["1: 192.0.2.9"])
        expectEqual(names.resolve(11_000, 2, "a.example", [.v4], failed: 9_000), ["2: 192.0.2.9"])
        expectEqual(names.resolve(12_000, 1, "a.example", [.v4], failed: 12_000), ["A a.example"])
    }

    @Test func `a failed address of one family is asked for again while the other family is awaited`() {
        var names = TableTranscript()
        _ = names.resolve(0, 1)
        _ = names.answer(1, "A a.example", "192.0.2.1")
        expectEqual(names.tick(51), ["1: 192.0.2.1"])
        expectEqual(names.resolve(60, 1, failed: 60), ["A a.example"])
        expectEqual(names.answer(61, "A a.example", "192.0.2.9"), [])
        expectEqual(names.answer(62, "AAAA a.example", result: .failed, .silent, rcode: nil), ["1: 192.0.2.9"])
    }

    @Test func `at most 20 failed addresses in a second are asked for again, the others stay cached`() {
        var names = TableTranscript()
        for target in 0..<100 as Range<UInt64> {
            _ = names.resolve(0, target, "n\(target).example", [.v4])
            _ = names.answer(1, "A n\(target).example", "192.0.2.1")
        }
        func asked(at time: Int64) -> Int {
            (0..<100 as Range<UInt64>).count { target in
                names.resolve(time, target, "n\(target).example", [.v4], failed: time) == ["A n\(target).example"]
            }
        }
        expectEqual(asked(at: 10_000), 20)
        for target in 0..<20 as Range<UInt64> { _ = names.answer(10_001, "A n\(target).example", "192.0.2.1") }
        expectEqual(asked(at: 10_050), 1)
        _ = names.answer(10_051, "A n0.example", "192.0.2.1")
        expectEqual(asked(at: 11_050), 20)
    }

    @Test func `the cached address is used after half a second without an answer, and at once if the name server fails`() {
        var names = cached()
        expectEqual(names.resolve(10_000, 1, "a.example", [.v4], failed: 10_000), ["A a.example"])
        expectEqual(names.tick(10_499), [])
        expectEqual(names.tick(10_500), ["1: 192.0.2.1"])
        expectEqual(names.answers.last?.ageNanoseconds, 10_499_000_000)
        // The question is still open.
        expectEqual(names.resolve(10_600, 2, "a.example", [.v4], failed: 10_600), ["2: 192.0.2.1"])
        expectEqual(names.answer(12_100, "A a.example", result: .failed, .silent, rcode: nil), [])
        expectEqual(names.resolve(12_200, 1, "a.example", [.v4], failed: 12_200), ["A a.example"])
        expectEqual(names.answer(12_201, "A a.example", result: .failed, rcode: 2), ["1: 192.0.2.1"])
        expectEqual(names.answers.last?.ageNanoseconds, 12_200_000_000)
        // A deadline of less than a second leaves half of it for the target.
        expectEqual(names.resolve(13_000, 1, "a.example", [.v4], deadline: 300, failed: 13_000), ["A a.example"])
        expectEqual(names.tick(13_150), ["1: 192.0.2.1"])
    }

    @Test(arguments: [(FamilyLookup.Result.nameNotFound, UInt8(3), "code -2"), (.noData, 0, "code -5")])
    func `a name server's negative answer ends the cached address of a failed one`(
        result: FamilyLookup.Result, rcode: UInt8, code: String
    ) {
        var names = cached()
        expectEqual(names.resolve(10_000, 1, "a.example", [.v4], failed: 10_000), ["A a.example"])
        expectEqual(names.answer(10_001, "A a.example", result: result, rcode: rcode), ["1: \(code)"])
        expectEqual(names.resolve(11_000, 1, "a.example", [.v4]), ["A a.example"])
    }

    @Test func `a failed address is asked for again with the complete search list`() {
        var names = TableTranscript("nameserver 192.0.2.53\nsearch one.example two.example\n")
        _ = names.resolve(0, 1, "box", [.v4])
        _ = names.answer(1, "A box.one.example", result: .nameNotFound, rcode: 3)
        _ = names.answer(2, "A box.two.example", "192.0.2.1")
        expectEqual(names.resolve(10, 1, "box", [.v4], failed: 10), ["A box.one.example"])
        expectEqual(names.answer(11, "A box.one.example", "192.0.2.9"), ["1: 192.0.2.9"])
    }

    @Test func `the case of a name does not matter`() {
        var names = TableTranscript()
        _ = names.resolve(0, 1, "A.example", [.v4])
        expectEqual(names.resolve(0, 2, "a.EXAMPLE", [.v4]), [])
        expectEqual(names.answer(1, "A a.example", "192.0.2.1"), ["1: 192.0.2.1", "2: 192.0.2.1"])
    }

    @Test func `a newer request of a target replaces the older one, and a canceled one is not answered`() {
        var names = TableTranscript()
        _ = names.resolve(0, 1, "a.example", [.v4])
        _ = names.resolve(0, 1, "b.example", [.v4])
        _ = names.resolve(0, 2, "b.example", [.v4])
        names.table.cancel(TargetID(2))
        expectEqual(names.answer(1, "A a.example", "192.0.2.1"), [])
        expectEqual(names.answer(1, "A b.example", "192.0.2.2"), ["1: 192.0.2.2"])
        expectEqual(names.tick(5_000), [])
    }

    @Test func `a request fails at its deadline with the evidence so far, and the answer is cached`() {
        var names = TableTranscript()
        _ = names.resolve(0, 1, "a.example", [.v4], deadline: 500)
        expectEqual(names.tickDue, 500)
        expectEqual(names.tick(500), ["1: code -3"])
        expectEqual(names.answers.last?.v4?.result, .unanswered)
        #expect(names.unanswered.keys.contains(.v4))
        expectEqual(names.answer(600, "A a.example", "192.0.2.1"), [])
        expectEqual(names.resolve(1_000, 1, "a.example", [.v4]), ["1: 192.0.2.1"])
    }

    /// Resolves 300 names at time 0, each with two questions, of which 256 are sent at once. Returns the table's transcript.
    private func crowd(deadline: Int64) -> TableTranscript {
        var names = TableTranscript()
        for target in 0..<300 as Range<UInt64> { _ = names.resolve(0, target, "n\(target).example", deadline: deadline) }
        return names
    }

    @Test func `at the deadline, an answer has the time for which its questions waited, and they keep their places`() {
        var names = crowd(deadline: 70)
        expectEqual(names.tick(50).count, 256)
        expectEqual(names.tick(70).count, 300)
        let queued = names.answers.sorted { $0.id < $1.id }.map { $0.queuedNanoseconds.map { $0 / 1_000_000 } }
        #expect(queued[..<128].allSatisfy { $0 == nil })
        #expect(queued[128..<256].allSatisfy { $0 == 50 })
        #expect(queued[256...].allSatisfy { $0 == 70 })
        expectEqual(names.resolve(70, 299, "n299.example"), [])
        expectEqual(names.tick(100).suffix(2), ["AAAA n299.example", "A n299.example"])
        _ = names.answer(110, "AAAA n299.example")
        expectEqual(names.answer(110, "A n299.example", "192.0.2.1"), ["299: 192.0.2.1"])
        expectEqual(names.answers.last?.queuedNanoseconds, 30_000_000)
        // The addresses are cached.
        expectEqual(names.resolve(110, 299, "n299.example"), ["299: 192.0.2.1"])
        expectNil(names.answers.last?.queuedNanoseconds)
    }

    @Test func `the failure of a name server is no matter of the time in the queue`() {
        var names = crowd(deadline: 3_000)
        _ = names.tick(50)
        _ = names.answer(60, "AAAA n200.example", result: .failed, rcode: 2)
        expectEqual(names.answer(60, "A n200.example", result: .failed, rcode: 2).first, "200: code -3")
        expectNil(names.answers.last?.queuedNanoseconds)
    }

    @Test func `the search list is followed until a name has addresses`() {
        var names = TableTranscript("nameserver 192.0.2.53\nsearch one.example two.example\n")
        expectEqual(names.resolve(0, 1, "box", [.v4]), ["A box.one.example"])
        expectEqual(names.answer(1, "A box.one.example", result: .nameNotFound, rcode: 3), ["A box.two.example"])
        // A server that fails for one name may know the next one.
        expectEqual(names.answer(2, "A box.two.example", result: .failed, rcode: 2), ["A box"])
        expectEqual(names.answer(3, "A box", "192.0.2.1"), ["1: 192.0.2.1"])
        // The name that has the addresses is asked for the other family.
        expectEqual(names.resolve(4, 1, "box"), ["AAAA box"])
    }

    @Test func `the most informative failure of the search list is answered`() {
        var names = TableTranscript("nameserver 192.0.2.53\nsearch one.example\n")
        _ = names.resolve(0, 1, "box", [.v4])
        _ = names.answer(1, "A box.one.example")
        expectEqual(names.answer(2, "A box", result: .nameNotFound, rcode: 3), ["1: code -5"])
        _ = names.resolve(3, 1, "box", [.v4])
        // A silent server would be silent for the next name too.
        expectEqual(names.answer(9, "A box.one.example", result: .failed, .silent, rcode: nil), ["1: code -3"])
    }

    @Test func `the hosts file comes before DNS, or after it if nsswitch.conf says so`() {
        var names = TableTranscript(hosts: "192.0.2.7 a.example\n")
        expectEqual(names.resolve(0, 1), ["1: 192.0.2.7"])
        expectEqual(names.answers.last?.answeredBy, .hosts)
        names = TableTranscript(services: "hosts: dns files\n", hosts: "192.0.2.7 a.example\n")
        expectEqual(names.resolve(0, 1, "a.example", [.v4]), ["A a.example"])
        expectEqual(names.answer(1, "A a.example", result: .nameNotFound, rcode: 3), ["1: 192.0.2.7"])
    }

    @Test func `without a configured name server the question is asked nevertheless`() {
        var names = TableTranscript("")
        expectEqual(names.resolve(0, 1, "a.example", [.v4]), ["A a.example"])
        expectEqual(names.answer(1, "A a.example", "192.0.2.1"), ["1: 192.0.2.1"])
    }

    @Test func `getaddrinfo is asked after DNS has failed, and DNS's evidence stays if both fail`() {
        var names = TableTranscript(services: "hosts: files dns mymachines\n")
        _ = names.resolve(0, 1, "a.example", [.v4])
        expectEqual(names.answer(1, "A a.example", result: .nameNotFound, rcode: 3), ["getaddrinfo a.example"])
        expectEqual(names.libcAnswers(2, "192.0.2.1"), ["1: 192.0.2.1"])
        expectEqual(names.answers.last?.answeredBy, .nss)
        _ = names.resolve(3, 1, "a.example", [.v4])
        _ = names.answer(4, "A a.example", result: .nameNotFound, rcode: 3)
        expectEqual(names.libcAnswers(5, code: -2), ["1: code -2"])
        expectEqual(names.answers.last?.answeredBy, .dns)
    }

    @Test func `getaddrinfo is given up at the deadline of its last request`() {
        var names = TableTranscript(services: "hosts: files wins dns\n")
        expectEqual(names.resolve(0, 1, deadline: 1_000), ["getaddrinfo a.example"])
        expectEqual(names.resolve(500, 2, deadline: 1_000), [])
        expectEqual(names.tick(1_000), ["1: code -3"])
        expectEqual(names.tick(1_500), ["2: code -3", "cancel getaddrinfo"])
        expectEqual(names.answers.last?.answeredBy, .nss)
        expectEqual(names.libcAnswers(1_600, "192.0.2.1"), [])
        expectEqual(names.resolve(2_000, 1), ["getaddrinfo a.example"])
    }

    @Test func `another configuration restarts the running lookups and empties the cache`() {
        var names = TableTranscript()
        _ = names.resolve(0, 1, "a.example", [.v4])
        _ = names.answer(1, "A a.example", "192.0.2.1")
        _ = names.resolve(2, 2, "b.example", [.v4])
        expectEqual(names.configure(3, "nameserver 192.0.2.53\n"), [])
        expectEqual(names.configure(4, "nameserver 192.0.2.54\n"), ["A b.example"])
        expectEqual(names.resolve(5, 1, "a.example", [.v4]), ["A a.example"])
        expectEqual(names.configure(6, ""), ["A a.example", "A b.example"])
    }

    @Test func `with the option no-aaaa, only IPv4 is asked unless IPv6 alone is wanted`() {
        var names = TableTranscript("nameserver 192.0.2.53\noptions no-aaaa\n")
        expectEqual(names.resolve(0, 1), ["A a.example"])
        expectEqual(names.resolve(0, 2, "b.example", [.v6]), ["AAAA b.example"])
    }

    @Test func `of 200 addresses of each family, 16 are used, half of them IPv6`() {
        var names = TableTranscript()
        _ = names.resolve(0, 1)
        var result = NameQuestionResult(id: 1, .addresses, ttl: 60)
        result.addresses = (0..<200).map { IPAddress(v6: 0x2001_0db8_0000_0000, UInt64($0)) }
        _ = names.table.answered(result, now: 0)
        result.id = 2
        result.addresses = (0..<200).map { IPAddress(v4: 0xc000_0200 + UInt32($0)) }
        guard case .answer(let answer, _) = names.table.answered(result, now: 0).first else { return #expect(Bool(false)) }
        expectEqual(answer.addresses.count, 16)
        expectEqual(answer.addresses.count { $0.family == .v6 }, 8)
    }

    @Test func `after a change of the network, all names are asked again`() {
        var names = TableTranscript()
        _ = names.resolve(0, 1, "a.example", [.v4])
        _ = names.answer(1, "A a.example", "192.0.2.1")
        names.table.forget()
        expectEqual(names.resolve(2, 1, "a.example", [.v4]), ["A a.example"])
    }
}
