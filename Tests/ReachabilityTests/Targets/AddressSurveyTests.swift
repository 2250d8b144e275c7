import Expectations
import Testing

@testable import Reachability

private let first = "192.0.2.1"
private let second = "192.0.2.2"
private let v6 = "2001:db8::1"

/// A name with several addresses: one serves the probes, the others are surveyed.
@Suite struct AddressSurveyTests {
    /// A target that is up over its first address, while attempt 3 tries another one. The lookups have the numbers 1, 4, ….
    private func surveying(_ addresses: String..., settings: ProbeSettings = ProbeSettings()) throws -> Transcript {
        var target = try Transcript("server.example:443", settings)
        target.allowsSurvey = true
        _ = target.at(0, .begin)
        _ = target.at(0, .lookup(LookupAnswer(id: 1, addresses: addresses.compactMap { IPAddress($0) })))
        for address in addresses { _ = target.at(0, .route(to: address)) }
        let other = addresses[1]
        try #require(target.at(1, .connected(2)) == ["report ok", "up \(addresses[0]) eth0", "connect 3 \(other)"])
        return target
    }

    @Test func `an address that refuses twice degrades the target, and its answer ends that`() throws {
        var target = try surveying(first, second)
        expectEqual(target.at(2, .failed(3, .connectionRefused)), ["connect 4 \(second)"])
        expectEqual(target.at(3, .failed(4, .connectionRefused)), ["degraded tcp/refused \(first) eth0"])
        expectEqual(target.cause?.detail, "1 of 2 addresses fail: 192.0.2.2 refuses connections to port 443")
        expectEqual(target.cause?.evidence["failing_addresses"], .number(1))
        _ = target.at(10_000, .tick)
        _ = target.at(10_000, .found(5, first, second))
        _ = target.at(10_000, .route(to: first))
        _ = target.at(10_000, .route(to: second))
        expectEqual(target.at(10_001, .connected(6)), ["report ok", "connect 7 \(second)"])
        expectEqual(target.at(10_002, .connected(7)), ["up \(first) eth0"])
    }

    @Test func `nine of ten addresses that fail are counted by ten probes, and until then there are at least so many`() throws {
        let addresses = (1...10).map { "192.0.2.\($0)" }
        var target = try Transcript("server.example:443")
        target.allowsSurvey = true
        var sentences: [String] = []
        /// Answers the attempts that begin: the first address accepts, the others refuse.
        func answer(at time: Int64) {
            var attempts = target.attempts
            while let attempt = attempts.popLast() {
                let isWorking = attempt.address == IPAddress(addresses[0])
                _ = target.at(time, isWorking ? .connected(attempt.id) : .failed(attempt.id, .connectionRefused))
                attempts = target.attempts
                if let detail = target.update?.cause?.detail { sentences.append(String(detail.prefix { $0 != ":" })) }
            }
        }
        for probe in 0..<10 as Range<Int64> {
            let time = probe * 10_000
            _ = target.at(time, probe == 0 ? .begin : .tick)
            for case .resolve(let request) in target.effects {
                _ = target.at(time, .lookup(LookupAnswer(id: request.id, addresses: addresses.compactMap { IPAddress($0) })))
            }
            for address in addresses { _ = target.at(time, .route(to: address)) }
            answer(at: time + 1)
        }
        expectEqual(
            sentences, (1...8).map { "at least \($0) of 10 addresses fail" } + ["9 of 10 addresses fail"])
        expectEqual(target.published?.cause?.evidence["failing_addresses"], .number(9))
    }

    @Test(arguments: [["::1", "127.0.0.1"], ["127.0.1.1", "127.0.0.1"], ["::1", "127.0.1.1", "127.0.0.1"]])
    func `a service on one loopback address is up, and its other addresses cost no attempts`(addresses: [String]) throws {
        var target = try Transcript("localhost:8080")
        target.allowsSurvey = true
        _ = target.at(0, .begin)
        _ = target.at(0, .lookup(LookupAnswer(id: 1, addresses: addresses.compactMap { IPAddress($0) }, answeredBy: .hosts)))
        for address in addresses { _ = target.at(0, .route(to: address)) }
        for (attempt, next) in zip(UInt64(2)..., addresses.dropFirst()) {
            expectEqual(target.at(1, .failed(attempt, .connectionRefused)), ["connect \(attempt + 1) \(next)"])
        }
        let last = UInt64(addresses.count + 1)
        expectEqual(target.at(1, .connected(last)), ["report ok", "up 127.0.0.1 eth0"])
        // The next probe begins with the address that answers, and ends with it.
        var number = last + 1
        for time in [10_000, 20_000, 30_000] as [Int64] {
            _ = target.at(time, .tick)
            _ = target.at(time, .lookup(LookupAnswer(id: number, addresses: addresses.compactMap { IPAddress($0) })))
            let connects = addresses.flatMap { target.at(time, .route(to: $0)) }
            expectEqual(connects, ["connect \(number + 1) 127.0.0.1"])
            expectEqual(target.at(time + 1, .connected(number + 1)), ["report ok"])
            number += 2
        }
    }

