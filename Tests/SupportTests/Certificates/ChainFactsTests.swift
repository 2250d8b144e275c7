import EventLoop
import Expectations
import FoundationEssentials
import MemoryCertificates
import NetworkLab
import Testing

@testable import Certificates

/// The reuse of verified chains: it gives the facts that a new verification gives.
@Suite struct ChainFactsTests {
    private let certificates: TestCertificates
    private let now = Int64(Date().timeIntervalSince1970)

    init() throws { certificates = try TestCertificates.shared.get() }

    /// The trust of a root alone, which no other test has.
    private func context(
        root: MemoryCertificate? = nil, revocationList: Data? = nil, isInsecure: Bool = false
    ) throws -> TLSClientContext {
        let list = try revocationList ?? certificates.intermediate.revocationList(of: [], at: Int(now))
        return TLSClientContext.of(
            try TLSClientSettings.reading(
                authorities: ((root ?? certificates.root).derBytes, "root"), revocationLists: (list, "list"),
                isInsecure: isInsecure))
    }

    /// Makes a handshake at a time, and returns its facts.
    private func facts(
        of leaf: MemoryCertificate, _ chain: [MemoryCertificate]? = nil, in context: TLSClientContext, name: String = "a.test",
        at time: Int64
    ) throws -> TLSHandshakeFacts {
        let server = try MemoryServer(leaf, chain: chain ?? [certificates.intermediate])
        let client = try TLSClient(
            context: context, serverName: name, verificationTime: time, nanosecondsSpent: patientStart)
        converse(client, server)
        expectEqual(client.state, .established)
        return client.facts
    }

    private func count(in context: TLSClientContext) throws -> Int { try context.load().chains.withLock { $0.count } }

