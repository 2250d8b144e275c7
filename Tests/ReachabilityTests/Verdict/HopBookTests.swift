import Expectations
import Testing

@testable import Reachability

@Suite struct HopBookTests {
    private static let second: Int64 = 1_000_000_000
    private static let gateway = Neighbor.Key(interface: 2, address: IPAddress(v4: 0x0a00_0001))
    private static let query = HostQuery(gateway, isBound: true)
    private static let report = HopBook.Report(
        target: IPAddress(v4: 0xc000_0201), port: 443, code: .adminProhibited,
        reporter: ProbeResult.Reporter(origin: 2, type: 3, code: 13, offender: IPAddress(v4: 0xcb00_7109)), time: 0)

    private func request(since: Int64, address: UInt32 = 0xc000_0202) -> HopBook.Request {
        HopBook.Request(
            query: Self.query, since: since, address: IPAddress(v4: address), port: 443, hop: Self.gateway)
    }

    @Test func `many targets share one query, and all receive its reply`() {
        var book = HopBook()
        #expect(book.state(request(since: 0), for: TargetID(1), at: 10) == (nil, Self.query))
        #expect(book.state(request(since: 5), for: TargetID(2), at: 11) == (nil, nil))
        let states = book.receive(Self.query, HostReply(.answered), at: 20)
        expectEqual(states.map(\.target), [TargetID(1), TargetID(2)])
        #expect(states.allSatisfy { $0.state.isAlive && $0.state.hasAnswered })
        // A probe that began before the answer needs no query; a later one does.
        let known = book.state(request(since: 15), for: TargetID(3), at: Self.second)
        #expect(known.state?.isAlive == true && known.query == nil)
        #expect(book.state(request(since: 21), for: TargetID(3), at: Self.second).query != nil)
    }

    @Test func `a hop that has answered and is silent now is silent, one that never answered is not`() {
        var book = HopBook()
        _ = book.state(request(since: 0), for: TargetID(1), at: 0)
        expectEqual(book.receive(Self.query, HostReply(.silent), at: 1).first?.state.isSilent, false)
        _ = book.state(request(since: Self.second), for: TargetID(1), at: Self.second)
        _ = book.receive(Self.query, HostReply(.answered, to: .connection), at: Self.second)
        _ = book.state(request(since: 2 * Self.second), for: TargetID(1), at: 2 * Self.second)
        expectEqual(book.receive(Self.query, HostReply(.silent), at: 3 * Self.second).first?.state.isSilent, true)
    }

    private static let neighbor = HopBook.Proof.target(IPAddress(v4: 0xc000_0203), port: 80)

    @Test func `the time of the first silence is kept until an answer`() {
        var book = HopBook()
        func silentSince(_ outcome: HostReply.Outcome, at second: Int64) -> Int64? {
            let time = second * Self.second
            _ = book.state(request(since: time), for: TargetID(1), at: time)
            return book.receive(Self.query, HostReply(outcome), at: time + 1).first?.state.silentSince
        }
        expectEqual(silentSince(.silent, at: 1), Self.second)
        expectEqual(silentSince(.silent, at: 2), Self.second)
        expectEqual(silentSince(.refused, at: 3), Self.second)
        expectNil(silentSince(.answered, at: 4))
        expectEqual(silentSince(.silent, at: 5), 5 * Self.second)
    }

    @Test func `a hop over which a target answers for the first time is asked whether it answers queries`() {
        var book = HopBook()
        let isFirst = book.noteAlive(Self.gateway, by: Self.neighbor, at: 5)
        let isSecond = book.noteAlive(Self.gateway, by: Self.neighbor, at: 6)
        #expect(isFirst && !isSecond)
    }

    @Test
    func `a silent hop over which a target answers is asked again, so that its next silence is known`() {
        var book = HopBook()
        func mustAsk(at time: Int64) -> Bool { book.noteAlive(Self.gateway, by: Self.neighbor, at: time) }
        #expect(mustAsk(at: 0))
        _ = book.receive(Self.query, HostReply(.answered, to: .connection), at: 1)
        #expect(!mustAsk(at: Self.second))
        _ = book.state(request(since: Self.second), for: TargetID(1), at: Self.second)
        _ = book.receive(Self.query, HostReply(.silent), at: Self.second + 1)
        #expect(!mustAsk(at: 2 * Self.second - 1))
        #expect(mustAsk(at: 2 * Self.second))
        #expect(!mustAsk(at: 3 * Self.second))
        _ = book.receive(Self.query, HostReply(.answered, to: .connection), at: 3 * Self.second)
        #expect(!mustAsk(at: 9 * Self.second))
        _ = book.state(request(since: 9 * Self.second), for: TargetID(1), at: 9 * Self.second)
        let state = book.receive(Self.query, HostReply(.silent), at: 10 * Self.second).first?.state
        expectEqual(state?.silentSince, 9 * Self.second)
        expectEqual(state?.isSilent, true)
    }

