import Testing

@testable import Reachability

@Suite struct HopBookTests {
    private static let second: Int64 = 1_000_000_000
    private static let gateway = Neighbor.Key(interface: 2, address: IPAddress(v4: 0x0a00_0001))
    private static let query = HostQuery(gateway, isBound: true)
    private static let report = HopBook.Report(
        target: IPAddress(v4: 0xc000_0201), code: .adminProhibited,
        reporter: ProbeResult.Reporter(origin: 2, type: 3, code: 13, offender: IPAddress(v4: 0xcb00_7109)), port: nil, time: 0)

    private func request(since: Int64, address: UInt32 = 0xc000_0202) -> HopBook.Request {
        HopBook.Request(
            query: Self.query, since: since, address: IPAddress(v4: address), port: 443, hop: Self.gateway)
    }

    @Test func `many targets share one query, and all receive its reply`() {
        var book = HopBook()
        #expect(book.state(request(since: 0), for: TargetID(1), at: 10) == (nil, true))
        #expect(book.state(request(since: 5), for: TargetID(2), at: 11) == (nil, false))
        let states = book.take(Self.query, HostReply(.answered), at: 20)
        #expect(states.map(\.target) == [TargetID(1), TargetID(2)])
        #expect(states.allSatisfy { $0.state.isAlive && $0.state.hasAnswered })
        // A probe that began before the answer needs no query; a later one does.
        let known = book.state(request(since: 15), for: TargetID(3), at: Self.second)
        #expect(known.state?.isAlive == true && !known.mustAsk)
        #expect(book.state(request(since: 21), for: TargetID(3), at: Self.second).mustAsk)
    }

    @Test func `a hop that has answered and is silent now is silent, one that never answered is not`() {
        var book = HopBook()
        _ = book.state(request(since: 0), for: TargetID(1), at: 0)
        #expect(book.take(Self.query, HostReply(.silent), at: 1).first?.state.isSilent == false)
        _ = book.state(request(since: Self.second), for: TargetID(1), at: Self.second)
        _ = book.take(Self.query, HostReply(.answered), at: Self.second)
        _ = book.state(request(since: 2 * Self.second), for: TargetID(1), at: 2 * Self.second)
        #expect(book.take(Self.query, HostReply(.silent), at: 3 * Self.second).first?.state.isSilent == true)
    }

    @Test func `an answer of another target behind the hop proves that the hop is alive`() {
        var book = HopBook()
        let isFirst = book.noteAlive(Self.gateway, at: 5)
        let isSecond = book.noteAlive(Self.gateway, at: 6)
        #expect(isFirst && !isSecond)
        let known = book.state(request(since: 6), for: TargetID(1), at: 7)
        #expect(known.state?.isAlive == true && !known.mustAsk)
    }

    @Test func `a query without a reply is sent again after two seconds`() {
        var book = HopBook()
        #expect(book.state(request(since: 0), for: TargetID(1), at: 0).mustAsk)
        #expect(!book.state(request(since: 0), for: TargetID(2), at: Self.second).mustAsk)
        #expect(book.state(request(since: 0), for: TargetID(3), at: 2 * Self.second).mustAsk)
    }

    @Test func `a report counts for other targets of its network behind the same hop, for 30 seconds`() {
        var book = HopBook()
        book.note(Self.report, behind: Self.gateway)
        func report(_ address: UInt32, at time: Int64, behind hop: Neighbor.Key = Self.gateway) -> HopBook.Report? {
            book.report(about: IPAddress(v4: address), port: 443, behind: hop, at: time)
        }
        #expect(report(0xc000_0202, at: 29 * Self.second) == Self.report)
        #expect(report(0xc000_0202, at: 30 * Self.second) == nil)
        #expect(report(0xc000_0302, at: 0) == nil, "another /24")
        #expect(report(0xc000_0201, at: 0) == nil, "the target itself has its own evidence")
        #expect(report(0xc000_0202, at: 0, behind: Neighbor.Key(interface: 3, address: Self.gateway.address)) == nil)
        book.forget(2)
        #expect(report(0xc000_0202, at: 0) == nil)
    }

    @Test func `after the link has lost its carrier, the gateway counts as one that has never answered`() {
        var book = HopBook()
        _ = book.state(request(since: 0), for: TargetID(1), at: 0)
        _ = book.take(Self.query, HostReply(.answered), at: 0)
        book.forget(2)
        _ = book.state(request(since: Self.second), for: TargetID(1), at: Self.second)
        #expect(book.take(Self.query, HostReply(.silent), at: Self.second).first?.state.isSilent == false)
    }

    @Test func `the number of hosts is bounded`() {
        var book = HopBook()
        for number in 0..<UInt32(2 * HopBook.recordLimit) {
            let host = Neighbor.Key(interface: 2, address: IPAddress(v4: number))
            let request = HopBook.Request(
                query: HostQuery(host, isBound: false), since: 0, address: host.address, port: 1, hop: Self.gateway)
            _ = book.state(request, for: TargetID(1), at: 0)
            _ = book.take(request.query, HostReply(.silent), at: 0)
        }
        #expect(book.hostCount <= HopBook.recordLimit)
    }
}
