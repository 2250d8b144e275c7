@testable import Reachability

/// The targets that come and go, and the answers to their lookups, queries and attempts.
extension Simulation {
    mutating func changeTargets() throws {
        if present.count < 3, let text = Self.addresses.randomElement(using: &dice), let endpoint = try? Endpoint(text) {
            let id = TargetID(nextTarget)
            nextTarget += 1
            present.append(id)
            var settings = ProbeSettings(interval: .milliseconds(500), timeout: .milliseconds(400))
            settings.openAfter = .zero
            settings.mark = chance(25) ? 7 : 0
            try feed(.targetAdded(id, endpoint, settings))
        } else if let id = present.randomElement(using: &dice) {
            present.removeAll { $0 == id }
            try feed(.targetRemoved(id))
            removed.insert(id)
            published[id] = nil
        }
        try endTurn()
    }

    mutating func answerTargets() throws {
        if chance(2), let answer = late.randomElement(using: &dice) { try feed(answer) }
        while chance(50), !hostQueries.isEmpty {
            let query = hostQueries.removeFirst()
            let replies: [HostReply] = [
                HostReply(.answered, errno: 111), HostReply(.silent), HostReply(.refused, errno: 1),
                HostReply(.reported, errno: 113),
            ]
            try feed(.hostReply(query, replies[Int.random(in: 0..<4, using: &dice)]))
        }
        while chance(50), !searches.isEmpty {
            let search = searches.removeFirst()
            let replies = [
                HopSearchReply(.init(IPAddress(v4: 0x0a00_0101), limit: 2)),
                HopSearchReply(.init(search.silent.address, limit: 3)),
                HopSearchReply(.init(search.hop.address, limit: 2)), HopSearchReply(wasSent: false),
                HopSearchReply(
                    .init(IPAddress(v4: 0xc000_0209), target: search.others.first?.target.number ?? 0, roundTripNanoseconds: 7)),
            ]
            if chance(60) { try feed(.searchReply(search.hop, replies[Int.random(in: 0..<5, using: &dice)])) }
            if chance(80) { try feed(.searchReply(search.hop, HopSearchReply())) }
        }
        while chance(50), !lookups.isEmpty {
            let request = lookups.removeFirst()
            let found: [IPAddress] = chance(80) ? [IPAddress(v4: 0xc000_0209), IPAddress(v6: 0x2001_0db8_ffff_0000, 9)] : []
            let answer = LookupAnswer(
                id: request.id, addresses: found, code: found.isEmpty ? -2 : 0, elapsedNanoseconds: 1_000_000)
            late.append(.lookup(answer))
            try feed(.lookup(answer))
        }
        while chance(60), let index = attempts.indices.randomElement(using: &dice) {
            let attempt = attempts.remove(at: index)
            let result =
                chance(60)
                ? ProbeResult(id: attempt.id, roundTripNanoseconds: 20_000_000)
                : ProbeResult(id: attempt.id, errno: chance(50) ? 111 : 113, call: "handshake")
            late.append(.probe(result))
            try feed(.probe(result))
        }
        if chance(10), let text = Self.addresses.randomElement(using: &dice), let endpoint = try? Endpoint(text) {
            let answered = PassiveReport.Outcome.success(
                address: chance(50) ? IPAddress(v4: 0xc000_0209) : nil, roundTrip: chance(50) ? .milliseconds(20) : nil)
            try feed(.passiveReport(PassiveReport(endpoint, chance(50) ? answered : .failure)))
        }
        if late.count > 20 { late.removeFirst(10) }
    }
}