    @Test func `a host that a router cannot reach is unreachable at its other ports, and other hosts are not`() {
        var book = HopBook()
        var report = Self.report
        report = HopBook.Report(
            target: report.target, port: 443, code: .hostUnreachable, reporter: report.reporter, time: 0)
        book.note(report, behind: Self.gateway)
        func found(_ address: UInt32, _ port: UInt16) -> HopBook.Report? {
            book.report(about: IPAddress(v4: address), port: port, behind: Self.gateway, at: Self.second)
        }
        expectEqual(found(0xc000_0201, 80), report)
        expectNil(found(0xc000_0201, 443))
        expectNil(found(0xc000_0202, 80))
        expectNil(found(0xc000_0202, 443))
    }

    @Test func `an unreachable host is noted for the others of its network while the router's reports may be used up`() {
        var book = HopBook()
        func note(_ target: UInt32, at time: Int64) {
            book.note(
                HopBook.Report(
                    target: IPAddress(v4: target), port: 443, code: .hostUnreachable, reporter: Self.report.reporter, time: time),
                behind: Self.gateway)
        }
        func reported(beside address: UInt32, at time: Int64) -> IPAddress? {
            let (state, _) = book.state(request(since: time, address: address), for: TargetID(1), at: time)
            if let state { return state.hostReport?.target }
            return book.receive(Self.query, HostReply(.answered), at: time).last?.state.hostReport?.target
        }
        note(0xc000_0201, at: 0)
        expectNil(reported(beside: 0xc000_0201, at: 1), "the host itself")
        expectEqual(reported(beside: 0xc000_0202, at: Self.second), IPAddress(v4: 0xc000_0201))
        expectNil(reported(beside: 0xc000_0302, at: 2 * Self.second), "another /24")
        expectNil(reported(beside: 0xc000_0202, at: 7 * Self.second))
        // The last reports of two hosts are kept, so that one of them concerns another host than the one that is asked about.
        note(0xc000_0201, at: 8 * Self.second)
        note(0xc000_0202, at: 9 * Self.second)
        expectEqual(reported(beside: 0xc000_0202, at: 10 * Self.second), IPAddress(v4: 0xc000_0201))
        expectEqual(reported(beside: 0xc000_0203, at: 11 * Self.second), IPAddress(v4: 0xc000_0202))
        book.forgetAll()
        expectNil(reported(beside: 0xc000_0203, at: 12 * Self.second))
    }

    @Test func `an ICMP message of a router behind the hop proves that the hop is alive, without a query`() {
        var book = HopBook()
        _ = book.noteAlive(Self.gateway, by: .router, at: 6)
        let known = book.state(request(since: 6), for: TargetID(1), at: 7)
        #expect(known.state?.isAlive == true && known.query == nil)
    }

    @Test func `the hop itself is asked even if another target answers over it, because this machine can answer in its name`() {
        var book = HopBook()
        _ = book.noteAlive(Self.gateway, by: Self.neighbor, at: 0)
        _ = book.receive(Self.query, HostReply(.answered), at: 1)
        _ = book.noteAlive(Self.gateway, by: Self.neighbor, at: Self.second)
        #expect(book.state(request(since: Self.second), for: TargetID(1), at: Self.second).query != nil)
        let state = book.receive(Self.query, HostReply(.silent), at: 2 * Self.second).first?.state
        #expect(state?.isSilent == true && state?.isUsed == true)
    }

    @Test func `the answer of another target counts from the start of the probe`() {
        var book = HopBook()
        _ = book.noteAlive(Self.gateway, by: Self.neighbor, at: 10)
        _ = book.receive(Self.query, HostReply(.silent), at: 11)
        expectEqual(book.state(request(since: 10), for: TargetID(1), at: 12).state?.isUsed, true)
        expectEqual(book.state(request(since: 11), for: TargetID(1), at: 12).state?.isUsed, false)
    }

