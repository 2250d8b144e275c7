import Expectations
import Testing

@testable import Reachability

@Suite struct WitnessBookTests {
    private static let second: Int64 = 1_000_000_000
    private static let gateway = Neighbor.Key(interface: 2, address: IPAddress(v4: 0x0a00_0001))
    private static let server = IPAddress(v4: 0xcb00_7109)
    private static let other = IPAddress(v4: 0xc633_6407)

    private var book = WitnessBook()
    private var states: [TargetID: WitnessBook.State] = [:]

    private static func request(
        _ address: IPAddress = server, behind hop: Neighbor.Key = gateway, since second: Int64 = 0
    ) -> WitnessBook.Request {
        WitnessBook.Request(hop: hop, silent: .init(address, port: 443), since: second * Self.second)
    }

    /// A target asks at a time in seconds. Returns what is known, or the searches that begin.
    private mutating func ask(
        _ target: Int = 1, _ request: WitnessBook.Request = request(), at second: Double, up: Set<Int> = []
    ) -> (state: WitnessBook.State?, searches: [HopSearch]) {
        let time = Int64(second * 1e9)
        let state = book.state(request, for: TargetID(target), at: time)
        return (state, book.takeSearches(at: time) { up.contains($0.number) })
    }

    private mutating func reply(
        _ answer: HopSearchReply.Answer? = nil, wasSent: Bool = true, behind hop: Neighbor.Key = gateway, at second: Double
    ) -> WitnessBook.Outcome {
        let outcome = book.receive(
            hop, HopSearchReply(answer, wasSent: wasSent), isOwn: { $0 == IPAddress(v4: 0x0a00_0002) }, at: Int64(second * 1e9))
        for (target, state) in outcome.waiting { states[target] = state }
        return outcome
    }

    @Test mutating func `an answer since the probe began is a witness, without a search`() {
        book.noteTarget(TargetID(7), Self.other, port: 80, behind: Self.gateway, at: 2 * Self.second)
        let known = ask(1, Self.request(since: 1), at: 3)
        #expect(known.state?.witness?.address == Self.other && known.searches.isEmpty)
        let later = ask(1, Self.request(since: 3), at: 6)
        #expect(later.state == nil && later.searches.count == 1)
    }

    @Test mutating func `the hop itself, and what answers over another one, are no witnesses`() {
        book.noteTarget(TargetID(7), Self.gateway.address, port: 80, behind: Self.gateway, at: 0)
        book.noteNameServer(Self.gateway.address, behind: Self.gateway, at: 0)
        book.noteTarget(
            TargetID(8), Self.other, port: 80, behind: Neighbor.Key(interface: 3, address: Self.gateway.address), at: 0)
        expectNil(ask(at: 0).state)
    }

    @Test mutating func `all targets behind a hop share a search, at most one a second`() {
        let first = ask(1, at: 2.3)
        expectEqual(first.searches, [HopSearch(Self.gateway, .init(Self.server, port: 443))])
        expectEqual(first.searches.first?.limits, 2...8)
        expectEmpty(ask(2, Self.request(Self.other), at: 2.4).searches)
        let outcome = reply(at: 2.95)
        expectEqual(outcome.waiting.map(\.target), [TargetID(1), TargetID(2)])
        #expect(outcome.waiting.allSatisfy { $0.state.witness == nil })
        expectEqual(states[TargetID(1)]?.emptySearches, 1)
        expectEqual(states[TargetID(2)]?.emptySearches, 0, "it has not searched the way to this network")
        expectEqual(states[TargetID(2)]?.silentNetworks, 2)
        // Within a second, what that search found counts.
        let soon = ask(3, at: 3.2)
        #expect(soon.state?.witness == nil && soon.searches.isEmpty)
        expectEqual(ask(3, at: 3.3).searches.count, 1)
    }

    @Test mutating func `the way to the network that was searched least recently is searched next`() {
        _ = ask(1, at: 0)
        _ = reply(at: 0.65)
        _ = book.state(Self.request(), for: TargetID(1), at: 2 * Self.second)
        let next = ask(2, Self.request(Self.other), at: 2)
        expectEqual(next.searches.map(\.silent.address), [Self.other])
    }

