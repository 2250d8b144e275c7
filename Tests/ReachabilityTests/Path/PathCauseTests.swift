import Testing

@testable import Reachability

/// Why a path is unsatisfied: the lowest failing layer of the last selected interface; without one, of the best.
@Suite struct PathCauseTests {
    private func cause(_ links: [Link], _ addresses: [Address] = [], answer: RouteAnswer = .refused(errno: 101)) throws -> Cause {
        var bench = PathBench()
        bench.tables[.links] = ([Net.lo] + links).map { .link($0) }
        bench.tables[.addresses] = addresses.map { .address($0) }
        bench.routes[RouteQuery(Net.anywhere)] = answer
        guard let cause = bench.start().published.first?.path.cause else { throw Unexpected(bench.machine.snapshot) }
        return cause
    }

    private func expect(_ cause: Cause, _ layer: Cause.Layer, _ code: Cause.Code, naming name: String? = nil) {
        #expect(cause.layer == layer)
        #expect(cause.code == code)
        if let name { #expect(cause.detail.contains(name), "\(cause)") }
    }

    @Test func `nothing but loopback`() throws {
        expect(try cause([]), .link, .noInterface)
    }

    @Test func `switched off, no carrier, dormant`() throws {
        expect(try cause([Net.eth0.off]), .link, .interfaceDown, naming: "eth0")
        expect(try cause([Net.eth0.unplugged]), .link, .noCarrier, naming: "eth0")
        expect(try cause([Net.eth0.with(flags: [.up, .lowerUp, .dormant], state: .dormant)]), .link, .dormant, naming: "eth0")
    }

    @Test func `no address, still checked, in use by another`() throws {
        expect(try cause([Net.eth0]), .address, .noAddress, naming: "eth0")
        let linkLocal = Address(interface: 2, prefix: IPPrefix(Net.linkLocal6, length: 64), scope: 253)
        expect(try cause([Net.eth0], [linkLocal]), .address, .noAddress)
        let tentative = Address(interface: 2, prefix: IPPrefix(Net.source6, length: 64), flags: .tentative)
        expect(try cause([Net.eth0], [linkLocal, tentative]), .address, .tentativeAddress)
        let duplicate = Address(interface: 2, prefix: IPPrefix(Net.source6, length: 64), flags: [.tentative, .duplicate])
        expect(try cause([Net.eth0], [linkLocal, duplicate]), .address, .duplicateAddress)
    }

    @Test(arguments: [(Int32(101), Cause.Code.noRoute), (113, .routeUnreachable), (13, .routeProhibited), (22, .routeBlackhole)])
    func `links usable, no way`(errno: Int32, code: Cause.Code) throws {
        let cause = try cause([Net.eth0], [Net.address], answer: .refused(errno: errno))
        expect(cause, .route, code)
        #expect(cause.evidence["destination"] == .text("198.51.100.1"))
    }

    @Test func `a refusal by a route says more than the other family's having none`() {
        var bench = PathBench()
        bench.connect()
        bench.routes = [RouteQuery(Net.anywhere6): .refused(errno: 13)]
        #expect(bench.start().published.first?.path.cause?.code == .routeProhibited)
    }

    @Test func `the best interface decides, and a port is not the best: its bridge is`() throws {
        expect(try cause([Net.eth0.off, Net.eth1.unplugged]), .link, .noCarrier, naming: "eth1")
        var port = Net.eth0
        port.master = 20
        let bridge = Link(index: 20, name: "br0", flags: Net.up, operationalState: .up, kind: "bridge")
        expect(try cause([port, bridge]), .address, .noAddress, naming: "br0")
    }

    @Test func `hardware before software, then the lower index`() throws {
        expect(try cause([Link(index: 2, name: "veth2", kind: "veth"), Net.eth1.off]), .link, .interfaceDown, naming: "eth1")
        expect(try cause([Net.eth1.off, Net.eth0.off]), .link, .interfaceDown, naming: "eth0")
    }

    @Test func `the last selected interface decides, however good another looks`() {
        var bench = PathBench.online()
        bench.hear(.link(Net.eth1), .address(Address(interface: 3, prefix: IPPrefix(IPAddress(v4: 0x0a00_0003), length: 24))))
        bench.routes = [:]
        #expect(bench.hear(.link(Net.eth0.off)).published.first?.path.cause?.code == .interfaceDown)
        let gone = bench.hear(.linkRemoved(2)).published.first?.path.cause
        #expect(gone?.code == .noInterface)
        #expect(gone?.detail.contains("eth0") == true)
    }

    @Test func `the last selected interface that is back under its name is judged as it is`() {
        var bench = PathBench.online()
        bench.routes = [:]
        #expect(bench.hear(.linkRemoved(2)).published.first?.path.cause?.code == .noInterface)
        var again = Net.eth0
        again.index = 9
        #expect(bench.hear(.link(again.unplugged)).published.first?.path.cause?.code == .noCarrier)
        #expect(bench.hear(.link(again)).published.first?.path.cause?.code == .noAddress)
        let address = Address(interface: 9, prefix: Net.address.key.prefix)
        #expect(bench.hear(.address(address)).published.first?.path.cause?.code == .noRoute)
    }

    @Test func `another device that gets the index of the last selected one is not it`() {
        var bench = PathBench.online()
        bench.routes = [:]
        bench.hear(.linkRemoved(2))
        bench.hear(.link(Link(index: 2, name: "tap7", kind: "tun", isTap: true)))
        let cause = bench.machine.path?.cause
        #expect(cause?.code == .noInterface)
        #expect(cause?.detail.contains("eth0") == true)
    }

    @Test func `another device that was given the wanted name is judged, not the one that had it`() {
        var bench = PathBench(MonitorConfiguration(selection: .named("eth0")))
        bench.connect()
        bench.routes = [RouteQuery(Net.anywhere, interface: 2): .route(ChosenRoute(interface: 2, source: Net.address.address))]
        #expect(bench.start().published.first?.path.status == .satisfied)
        var (former, present) = (Net.eth0, Net.eth1.unplugged)
        (former.name, present.name) = ("old0", "eth0")
        bench.routes = [:]
        #expect(bench.hear(.link(former)).published.first?.path.cause?.code == .noInterface)
        #expect(bench.hear(.link(present)).published.first?.path.cause?.code == .noCarrier)
    }

    @Test func `the last selected interface goes by the name that it was given`() {
        var bench = PathBench.online()
        bench.routes = [:]
        var renamed = Net.eth0.off
        renamed.name = "lan0"
        bench.hear(.link(Net.eth0.off))
        bench.hear(.link(renamed))
        #expect(bench.hear(.linkRemoved(2)).published.first?.path.cause?.detail == "interface lan0 is gone")
    }

    @Test func `a rule that refuses where no route was is told, although the kernel answers the same`() {
        var bench = PathBench.online()
        bench.routes = [:]
        bench.tables[.routesV4] = [.route(Net.onLink)]
        #expect(bench.hear(.routeRemoved(Net.defaultRoute)).published.first?.path.cause?.code == .noRoute)
        let rule = Rule(family: .v4, priority: 100, action: 7, table: 0)
        #expect(bench.hear(.rule(rule)).published.first?.path.cause?.code == .routeUnreachable)
        #expect(bench.hear(.ruleRemoved(rule)).published.first?.path.cause?.code == .noRoute)
    }

    @Test func `what the kernel picks although it cannot carry is the last selected`() throws {
        let address = Address(interface: 3, prefix: IPPrefix(IPAddress(v4: 0x0a00_0003), length: 24))
        let picked = RouteAnswer.route(ChosenRoute(interface: 3, source: address.address))
        expect(
            try cause([Net.eth0, Net.eth1.unplugged], [Net.address, address], answer: picked), .link, .noCarrier, naming: "eth1")
    }

    @Test func `its default route removed: no route`() {
        var bench = PathBench.online()
        bench.routes = [:]
        bench.tables[.routesV4] = [.route(Net.onLink)]
        let update = bench.hear(.routeRemoved(Net.defaultRoute)).published.first
        #expect(update?.path.cause?.layer == .route)
        #expect(update?.path.cause?.code == .noRoute)
        #expect(update?.path.cause?.evidence["errno"] == .text("ENETUNREACH"))
    }

    @Test func `a cause that changes is told, one that is worded the same is not`() {
        var bench = PathBench.online()
        bench.disconnect()
        bench.hear(.link(Net.eth0.off))
        bench.settle()
        #expect(bench.hear(.link(Net.eth0.with(flags: [.pointToPoint], state: .down))).published.isEmpty)
        let update = bench.hear(.link(Net.eth0.unplugged)).published.first
        #expect(update?.reasons == [.interfacesChanged, .causeChanged])
    }
}