    @Test func `from a number of hosts on, further ones are not asked before they are silent`() {
        var book = HopBook()
        var asked = 0
        for number in 0..<UInt32(HopBook.baselineLimit + 10) {
            let host = Neighbor.Key(interface: 2, address: IPAddress(v4: number))
            if book.noteAlive(host, by: .target(host.address, port: 80), at: 0) { asked += 1 }
        }
        #expect(asked == HopBook.baselineLimit && book.hostCount == HopBook.baselineLimit)
    }

    @Test func `a query without a reply is sent again after two seconds`() {
        var book = HopBook()
        #expect(book.state(request(since: 0), for: TargetID(1), at: 0).query != nil)
        #expect(book.state(request(since: 0), for: TargetID(2), at: Self.second).query == nil)
        #expect(book.state(request(since: 0), for: TargetID(3), at: 2 * Self.second).query != nil)
    }

    @Test func `a report counts for other targets of its network behind the same hop, for 30 seconds`() {
        var book = HopBook()
        book.note(Self.report, behind: Self.gateway)
        func report(_ address: UInt32, at time: Int64, behind hop: Neighbor.Key = Self.gateway) -> HopBook.Report? {
            book.report(about: IPAddress(v4: address), port: 443, behind: hop, at: time)
        }
        expectEqual(report(0xc000_0202, at: 29 * Self.second), Self.report)
        expectNil(report(0xc000_0202, at: 30 * Self.second))
        expectNil(report(0xc000_0302, at: 0), "another /24")
        expectNil(report(0xc000_0201, at: 0), "the target itself has its own evidence")
        expectNil(report(0xc000_0202, at: 0, behind: Neighbor.Key(interface: 3, address: Self.gateway.address)))
        book.forget(2)
        expectNil(report(0xc000_0202, at: 0))
    }

    /// A report about port 443 of 192.0.2.1, and the ports at which a report explains the silence of 192.0.2.2.
    private struct Reports {
        var book = HopBook()

        mutating func note(at second: Int64, _ code: Cause.Code = .adminProhibited, port: UInt16 = 443) {
            let report = HopBook.Report(
                target: HopBookTests.report.target, port: port, code: code, reporter: HopBookTests.report.reporter,
                time: second * HopBookTests.second)
            book.note(report, behind: HopBookTests.gateway)
        }

        mutating func answer(_ address: UInt32, port: UInt16, at second: Int64, behind hop: Neighbor.Key = HopBookTests.gateway) {
            _ = book.noteAlive(hop, by: .target(IPAddress(v4: address), port: port), at: second * HopBookTests.second)
        }

        func ports(at second: Int64) -> [UInt16] {
            [80, 443].filter { port in
                book.report(
                    about: IPAddress(v4: 0xc000_0202), port: port, behind: HopBookTests.gateway,
                    at: second * HopBookTests.second) != nil
            }
        }
    }

    @Test func `a report counts for all ports of its network, and one of a filtered port for that port only`() {
        var reports = Reports()
        reports.note(at: 0)
        expectEqual(reports.ports(at: 1), [80, 443])
        reports = Reports()
        reports.note(at: 0, .portFiltered)
        expectEqual(reports.ports(at: 1), [443])
    }

    @Test func `an answer of a target of the network at the reported port withdraws the report`() {
        var reports = Reports()
        reports.note(at: 0)
        reports.answer(0xc000_0303, port: 443, at: 1)
        expectEqual(reports.ports(at: 1), [80, 443], "another network")
        reports.answer(0xc000_0203, port: 443, at: 1, behind: Neighbor.Key(interface: 3, address: Self.gateway.address))
        expectEqual(reports.ports(at: 1), [80, 443], "another route")
        reports.answer(0xc000_0203, port: 443, at: 1)
        expectEqual(reports.ports(at: 1), [])
    }

    @Test func `an answer at another port shows that the report is not about the complete network`() {
        var reports = Reports()
        reports.note(at: 0)
        reports.answer(0xc000_0203, port: 8080, at: 1)
        expectEqual(reports.ports(at: 1), [443])
    }

    @Test func `reports and answers that alternate do not bring the report back`() {
        var reports = Reports()
        for second in 0..<(40 as Int64) {
            reports.note(at: second)
            reports.answer(0xc000_0203, port: 443, at: second)
            reports.note(at: second)
            expectEqual(reports.ports(at: second), [])
        }
        // The answers have ended.
        for second in (40..<71) as Range<Int64> { reports.note(at: second) }
        expectEqual(reports.ports(at: 70), [80, 443])
    }