    @Test mutating func `the first witness ends a search, and the end of a search without one counts`() {
        _ = ask(at: 0)
        expectEmpty(reply(.init(Self.gateway.address, limit: 2), at: 0.1).waiting, "the gateway")
        expectEmpty(reply(.init(IPAddress(v4: 0x0a00_0002), limit: 2), at: 0.1).waiting, "this machine")
        let outcome = reply(.init(IPAddress(v4: 0x0a08_0202), limit: 3), at: 0.2)
        let witness = outcome.waiting.first?.state.witness
        expectEqual(witness?.kind, .router)
        expectEqual(witness?.distance, 3)
        expectEmpty(reply(at: 0.65).waiting)
        // Three searches later, nothing has answered.
        for (index, time) in [2.0, 4.0, 6.0].enumerated() {
            _ = ask(1, Self.request(since: Int64(time)), at: time)
            _ = reply(at: time + 0.65)
            expectEqual(states[TargetID(1)]?.emptySearches, index + 1)
        }
        #expect(states[TargetID(1)]?.last == witness && states[TargetID(1)]?.hasRouters == true)
        // A late answer is one.
        _ = reply(.init(IPAddress(v4: 0x0a08_0202), limit: 3), at: 6.9)
        expectEqual(ask(1, Self.request(since: 6), at: 9).state?.witness?.distance, 3)
    }

    @Test mutating func `a search that could not be sent says nothing`() {
        for time in [0.0, 2.0, 4.0] {
            _ = ask(1, Self.request(since: Int64(time)), at: time)
            _ = reply(wasSent: false, at: time)
        }
        expectEqual(states[TargetID(1)]?.emptySearches, 0)
    }

    @Test mutating func `a search connects to two targets that are up, in other networks, those that answered last`() {
        for (number, address) in [0x0101_0101, 0x0202_0202, 0x0303_0303, 0xcb00_7108].enumerated() {
            book.noteTarget(
                TargetID(number), IPAddress(v4: UInt32(address)), port: 80, behind: Self.gateway, at: Int64(number) * Self.second)
        }
        let search = ask(9, Self.request(since: 5), at: 7, up: [0, 1, 3]).searches.first
        expectEqual(search?.others.map(\.target.number), [1, 0])
        let outcome = reply(.init(IPAddress(v4: 0x0202_0202), target: 1, roundTripNanoseconds: 5), at: 7.1)
        expectEqual(outcome.answered?.target, TargetID(1))
        expectEqual(outcome.waiting.first?.state.witness?.text, "2.2.2.2:80")
        _ = ask(9, Self.request(since: 10), at: 12, up: [0, 1])
        expectEqual(reply(at: 12.65).silent, [TargetID(1), TargetID(0)], "they are probed soon")
    }

    @Test mutating func `the far end of a tunnel is asked too, and is no witness`() {
        let tunnel = Neighbor.Key(interface: 4, address: IPAddress(v4: 0))
        expectEqual(ask(1, Self.request(behind: tunnel), at: 0).searches.first?.limits, 1...7)
        expectEmpty(reply(.init(IPAddress(v4: 0x0a08_0001), limit: 1), behind: tunnel, at: 0.1).waiting)
        expectEqual(reply(.init(IPAddress(v4: 0x0a08_0002), limit: 2), behind: tunnel, at: 0.1).waiting.count, 1)
    }

    @Test mutating func `the silent target itself may answer a search`() {
        _ = ask(at: 0)
        let witness = reply(.init(Self.server, limit: 2), at: 0.1).waiting.first?.state.witness
        #expect(witness?.kind == .target && witness?.text == "203.0.113.9:443")
    }

    @Test mutating func `a search whose reply is lost does not keep targets waiting`() {
        _ = ask(1, at: 0)
        expectEmpty(ask(2, at: 1.9).searches)
        expectEqual(ask(2, at: 2.1).searches.count, 1)
        expectEqual(reply(at: 2.8).waiting.map(\.target.number), [1, 2, 2])
    }

    @Test mutating func `another network behind an interface is not known, and memory is limited`() {
        book.noteTarget(TargetID(7), Self.other, port: 80, behind: Self.gateway, at: 0)
        book.forget(3)
        expectEqual(ask(at: 0).state?.witness?.address, Self.other)
        book.forget(2)
        expectNil(ask(at: 0).state)
        expectEqual(reply(at: 0.65).waiting.count, 1, "the search goes on")
        for number in 0..<1_000 {
            let hop = Neighbor.Key(interface: 2, address: IPAddress(v4: UInt32(0x0a01_0000 + number)))
            book.noteTarget(TargetID(7), Self.other, port: 80, behind: hop, at: Self.second)
        }
        expectEqual(book.hopCount, WitnessBook.hopLimit)
        book.forgetAll()
        expectEqual(book.hopCount, 0)
    }
}