    @Test func `an unchanged chain is verified once, with equal facts`() throws {
        let context = try context()
        let first = try facts(of: certificates.leaf, in: context, at: now)
        let second = try facts(of: certificates.leaf, in: context, at: now + 60)
        #expect(
            first.chain == second.chain && first.verificationErrors.isEmpty && first.certificate != nil && first.chainLength == 2)
        try expectEqual(count(in: context), 1)
        // The second handshake has not verified: a wrong entry would be its result.
        let chains = try context.load().chains
        let key = try #require(chains.withLock { $0.keys.first })
        var wrong = first.chain
        wrong.nameMatches = nil
        chains.withLock { $0.insert(wrong, for: key, validity: .min ..< .max, at: now) }
        try expectNil(facts(of: certificates.leaf, in: context, at: now).nameMatches)
    }

    @Test func `another chain, name or order of the same certificates is verified again`() throws {
        let context = try context()
        _ = try facts(of: certificates.leaf, in: context, at: now)
        try expectEqual(facts(of: certificates.leaf, in: context, name: "c.test", at: now).nameMatches, false)
        #expect(try facts(of: certificates.leaf, [], in: context, at: now).isMissingIntermediate)
        try expectEqual(facts(of: certificates.other, in: context, at: now).verificationErrors.map(\.code), [62])
        try expectEmpty(facts(of: certificates.leaf, in: context, at: now).verificationErrors)
        let more = [certificates.intermediate, certificates.strangeRoot]
        try expectEqual(facts(of: certificates.leaf, more, in: context, at: now).chainLength, 3)
        try expectEqual(facts(of: certificates.leaf, more.reversed(), in: context, at: now).chainLength, 3)
        try expectEqual(count(in: context), 6)
    }

    @Test func `a kept chain expires in the second of its notAfter, and is not valid before its notBefore`() throws {
        let context = try context()
        let early = certificates.early
        let known = try facts(of: early, in: context, at: now)
        let (start, end) = try (#require(known.certificate?.notBefore), #require(known.certificate?.notAfter))
        expectEmpty(known.verificationErrors)
        // The revocation list of the context is valid from an hour ago, and for a day.
        for (time, codes) in [(end - 1, [12]), (end, [12, 10]), (end + 1, [12, 10]), (end - 1, [12])] as [(Int64, [Int32])] {
            expectEqual(Set(try facts(of: early, in: context, at: time).verificationErrors.map(\.code)), Set(codes), "\(time)")
        }
        for (time, codes) in [(start, [11]), (start - 1, [11, 9]), (start, [11])] as [(Int64, [Int32])] {
            let found = try facts(of: early, in: context, at: time).verificationErrors.map(\.code)
            expectEqual(Set(found), Set(codes), "\(time)")
        }
        try expectEqual(facts(of: early, in: context, at: now).chain, known.chain)
    }

    @Test func `the end of a revocation list ends the validity of a kept chain`() throws {
        let context = try context()
        try expectEmpty(facts(of: certificates.leaf, in: context, at: now).verificationErrors)
        let day: Int64 = 86_400
        try expectEmpty(facts(of: certificates.leaf, in: context, at: now + day - 1).verificationErrors)
        try expectEqual(facts(of: certificates.leaf, in: context, at: now + day + 1).verificationErrors.map(\.code), [12])
        try expectEmpty(facts(of: certificates.leaf, in: context, at: now).verificationErrors)
    }

    @Test func `a kept chain of one context says nothing about another context`() throws {
        let trusting = try context()
        try expectEmpty(facts(of: certificates.leaf, in: trusting, at: now).verificationErrors)
        let strange = try context(root: certificates.strangeRoot)
        #expect(try facts(of: certificates.leaf, in: strange, at: now).verificationErrors.contains { $0.code == 20 })
        let revoking = try context(revocationList: certificates.intermediate.revocationList(of: [certificates.leaf]))
        try expectEqual(facts(of: certificates.leaf, in: revoking, at: now).verificationErrors.map(\.code), [23])
        let insecure = try context(isInsecure: true)
        try expectEqual(facts(of: certificates.leaf, in: insecure, name: "c.test", at: now).verificationErrors.map(\.code), [62])
        try expectEmpty(facts(of: certificates.leaf, in: insecure, at: now).verificationErrors)
        // An insecure context finds the same errors, and keeps them as long.
        let late = now + 1_000_000_000
        let errors = try facts(of: certificates.leaf, in: trusting, at: late).verificationErrors
        #expect(errors.contains { $0.code == 10 })
        try expectEqual(facts(of: certificates.leaf, in: insecure, at: late).verificationErrors, errors)
        try expectEqual(count(in: insecure), 2)
    }

    @Test func `at every time a kept result equals a new verification`() throws {
        let kept = try context()
        var generator = SystemRandomNumberGenerator()
        let seed = UInt64.random(in: 0 ... .max, using: &generator)
        print("seed \(seed)")
        var state = seed
        func next(_ bound: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % bound
        }
        let leaves = [certificates.leaf, certificates.expired, certificates.future, certificates.early, certificates.selfSigned]
        for _ in 0..<60 {
            let leaf = leaves[Int(next(UInt64(leaves.count)))]
            let time = now + Int64(next(200)) * 86_400 - 60 * 86_400
            let found = try facts(of: leaf, in: kept, at: time).chain
            let chains = try kept.load().chains
            let saved = chains.withLock { $0 }
            chains.withLock { $0 = ChainFactsCache() }
            try expectEqual(facts(of: leaf, in: kept, at: time).chain, found, "seed \(seed), time \(time)")
            chains.withLock { $0 = saved }
        }
    }
}

/// The limit of the cache.
@Suite struct ChainFactsCacheTests {
    private func key(_ number: Int) -> ChainFactsCache.Key {
        ChainFactsCache.Key(digest: SIMD4(UInt64(number), 0, 0, 0), serverName: "")
    }

    private func facts(_ number: Int) -> TLSChainFacts {
        let certificate = TLSCertificateFacts(
            subject: "CN=\(number)", issuer: "", isSelfIssued: false, names: [], nameCount: 0, notBefore: nil, notAfter: nil,
            sha256: "", serialNumber: "")
        return TLSChainFacts(certificate: certificate, length: 1, notAfter: nil, errors: [], nameMatches: true)
    }

