internal import Pacing

/// The resolution of a monitor's names, without its sockets, files and threads: who answers, one question for all targets with
/// the same name, the search list, the delay between the families, and the cache.
package struct NameTable: Sendable {
    /// A request of the table to its owner.
    package enum Effect: Hashable, Sendable {
        /// Ask DNS. The answer is passed to ``NameTable/answered(_:now:)``.
        case ask(NameQuestion)
        /// Ask getaddrinfo(3). The answer is passed to ``NameTable/libcAnswered(_:now:)``.
        case askLibc(LookupRequest)
        case cancelLibc(TargetID)
        /// Deliver an answer. `unanswered` has the numbers of the questions whose evidence so far belongs to it.
        case answer(LookupAnswer, unanswered: [IPAddress.Family: UInt64])
    }

    /// The files that decide how names are resolved.
    struct Configuration: Hashable, Sendable {
        var resolver = ResolverConfiguration()
        var services = NameServiceSwitch()
        var hosts = HostsFile()
        /// The name of this machine.
        var hostName = ""
    }

    /// The maximum number of addresses in an answer.
    package static let addressLimit = 16
    /// The maximum number of questions that are sent while their answers have not had time to arrive. More answers at once would
    /// overflow the socket's receive buffer.
    static let burstLimit = 256
    /// The time in nanoseconds after which a question no longer counts towards ``burstLimit``.
    static let burstTime: Int64 = 50_000_000
    /// The maximum number of open questions. Each has a 16-bit number of its own.
    static let openLimit = 16_384
    /// The maximum number of lookups in a second that only the failure of an address causes. While more targets fail, the others use the
    /// cached addresses.
    static let refreshesPerSecond: Int64 = 20
    /// The time in nanoseconds after which the cached answer is used if no name server answers such a lookup. It is at most half of the time
    /// until the deadline.
    static let refreshPatience: Int64 = 500_000_000

    private enum Timer: Hashable, Sendable {
        case request(LookupRequest)
        case answer(RunningLookup.Key)
        case fallback(RunningLookup.Key)
    }

    var configuration = Configuration()
    private var cache = NameCache()
    private var running: [RunningLookup.Key: RunningLookup] = [:]
    /// The key of each target's request, and the time of the request.
    private var waiting: [TargetID: (key: RunningLookup.Key, since: Int64)] = [:]
    private var timers = NameTimers<Timer>()
    private var asked: [UInt64: RunningLookup.Key] = [:]
    private var askedLibc: [UInt64: RunningLookup.Key] = [:]
    private var sendQueue = SendQueue()
    private var refreshes = TokenBucket(
        intervalNanoseconds: 1_000_000_000 / NameTable.refreshesPerSecond, burst: NameTable.refreshesPerSecond)
    private var lastNumber: UInt64 = 0

    /// The time at which ``tick(now:)`` is due, on the monotonic clock in nanoseconds.
    package var deadline: Int64? { earlier(timers.first, sendQueue.deadline) }

    /// Returns ``deadline`` to an owner that is a class, without a copy of the table.
    mutating func nextDeadline() -> Int64? { deadline }

    /// Whether nothing is running or waiting. The cache may have names.
    var isIdle: Bool { running.isEmpty && waiting.isEmpty && asked.isEmpty && askedLibc.isEmpty && sendQueue.isEmpty }

    // MARK: Events

    /// Resolves a name. A newer request of the same target replaces an older one.
    package mutating func resolve(_ request: LookupRequest, now: Int64) -> [Effect] {
        cancel(TargetID(owning: request.id))
        var families = request.families
        if configuration.resolver.isIPv4Only, families.count > 1 { families.remove(.v6) }
        let key = RunningLookup.Key(name: request.name.lowercased(), families: families)
        var effects: [Effect] = []
        waiting[TargetID(owning: request.id)] = (key, now)
        if running[key]?.requests.append(request) != nil {
            renew(key, request, now: now)
            effects = judge(key, now: now) + useFallback(key, now: now)
        } else {
            let steps = configuration.services.steps(
                for: key.name, nameservers: configuration.resolver.nameservers, hostName: configuration.hostName)
            var lookup = RunningLookup(steps, started: now)
            lookup.requests = [request]
            lookup.notBefore = request.notBefore
            running[key] = lookup
            effects = advance(key, now: now)
        }
        if waiting[TargetID(owning: request.id)] != nil, request.deadline != .max {
            timers.add(.request(request), at: request.deadline)
        }
        return effects + send(now: now)
    }

    /// Handles the end of a question.
    package mutating func answered(_ result: NameQuestionResult, now: Int64) -> [Effect] {
        sendQueue.ended(result.id)
        guard let key = asked.removeValue(forKey: result.id), var lookup = running[key] else { return send(now: now) }
        for family in key.families where lookup[family] == .asked(id: result.id) {
            lookup[family] = .answered(result)
            if !result.addresses.isEmpty {
                let expiry = NameCache.expiry(ttl: result.ttl, now: now)
                let entry = NameCache.Entry(
                    addresses: result.addresses, received: now, expiry: expiry, server: result.server,
                    candidate: lookup.candidate ?? key.name)
                cache.store(entry, key.name, family, now: now)
            }
        }
        running[key] = lookup
        return judge(key, now: now) + send(now: now)
    }

    /// Handles the answer of getaddrinfo(3).
    package mutating func libcAnswered(_ answer: LookupAnswer, now: Int64) -> [Effect] {
        guard let key = askedLibc.removeValue(forKey: answer.id), running[key]?.libcRequest == answer.id else { return [] }
        running[key]?.libcRequest = nil
        var answer = answer
        answer.answeredBy = .nss
        if answer.code == 0, !answer.addresses.isEmpty { return finish(key, answer, now: now) }
        // After DNS has failed, its evidence says more than the code of getaddrinfo.
        if running[key]?.failure == nil { running[key]?.keep(answer) }
        return advance(key, now: now)
    }

    /// Handles the passing of time.
    package mutating func tick(now: Int64) -> [Effect] {
        var effects: [Effect] = []
        while let timer = timers.removeFirst(dueAt: now) {
            switch timer {
            case .request(let request): effects += expire(request, now: now)
            case .answer(let key): effects += judge(key, now: now)
            case .fallback(let key): effects += useFallback(key, now: now)
            }
        }
        return effects + send(now: now)
    }

    /// Removes the waiting request of a target.
    package mutating func cancel(_ target: TargetID) {
        guard let (key, _) = waiting.removeValue(forKey: target) else { return }
        running[key]?.requests.removeAll { TargetID(owning: $0.id) == target }
    }

    /// Restarts all running lookups with another configuration, and forgets all answers. The open questions are void.
    mutating func configure(_ configuration: Configuration, now: Int64) -> [Effect] {
        guard configuration != self.configuration else { return [] }
        self.configuration = configuration
        cache.removeAll()
        let requests = running.values.flatMap(\.requests).sorted { $0.id < $1.id }
        let libcRequests = running.values.compactMap(\.libcRequest).sorted()
        (running, waiting, asked, askedLibc, sendQueue) = ([:], [:], [:], [:], SendQueue())
        timers = NameTimers()
        var effects = libcRequests.map { Effect.cancelLibc(TargetID(owning: $0)) }
        for request in requests { effects += resolve(request, now: now) }
        return effects
    }

    /// Forgets all answers, because this machine may be in another network now.
    package mutating func forget() { cache.removeAll() }

    // MARK: Steps

    /// Begins the next step of a lookup, or ends the lookup.
    private mutating func advance(_ key: RunningLookup.Key, now: Int64) -> [Effect] {
        while var lookup = running[key] {
            // A name server has answered that the cached addresses do not exist any more.
            if lookup.fallback != nil, lookup.failure.map({ $0.code != NameCode.tryAgain }) ?? false { cache.remove(key.name) }
            // No target waits for this lookup any more.
            if lookup.requests.isEmpty { return finish(key, LookupAnswer(id: 0), now: now) }
            lookup.candidate = nil
            lookup.removeQuestions()
            let step = lookup.steps.popLast()
            running[key] = lookup
            switch step {
            case .hosts:
                let addresses = configuration.hosts.addresses(of: key.name, families: Set(key.families))
                guard addresses.isEmpty else {
                    let answer = LookupAnswer(
                        id: 0, addresses: Array(addresses.prefix(Self.addressLimit)), answeredBy: .hosts)
                    return finish(key, answer, now: now)
                }
                if configuration.services.services == ["files"] {
                    running[key]?.keep(LookupAnswer(id: 0, code: NameCode.nameNotFound, answeredBy: .hosts))
                }
            case .dns:
                running[key]?.candidates =
                    SearchList.candidates(for: key.name, configuration.resolver, hostName: configuration.hostName).reversed()
                return nextCandidate(key, now: now)
            case .libc:
                // The number of a request is that of a target of its own, because the queue has one request for each target.
                let id = makeNumber() << 32
                running[key]?.libcRequest = id
                askedLibc[id] = key
                return [.askLibc(LookupRequest(id: id, name: key.name, families: Set(key.families)))]
            case nil:
                if let fallback = lookup.fallback, lookup.failure?.code ?? NameCode.tryAgain == NameCode.tryAgain {
                    return finish(key, fallback.answer(now: now), now: now)
                }
                let answer = lookup.failure ?? LookupAnswer(id: 0, code: NameCode.nameNotFound, answeredBy: .hosts)
                return finish(key, answer, now: now)
            }
        }
        return []
    }

    private mutating func nextCandidate(_ key: RunningLookup.Key, now: Int64) -> [Effect] {
        // The lookup is stored once: each access to the dictionary hashes the name.
        guard var lookup = running[key], var name = lookup.candidates.popLast() else { return advance(key, now: now) }
        // The cache has the name as it was requested, and knows which candidate has the addresses.
        var cached = key.families.map { (family: $0, entry: cache.entry(key.name, $0, now: now)) }
        if isOutdated(cached, lookup) {
            if beginRefresh(key, &lookup, cached, now: now) {
                cached = cached.map { ($0.family, $0.entry.flatMap { $0.received < lookup.notBefore ? nil : $0 }) }
            } else {
                lookup.notBefore = .min
            }
        }
        if let known = cached.lazy.compactMap(\.entry).first(where: { !$0.addresses.isEmpty }) {
            name = known.candidate
            lookup.candidates = []
        }
        lookup.candidate = name
        lookup.removeQuestions()
        for (family, entry) in cached {
            if let entry {
                lookup[family] = .cached(entry)
                continue
            }
            ask(name, family, for: key, &lookup, now: now)
        }
        running[key] = lookup
        return judge(key, now: now)
    }

    private mutating func ask(
        _ name: String, _ family: IPAddress.Family, for key: RunningLookup.Key, _ lookup: inout RunningLookup, now: Int64
    ) {
        let question = NameQuestion(id: makeNumber(), name: name, family: family)
        lookup[family] = .asked(id: question.id)
        asked[question.id] = key
        sendQueue.add(question, at: now)
    }

    // MARK: Failed addresses

    private func isOutdated(
        _ entries: [(family: IPAddress.Family, entry: NameCache.Entry?)], _ lookup: RunningLookup
    ) -> Bool {
        entries.contains { $0.entry.map { !$0.addresses.isEmpty && $0.received < lookup.notBefore } ?? false }
    }

    /// Begins to ask again for cached addresses. Returns whether that is allowed now.
    private mutating func beginRefresh(
        _ key: RunningLookup.Key, _ lookup: inout RunningLookup,
        _ entries: [(family: IPAddress.Family, entry: NameCache.Entry?)], now: Int64
    ) -> Bool {
        if lookup.fallback != nil { return true }
        let earliest = lookup.requests.map(\.deadline).min() ?? .max
        let due = min(now.addingSaturated(Self.refreshPatience), now + max(0, earliest - now) / 2)
        guard let fallback = CachedAnswer(entries, due: due), refreshes.consume(now: now) else { return false }
        lookup.refresh(fallback, now: now)
        timers.add(.fallback(key), at: due)
        return true
    }

    /// Asks again for the families of a running lookup whose answers are older than the failure of an address: the other family is still
    /// awaited.
    private mutating func renew(_ key: RunningLookup.Key, _ request: LookupRequest, now: Int64) {
        guard var lookup = running[key], request.notBefore > lookup.started, lookup.hasAddresses, let name = lookup.candidate
        else { return }
        let cached = key.families.map { (family: $0, entry: cache.entry(key.name, $0, now: now)) }
        lookup.notBefore = request.notBefore
        guard isOutdated(cached, lookup), beginRefresh(key, &lookup, cached, now: now) else { return }
        for family in key.families where lookup[family]?.isOpen == false { ask(name, family, for: key, &lookup, now: now) }
        running[key] = lookup
    }

    /// Answers the requests of a lookup with the cached addresses, because no name server has answered in time. The questions continue.
    private mutating func useFallback(_ key: RunningLookup.Key, now: Int64) -> [Effect] {
        guard let lookup = running[key], let fallback = lookup.fallback, fallback.due <= now else { return [] }
        running[key]?.requests = []
        return answer(lookup, lookup.requests, fallback.answer(now: now), [:], now: now)
    }

    /// Decides whether the answers so far suffice.
    private mutating func judge(_ key: RunningLookup.Key, now: Int64) -> [Effect] {
        guard var lookup = running[key], lookup.candidate != nil else { return [] }
        if lookup.hasAddresses {
            if lookup.isComplete {
                cacheMissingFamilies(key, lookup, now: now)
                return finish(key, lookup.dnsAnswer, now: now)
            }
            guard let due = lookup.answerDue else {
                lookup.answerDue = now + RunningLookup.resolutionDelay
                running[key] = lookup
                timers.add(.answer(key), at: now + RunningLookup.resolutionDelay)
                return []
            }
            guard due <= now, !lookup.requests.isEmpty else { return [] }
            // The open questions continue, and their answers are cached.
            let effects = answer(lookup, lookup.requests, lookup.dnsAnswer, lookup.openQuestions, now: now)
            running[key]?.requests = []
            return effects
        }
        // A name that does not exist in one family may exist in the other, against RFC 8020.
        guard lookup.isComplete else { return [] }
        let answer = lookup.dnsAnswer
        for id in lookup.openQuestions.values {
            asked[id] = nil
            sendQueue.remove(id)
        }
        running[key]?.keep(answer)
        // A server that fails for one name may know the next one. A silent server would cost the same time again.
        let isAnswered = answer.code != NameCode.tryAgain || lookup.hasAnswer
        return isAnswered ? nextCandidate(key, now: now) : advance(key, now: now)
    }

    /// Caches that the name has no address of a family, for as long as the addresses of the other one.
    private mutating func cacheMissingFamilies(_ key: RunningLookup.Key, _ lookup: RunningLookup, now: Int64) {
        let expiry = key.families.compactMap { cache.entry(key.name, $0, now: now)?.expiry }.max()
        guard let expiry else { return }
        for family in key.families {
            guard case .answered(let result) = lookup[family], result.result == .noData else { continue }
            let entry = NameCache.Entry(addresses: [], received: now, expiry: expiry, candidate: lookup.candidate ?? key.name)
            cache.store(entry, key.name, family, now: now)
        }
    }

    /// Ends a lookup, and answers its requests.
    private mutating func finish(_ key: RunningLookup.Key, _ answer: LookupAnswer, now: Int64) -> [Effect] {
        guard let lookup = running.removeValue(forKey: key) else { return [] }
        return self.answer(lookup, lookup.requests, answer, [:], now: now)
    }

    /// Answers requests of a lookup. `unanswered` is empty if the lookup has ended.
    private mutating func answer(
        _ lookup: RunningLookup, _ requests: [LookupRequest], _ answer: LookupAnswer, _ unanswered: [IPAddress.Family: UInt64],
        now: Int64
    ) -> [Effect] {
        let isWaiting = unanswered.values.contains { sendQueue.isWaiting($0) }
        var answer = answer
        if answer.answeredBy == .dns, !answer.addresses.isEmpty, answer.ageNanoseconds == nil {
            answer.ageNanoseconds = lookup.received.map { now - $0 } ?? 0
        }
        let delayedUntil = isWaiting ? now : answer.code == 0 || !unanswered.isEmpty ? lookup.delayedUntil : nil
        return requests.map { request in
            let since = waiting.removeValue(forKey: TargetID(owning: request.id))?.since ?? now
            var answer = answer
            answer.id = request.id
            answer.elapsedNanoseconds = max(answer.elapsedNanoseconds, now - lookup.started)
            if let delayedUntil, delayedUntil > since { answer.queuedNanoseconds = delayedUntil - since }
            return .answer(answer, unanswered: unanswered)
        }
    }

    /// Fails a request at its deadline with the evidence so far.
    private mutating func expire(_ request: LookupRequest, now: Int64) -> [Effect] {
        guard let (key, _) = waiting[TargetID(owning: request.id)], var lookup = running[key],
            let place = lookup.requests.firstIndex(of: request)
        else { return [] }
        lookup.requests.remove(at: place)
        var answer = lookup.dnsAnswer
        if let fallback = lookup.fallback {
            answer = fallback.answer(now: now)
        } else if lookup.candidate == nil {
            answer = lookup.failure ?? LookupAnswer(id: 0, code: NameCode.tryAgain, answeredBy: .nss)
        }
        var effects = self.answer(lookup, [request], answer, lookup.openQuestions, now: now)
        running[key] = lookup
        // No lookup waits for getaddrinfo any more. The answer of a running call is dropped.
        if lookup.requests.isEmpty, let id = lookup.libcRequest {
            running[key] = nil
            askedLibc[id] = nil
            effects.append(.cancelLibc(TargetID(owning: id)))
        }
        return effects
    }

    private mutating func send(now: Int64) -> [Effect] {
        sendQueue.takeSendable(now: now).map { entry in
            if entry.added < now, let key = asked[entry.id] { running[key]?.delayedUntil = now }
            return .ask(entry.question)
        }
    }

    private mutating func makeNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }
}