    @Test func `an answer from before the first report says nothing about it`() {
        var reports = Reports()
        reports.answer(0xc000_0203, port: 443, at: 0)
        reports.note(at: 1)
        expectEqual(reports.ports(at: 1), [80, 443])
        // The next report comes after a gap, in which the former reports and answers expire.
        reports.answer(0xc000_0203, port: 443, at: 2)
        reports.note(at: 31)
        expectEqual(reports.ports(at: 31), [80, 443])
    }

    @Test func `a report about the same port has precedence over a later one about another port`() {
        var reports = Reports()
        reports.note(at: 0, .portFiltered)
        reports.note(at: 1, .adminProhibited, port: 8080)
        func code(_ port: UInt16) -> Cause.Code? {
            reports.book.report(about: IPAddress(v4: 0xc000_0202), port: port, behind: Self.gateway, at: 2 * Self.second)?.code
        }
        #expect(code(443) == .portFiltered && code(80) == .adminProhibited)
    }

    @Test func `after the link has lost its carrier, the gateway counts as one that has never answered`() {
        var book = HopBook()
        _ = book.state(request(since: 0), for: TargetID(1), at: 0)
        _ = book.receive(Self.query, HostReply(.answered), at: 0)
        book.forget(2)
        _ = book.state(request(since: Self.second), for: TargetID(1), at: Self.second)
        expectEqual(book.receive(Self.query, HostReply(.silent), at: Self.second).first?.state.isSilent, false)
    }

    @Test func `the number of hosts is bounded`() {
        var book = HopBook()
        for number in 0..<UInt32(2 * HopBook.recordLimit) {
            let host = Neighbor.Key(interface: 2, address: IPAddress(v4: number))
            let request = HopBook.Request(
                query: HostQuery(host, isBound: false), since: 0, address: host.address, port: 1, hop: Self.gateway)
            _ = book.state(request, for: TargetID(1), at: 0)
            _ = book.receive(request.query, HostReply(.silent), at: 0)
        }
        #expect(book.hostCount <= HopBook.recordLimit)
    }

    @Test
    func `the link-layer address of an answering server is asked for once a minute, and that of a silent one is not stored`() {
        var book = HopBook()
        let host = Neighbor.Key(interface: 2, address: IPAddress(v4: 0x0a00_0009))
        let proof = HopBook.Proof.target(host.address, port: 80)
        func mustLearn(at second: Int64) -> Bool {
            _ = book.noteAlive(host, by: proof, at: second * Self.second)
            return book.mustLearn(host, at: second * Self.second)
        }
        #expect(mustLearn(at: 0) && !mustLearn(at: 59) && mustLearn(at: 60))
        book.learn(host, .state(.reachable, linkAddress: [1, 2]))
        book.learn(host, .state(.failed, linkAddress: []))
        let request = HopBook.Request(
            query: HostQuery(host, isBound: true), since: 61 * Self.second, address: host.address, port: 80, hop: host)
        _ = book.state(request, for: TargetID(1), at: 61 * Self.second)
        let state = book.receive(request.query, HostReply(.silent), at: 62 * Self.second).first?.state
        expectEqual(state?.linkAddress, [1, 2])
    }

    /// A gateway that has answered this question once is silent to the query of a target at a time in seconds.
    private func silence(
        after question: HopAnswers.Question, at second: Int64, _ change: (inout HopBook) -> Void = { _ in }
    ) -> HopBook.State? {
        var book = HopBook()
        _ = book.noteAlive(Self.gateway, by: Self.neighbor, at: 0)
        _ = book.receive(Self.query, HostReply(.answered, to: question), at: 1)
        change(&book)
        _ = book.state(request(since: second * Self.second), for: TargetID(1), at: second * Self.second)
        return book.receive(Self.query, HostReply(.silent), at: second * Self.second + 1).first?.state
    }

