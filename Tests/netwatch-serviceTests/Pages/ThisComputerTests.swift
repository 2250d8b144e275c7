import Expectations
import Reachability
import Testing

@testable import netwatch_service

@Suite struct ThisComputerTests {
    private func findings(_ board: Board) -> [ThisComputer.Finding] { ThisComputer(board).facets.map(\.finding) }

    @Test func `nothing is known before the path has settled`() {
        expectEqual(findings(PageSamples.board(path: nil)), Array(repeating: .unproven, count: 5))
    }

    @Test func `a satisfied path proves link and address, an answer from beyond the link proves the gateway`() {
        expectEqual(findings(PageSamples.board()), [.works, .works, .unproven, .unproven, .unproven])
        let near = PageSamples.target("a", PageSamples.update("192.0.2.9:80"))
        expectEqual(findings(PageSamples.board([near]))[2], .works, "198.51.100.9 answers over eth0")
        expectEqual(findings(PageSamples.board([near]))[3], .unproven, "the target is an address")
        let named = PageSamples.target("b", PageSamples.update("db.example:80"))
        expectEqual(findings(PageSamples.board([named])), [.works, .works, .works, .works, .unproven])
    }

    @Test func `a link without carrier fails, and nothing behind it is reached`() {
        let computer = ThisComputer(PageSamples.withoutLink)
        expectEqual(computer.facets.map(\.finding), [.fails, .notReached, .notReached, .notReached, .notReached])
        expectEqual(computer.failure?.cause, PageSamples.noCarrier)
        expectEqual(computer.facets.compactMap(\.cause), [PageSamples.noCarrier])
    }

    @Test func `an open incident of the gateway or of a name server fails its layer`() {
        var board = PageSamples.board()
        board.incidents = [
            PageSamples.incident(
                "1", .path, .init(.gateway, "192.0.2.1"), PageSamples.gatewaySilent, ["192.0.2.1:80"], from: PageSamples.now)
        ]
        expectEqual(findings(board), [.works, .works, .fails, .notReached, .notReached])
        board.incidents[0] = PageSamples.incident(
            "1", .path, .init(.gateway, "192.0.2.1"), PageSamples.gatewaySilent, ["192.0.2.1:80"], from: PageSamples.now - 9,
            to: PageSamples.now)
        expectEqual(findings(board)[2], .unproven)
        let silent = Cause(.dns, .resolverSilent, detail: "the name server 192.0.2.53 does not answer")
        board.incidents[0] = PageSamples.incident(
            "2", .path, .init(.resolver, "192.0.2.53"), silent, ["a.example:80"], from: PageSamples.now)
        expectEqual(findings(board)[3], .fails)
    }

    @Test func `a machine without a name server says so`() {
        let computer = ThisComputer(PageSamples.board(path: PageSamples.withoutNameServer))
        expectEqual(computer.facets[3].finding, .fails)
        expectEqual(computer.facets[3].cause?.code, .noResolver)
        expectEqual(computer.facets[2].finding, .notUsed)
        // Targets that are addresses need none.
        let address = PageSamples.target("a", PageSamples.update("192.0.2.9:80"))
        expectEqual(ThisComputer(PageSamples.board([address], path: PageSamples.withoutNameServer)).facets[3].finding, .notUsed)
    }

    @Test func `names that are resolved without a configured name server prove one at 127_0_0_1`() {
        let path = NetworkPath(
            status: .satisfied, interface: PageSamples.eth0, interfaceV4: PageSamples.eth0, interfaces: [PageSamples.eth0])
        let computer = ThisComputer(PageSamples.board([PageSamples.target("a", PageSamples.update("a.example:80"))], path: path))
        expectEqual(computer.facets[3].finding, .works)
    }

    @Test func `the name servers are shown with their interface, and whether the last lookup failed`() {
        let path = NetworkPath(
            status: .satisfied, interface: PageSamples.eth0, interfaceV4: PageSamples.eth0, interfaces: [PageSamples.eth0],
            nameServers: [IPAddress("192.0.2.53")].compactMap { $0 })
        func resolver(_ updates: ServerUpdate..., isOwn: Bool = false) -> ThisComputer.Facet {
            let targets = updates.map { update in
                var target = PageSamples.target(update.endpoint.text, update)
                target.hasOwnResolver = isOwn
                return target
            }
            return ThisComputer(PageSamples.board(targets, path: path)).facets[3]
        }
        #expect(resolver().finding == .unproven && resolver().detail == "192.0.2.53 via eth0")
        let up = resolver(PageSamples.update("db.example:80"))
        #expect(up.finding == .works && up.detail == "resolves names: 192.0.2.53 via eth0")
        expectEqual(resolver(PageSamples.update("localhost:80")).finding, .unproven)
        let silent = Cause(.dns, .resolverSilent, detail: "the name server 192.0.2.53 does not answer")
        let failed = resolver(PageSamples.update("db.example:80", .unreachable, silent))
        #expect(
            failed.finding == .fails && failed.detail == "the last lookup failed: 192.0.2.53 via eth0" && failed.cause == silent)
        // A name server of a target's own shows nothing about those of this computer.
        expectEqual(resolver(PageSamples.update("db.example:80"), isOwn: true).finding, .unproven)
        expectEqual(resolver(PageSamples.update("db.example:80", .unreachable, silent), isOwn: true).finding, .unproven)
        // An authority has answered.
        let missing = Cause(.dns, .nameNotFound, detail: "db.example does not exist")
        expectEqual(resolver(PageSamples.update("db.example:80", .down, missing)).finding, .unproven)
    }

    @Test func `the canary decides the Internet`() {
        var board = PageSamples.board()
        for (state, finding) in [
            (StatusName.up, ThisComputer.Finding.works), (.degraded, .degraded), (.down, .fails), (.unreachable, .fails),
            (.unknown, .unproven),
        ] {
            board.canary = PageSamples.update(
                "http://canary.example/204", state, state == .up || state == .unknown ? nil : PageSamples.refused)
            expectEqual(findings(board)[4], finding, "\(state)")
        }
    }
}