    @Test func `an entry outside its validity is removed`() {
        var cache = ChainFactsCache()
        cache.insert(facts(1), for: key(1), validity: 10..<20, at: 10)
        #expect(cache.facts(for: key(1), at: 10) == facts(1) && cache.facts(for: key(1), at: 19) == facts(1))
        expectNil(cache.facts(for: key(2), at: 10))
        #expect(cache.facts(for: key(1), at: 20) == nil && cache.count == 0 && cache.byteCount == 0)
        cache.insert(facts(1), for: key(1), validity: 10..<20, at: 10)
        cache.insert(facts(2), for: key(1), validity: 10..<20, at: 10)
        #expect(cache.facts(for: key(1), at: 12) == facts(2) && cache.count == 1 && cache.byteCount == facts(2).byteCount)
        #expect(cache.facts(for: key(1), at: 9) == nil && cache.count == 0)
    }

    @Test func `a fleet that is larger than the limit uses all entries in every round`() {
        let limit = 100 * facts(0).byteCount + 1000
        var cache = ChainFactsCache(limit: limit)
        for round in 0..<50 {
            var hits = 0
            for number in 0..<1_000 {
                let time = Int64(round * 600 + number / 2)
                if cache.facts(for: key(number), at: time) != nil {
                    hits += 1
                } else {
                    cache.insert(facts(number), for: key(number), validity: 0 ..< .max, at: time)
                }
                #expect(cache.byteCount <= limit)
            }
            #expect(round == 0 ? hits == 0 : hits >= 90, "round \(round): \(hits)")
        }
    }

    @Test func `entries that were not used for an hour make room`() {
        var cache = ChainFactsCache(limit: 100 * facts(0).byteCount + 1000)
        for number in 0..<1_000 { cache.insert(facts(number), for: key(number), validity: 0 ..< .max, at: 0) }
        let former = cache.count
        #expect(former >= 90 && cache.facts(for: key(1), at: 3_000) != nil)
        cache.insert(facts(5_000), for: key(5_000), validity: 0 ..< .max, at: 3_599)
        #expect(cache.facts(for: key(5_000), at: 3_599) == nil && cache.count == former)
        for number in 5_000..<5_080 { cache.insert(facts(number), for: key(number), validity: 0 ..< .max, at: 3_660) }
        #expect((5_000..<5_080).allSatisfy { cache.facts(for: key($0), at: 3_660) != nil })
        #expect(cache.facts(for: key(1), at: 3_660) != nil && cache.count == 81)
        // The clock is set back by years.
        for number in 0..<1_000 { cache.insert(facts(number), for: key(number), validity: .min ..< .max, at: .min) }
        #expect(cache.facts(for: key(0), at: .min) != nil && cache.byteCount <= 100 * facts(0).byteCount + 1000)
    }

    // In a process of its own: tests beside it would use memory too.
    @Test(.skippedUnderSanitizers) func `the limit of bytes is that of the memory`() async {
        await #expect(processExitsWith: .success) {
            let before = anonymousBytes()
            let cache = Self().fullCache()
            let used = anonymousBytes() - before
            let summary: Comment = "\(cache.count) entries, \(cache.byteCount) bytes counted, \(used) bytes used"
            try #require(cache.count > 5_000, summary)
            try #require(used > 1 << 20 && used < ChainFactsCache.maximumByteCount * 5 / 4, summary)
        }
    }

    /// Returns a cache of 20,000 chains, of which it has kept those that it has room for.
    private func fullCache() -> ChainFactsCache {
        var cache = ChainFactsCache()
        for number in 0..<20_000 {
            var facts = facts(number)
            facts.certificate?.subject = "CN=www.server-\(number).example.com,O=Example"
            facts.certificate?.issuer = "CN=Authority of \(number),O=Example Limited"
            facts.certificate?.names = ["server-\(number).example.com", "www.server-\(number).example.com"]
            facts.certificate?.nameCount = 2
            facts.certificate?.sha256 = String(repeating: "\(number % 10)", count: 64)
            facts.certificate?.serialNumber = String(repeating: "\(number % 10)", count: 36)
            let key = ChainFactsCache.Key(digest: SIMD4(UInt64(number), 1, 2, 3), serverName: "server-\(number).example.com")
            cache.insert(facts, for: key, validity: 0..<1, at: 0)
        }
        return cache
    }
}