    @Test func `a loopback address beside another machine's is an address like others`() throws {
        var target = try surveying(first, "127.0.0.1")
        _ = target.at(2, .failed(3, .connectionRefused))
        expectEqual(target.at(3, .failed(4, .connectionRefused)), ["degraded tcp/refused \(first) eth0"])
    }

    @Test func `a family that fails is named`() throws {
        var target = try surveying(first, v6)
        let report = Transcript.Event.failed(3, .networkUnreachable, icmp: (3, 0), from: "203.0.113.9")
        expectEqual(target.at(2, report), ["connect 4 \(v6)"])
        expectEqual(
            target.at(3, .failed(4, .networkUnreachable, icmp: (3, 0), from: "203.0.113.9")).last?.hasPrefix("degraded network/"),
            true)
        #expect(target.cause?.detail.hasPrefix("IPv6 is broken and IPv4 works: ") == true)
        expectEqual(target.cause?.evidence["family"], .number(6))
    }

    @Test func `a silent address degrades the target after two surveys`() throws {
        var target = try surveying(first, second)
        expectEqual(target.tickDue, 501)
        expectEqual(target.at(501, .tick), ["connect 4 \(second)"])
        expectEqual(target.at(1251, .tick), ["connect 5 \(second)"])
        expectEqual(target.at(3001, .tick), ["cancel 3", "cancel 4", "cancel 5", "neighbor? 10.0.0.1 on 2"])
        let gateway = Neighbor.Key(interface: 2, address: IPAddress(v4: 0x0a00_0001))
        expectEqual(target.at(3001, .neighbor(gateway, .state(.reachable))), ["connect 6 \(second)"])
        _ = target.at(6001, .tick)
        expectEqual(
            target.at(6001, .neighbor(gateway, .state(.reachable))), ["degraded tcp/timeout \(first) eth0"])
        expectEqual(target.cause?.evidence["first_hop"], .text("answered"))
    }

    @Test func `an address behind a gateway that has died in use degrades the target by the gateway`() throws {
        var target = try surveying(first, v6, settings: ProbeSettings(failAfter: 1))
        target.hostState = HopBook.State(isAlive: false, reply: HostReply(.silent), hasAnswered: true)
        let gateway = Neighbor.Key(interface: 2, address: IPAddress(v4: 0x0a00_0001))
        expectEqual(target.at(3001, .tick).last, "neighbor? 10.0.0.1 on 2")
        expectEqual(
            target.at(3001, .neighbor(gateway, .state(.reachable))), ["degraded neighbor/gateway-silent \(first) eth0"])
        expectEqual(target.cause?.evidence["first_hop"], .text("silent"))
    }

    @Test func `an address is judged after 700 ms if the state of its next hop is not known by then`() throws {
        var target = try surveying(first, second, settings: ProbeSettings(failAfter: 1))
        _ = target.at(3001, .tick)
        expectEqual(target.tickDue, 3701)
        expectEqual(target.at(3701, .tick), ["degraded tcp/timeout \(first) eth0"])
    }

    @Test func `an address without a route does not degrade the target`() throws {
        var target = try Transcript("server.example:443")
        target.allowsSurvey = true
        _ = target.at(0, .begin)
        _ = target.at(0, .found(1, first, v6))
        _ = target.at(0, .route(to: first))
        _ = target.at(0, .noRoute(to: v6))
        expectEqual(target.at(1, .connected(2)), ["report ok", "up \(first) eth0"])
    }

    @Test func `a target with one address has no survey`() throws {
        var target = try Transcript("192.0.2.1:443")
        target.allowsSurvey = true
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: first))
        expectEqual(target.at(1, .connected(1)), ["report ok", "up \(first) eth0"])
        expectEmpty(target.machine.surveyAttempts)
    }

    @Test func `a change of the route to nothing ends the survey`() throws {
        var target = try surveying(first, second)
        _ = target.at(100, .localStateChanged)
        _ = target.at(100, .noRoute(to: first))
        #expect(target.at(100, .noRoute(to: second)).contains("cancel 3"))
        expectEmpty(target.machine.runningAttempts)
    }

    @Test func `lost packets degrade the target, and a clear window ends that`() throws {
        var target = try Transcript("192.0.2.1:443", ProbeSettings(interval: .seconds(1)))
        var lines: [String] = []
        func probe(_ number: Int64, retransmissions: Int) {
            lines += target.at(number * 1000, number == 0 ? .begin : .tick)
            lines += target.at(number * 1000, .route(to: first))
            let result = ProbeResult(
                id: UInt64(number + 1), roundTripNanoseconds: 5_000_000, retransmissions: retransmissions)
            lines += target.at(number * 1000 + 5, .probe(result))
        }
        for number in 0..<4 as Range<Int64> { probe(number, retransmissions: 1) }
        expectEqual(lines.last, "degraded quality/loss \(first) eth0")
        for number in 4..<60 as Range<Int64> { probe(number, retransmissions: 0) }
        expectEqual(lines.filter { $0.hasPrefix("up") || $0.hasPrefix("degraded") }.count, 3)
        expectEqual(target.state, .up)
    }
}

extension Transcript {
    /// The update of the last event; `nil` if it has none.
    fileprivate var update: ServerUpdate? {
        for case .publish(let update) in effects { return update }
        return nil
    }
}