extension RunningLookup {
    /// Whether a server answered any question, possibly with a failure.
    fileprivate var hasAnswer: Bool {
        questions.contains { $0.lookup.exchanges.contains { $0.outcome == .answered } }
    }
}

/// The complete names that DNS is asked for, in their order (resolv.conf(5), `search` and `ndots`).
enum SearchList {
    /// The maximum length of a name without its final dot (RFC 1035 section 3.1).
    static let nameLimit = 253

    /// Returns the candidates for a name, each without a final dot. A name with a final dot is complete.
    static func candidates(for name: String, _ configuration: ResolverConfiguration, hostName: String) -> [String] {
        if name.hasSuffix(".") { return [String(name.dropLast())] }
        // Without a list, glibc takes the domain of the machine's own name.
        let own = hostName.split(separator: ".", maxSplits: 1).dropFirst().map(String.init)
        let domains = (configuration.search.isEmpty ? own : configuration.search)
            .map { $0.hasSuffix(".") ? String($0.dropLast()) : $0 }
        let joined = domains.filter { !$0.isEmpty }.map { "\(name).\($0)" }.filter { $0.utf8.count <= nameLimit }
        let hasDots = name.utf8.count { $0 == UInt8(ascii: ".") } >= configuration.ndots
        return hasDots ? [name] + joined : joined + [name]
    }
}