    @Test func `silence to datagrams proves nothing for a minute after packets that may have drawn ICMP messages`() {
        expectEqual(silence(after: .datagram, at: 100)?.isSilent, true)
        let report = HopBook.Report(
            target: Self.report.target, port: 443, code: .netUnreachable, reporter: Self.report.reporter, time: 50 * Self.second)
        for (second, isSilent) in [(51, false), (109, false), (110, true)] as [(Int64, Bool)] {
            let state = silence(after: .datagram, at: second) { $0.note(report, behind: Self.gateway) }
            expectEqual(state?.isSilent, isSilent, "\(second)")
        }
        // The silent probe of another target has drawn messages too.
        let second = silence(after: .datagram, at: 100) { book in
            _ = book.state(self.request(since: 60 * Self.second, address: 0xc000_0303), for: TargetID(2), at: 60 * Self.second)
            _ = book.receive(Self.query, HostReply(.answered, to: .datagram), at: 61 * Self.second)
        }
        expectEqual(second?.isSilent, false)
    }

    @Test func `a host that answers connections is silent if it answers neither those nor datagrams`() {
        let report = HopBook.Report(
            target: Self.report.target, port: 443, code: .netUnreachable, reporter: Self.report.reporter, time: 99 * Self.second)
        expectEqual(silence(after: .connection, at: 100) { $0.note(report, behind: Self.gateway) }?.isSilent, true)
    }

    @Test func `a gateway without a route reports it for some targets, and all others are silent for it`() {
        func inferred(_ change: (inout HopBook) -> Void = { _ in }) -> IPAddress? {
            var book = HopBook()
            let own = ProbeResult.Reporter(origin: 2, type: 3, code: 0, offender: Self.gateway.address)
            let report = HopBook.Report(
                target: Self.report.target, port: 443, code: .netUnreachable, reporter: own, time: Self.second)
            book.note(report, behind: Self.gateway)
            change(&book)
            _ = book.state(request(since: 0, address: 0xcb00_7101), for: TargetID(1), at: 3 * Self.second)
            return book.receive(Self.query, HostReply(.answered), at: 3 * Self.second + 1).first?.state.routeReport?.target
        }
        expectEqual(inferred(), Self.report.target)
        // A target in a third network answers: the gateway has a route there.
        let other = HopBook.Proof.target(IPAddress(v4: 0xc633_6407), port: 80)
        expectNil(inferred { _ = $0.noteAlive(Self.gateway, by: other, at: 2 * Self.second) })
    }

    // MARK: Packets that this machine drops

    /// The port of which packets are counted by the query for a target's host at a time; 0 if they are not, `nil` without a query.
    private func counted(_ book: inout HopBook, _ host: UInt32, port: UInt16 = 443, at time: Int64) -> UInt16? {
        let address = IPAddress(v4: host)
        let request = HopBook.Request(
            query: HostQuery(Neighbor.Key(interface: 2, address: address), isBound: false), since: time, address: address,
            port: port,
            hop: Self.gateway)
        return book.state(request, for: TargetID(Int(host & 255)), at: time).query.map { $0.port ?? 0 }
    }

    @Test func `drops are counted for one host a second, and not for a first hop`() {
        var book = HopBook()
        expectEqual(book.state(request(since: 0), for: TargetID(9), at: 0).query, Self.query)
        expectEqual(counted(&book, 0xc000_0201, at: 0), 443)
        expectEqual(counted(&book, 0xc000_0202, at: 1), 0)
        expectEqual(counted(&book, 0xc000_0203, port: 80, at: HopBook.countGap), 80)
    }

    @Test func `after a count with drops the same host is counted next, for ten seconds`() {
        var book = HopBook()
        let host = HostQuery(Neighbor.Key(interface: 2, address: IPAddress(v4: 0xc000_0201)), isBound: false, port: 443)
        _ = counted(&book, 0xc000_0201, at: 0)
        _ = book.receive(host, HostReply(.silent, drops: DropCount(443, .output)), at: Self.second)
        expectEqual(counted(&book, 0xc000_0202, at: 2 * Self.second), 0)
        expectEqual(counted(&book, 0xc000_0201, at: 3 * Self.second), 443)
        _ = book.receive(host, HostReply(.silent, drops: DropCount(443, .output)), at: 4 * Self.second)
        expectEqual(counted(&book, 0xc000_0203, at: 5 * Self.second), 443)
        // Without a second count, others have their turn after that time.
        _ = book.receive(host, HostReply(.silent, drops: DropCount(443, .output)), at: 6 * Self.second)
        expectEqual(counted(&book, 0xc000_0204, at: 15 * Self.second), 0)
        expectEqual(counted(&book, 0xc000_0205, at: 16 * Self.second), 443)
    }
}
