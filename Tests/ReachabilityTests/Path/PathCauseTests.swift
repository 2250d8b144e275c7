import Expectations
import Testing

@testable import Reachability

/// The cause of an unsatisfied path: the lowest failing layer of the last selected interface, or of the best one if none was
/// selected.
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
        expectEqual(cause.layer, layer)
        expectEqual(cause.code, code)
        if let name { #expect(cause.detail.contains(name), "\(cause)") }
    }

    @Test func `with loopback alone the cause is no interface`() throws {
        expect(try cause([]), .link, .noInterface)
    }

    @Test func `an interface that is switched off, has no carrier or is dormant is the cause`() throws {
        expect(try cause([Net.eth0.off]), .link, .interfaceDown, naming: "eth0")
        expect(try cause([Net.eth0.unplugged]), .link, .noCarrier, naming: "eth0")
        expect(try cause([Net.eth0.with(flags: [.up, .lowerUp, .dormant], state: .dormant)]), .link, .dormant, naming: "eth0")
    }

    @Test func `a cause whose sentence is made when it is read equals the stated one`() throws {
        let fault = InterfaceFault(
            .noCarrier, interface: "eth0", level: .noCarrier,
            link: InterfaceFault.LinkState(operationalState: "down", flags: 0x1003))
        let made = Cause(fault)
        let stated = Cause(
            .link, .noCarrier, detail: "interface eth0 has no carrier",
            evidence: [
                "interface": .text("eth0"), "level": .text("no-carrier"), "operstate": .text("down"), "flags": .text("0x1003"),
            ])
        #expect(made == stated && stated == made && made.hashValue == stated.hashValue)
        #expect(made.hasSameDetail(as: stated) && stated.hasSameDetail(as: made) && made.hasSameDetail(as: made))
        #expect(made.evidence == stated.evidence && made.evidence.count == 4 && made.description == stated.description)
        let (elsewhere, off) = (
            InterfaceFault(.noCarrier, interface: "eth1", level: .noCarrier, link: fault.link),
            InterfaceFault(.off, interface: "eth0", level: .off, link: fault.link)
        )
        for other in [elsewhere, off].map({ Cause($0) }) {
            #expect(made != other && !made.hasSameDetail(as: other) && stated != other && !stated.hasSameDetail(as: other))
        }
        #expect(!made.hasSameDetail(as: nil))
    }

    @Test func `a missing, tentative or duplicate address is the cause`() throws {
        expect(try cause([Net.eth0]), .address, .noAddress, naming: "eth0")
        let linkLocal = Address(interface: 2, prefix: IPPrefix(Net.linkLocal6, length: 64), scope: 253)
        expect(try cause([Net.eth0], [linkLocal]), .address, .noAddress)
        let tentative = Address(interface: 2, prefix: IPPrefix(Net.source6, length: 64), flags: .tentative)
        expect(try cause([Net.eth0], [linkLocal, tentative]), .address, .tentativeAddress)
        let duplicate = Address(interface: 2, prefix: IPPrefix(Net.source6, length: 64), flags: [.tentative, .duplicate])
        expect(try cause([Net.eth0], [linkLocal, duplicate]), .address, .duplicateAddress)
    }

    @Test(arguments: [(Int32(101), Cause.Code.noRoute), (113, .routeUnreachable), (13, .routeProhibited), (22, .routeBlackhole)])
    func `with a usable link and a refused route the cause is the route`(errno: Int32, code: Cause.Code) throws {
        let cause = try cause([Net.eth0], [Net.address], answer: .refused(errno: errno))
        expect(cause, .route, code)
        expectEqual(cause.evidence["destination"], .text("198.51.100.1"))
    }

    @Test func `a refusal by one family's route is the cause rather than the other family's missing route`() {
        var bench = PathBench()
        bench.connect()
        bench.routes = [RouteQuery(Net.anywhere6): .refused(errno: 13)]
        expectEqual(bench.start().published.first?.path.cause?.code, .routeProhibited)
    }

    @Test func `the best interface decides the cause, and for a port it is the port's bridge`() throws {
        expect(try cause([Net.eth0.off, Net.eth1.unplugged]), .link, .noCarrier, naming: "eth1")
        var port = Net.eth0
        port.master = 20
        let bridge = Link(index: 20, name: "br0", flags: Net.up, operationalState: .up, kind: "bridge")
        expect(try cause([port, bridge]), .address, .noAddress, naming: "br0")
    }

    @Test func `a hardware interface decides the cause before a virtual one, then the lower index`() throws {
        expect(try cause([Link(index: 2, name: "veth2", kind: "veth"), Net.eth1.off]), .link, .interfaceDown, naming: "eth1")
        expect(try cause([Net.eth1.off, Net.eth0.off]), .link, .interfaceDown, naming: "eth0")
    }

    @Test func `the last selected interface decides the cause, even if another one is better`() {
        var bench = PathBench.online()
        bench.deliver(.link(Net.eth1), .address(Address(interface: 3, prefix: IPPrefix(IPAddress(v4: 0x0a00_0003), length: 24))))
        bench.routes = [:]
        expectEqual(bench.deliver(.link(Net.eth0.off)).published.first?.path.cause?.code, .interfaceDown)
        let gone = bench.deliver(.linkRemoved(2)).published.first?.path.cause
        expectEqual(gone?.code, .noInterface)
        #expect(gone?.detail.contains("eth0") == true)
    }

    @Test func `the last selected interface that comes back under its name is judged by its present state`() {
        var bench = PathBench.online()
        bench.routes = [:]
        expectEqual(bench.deliver(.linkRemoved(2)).published.first?.path.cause?.code, .noInterface)
        var again = Net.eth0
        again.index = 9
        expectEqual(bench.deliver(.link(again.unplugged)).published.first?.path.cause?.code, .noCarrier)
        expectEqual(bench.deliver(.link(again)).published.first?.path.cause?.code, .noAddress)
        let address = Address(interface: 9, prefix: Net.address.key.prefix)
        expectEqual(bench.deliver(.address(address)).published.first?.path.cause?.code, .noRoute)
    }

    @Test func `another interface that gets the index of the last selected one does not replace it in the cause`() {
        var bench = PathBench.online()
        bench.routes = [:]
        bench.deliver(.linkRemoved(2))
        bench.deliver(.link(Link(index: 2, name: "tap7", kind: "tun", isTap: true)))
        let cause = bench.machine.path?.cause
        expectEqual(cause?.code, .noInterface)
        #expect(cause?.detail.contains("eth0") == true)
    }

    @Test func `another interface that is renamed to the selected name is judged in place of the former one`() {
        var bench = PathBench(MonitorConfiguration(selection: .named("eth0")))
        bench.connect()
        bench.routes = [RouteQuery(Net.anywhere, interface: 2): .route(ChosenRoute(interface: 2, source: Net.address.address))]
        expectEqual(bench.start().published.first?.path.status, .satisfied)
        var (former, present) = (Net.eth0, Net.eth1.unplugged)
        (former.name, present.name) = ("old0", "eth0")
        bench.routes = [:]
        expectEqual(bench.deliver(.link(former)).published.first?.path.cause?.code, .noInterface)
        expectEqual(bench.deliver(.link(present)).published.first?.path.cause?.code, .noCarrier)
    }

    @Test func `the cause names the last selected interface by its new name after it is renamed`() {
        var bench = PathBench.online()
        bench.routes = [:]
        var renamed = Net.eth0.off
        renamed.name = "lan0"
        bench.deliver(.link(Net.eth0.off))
        bench.deliver(.link(renamed))
        expectEqual(bench.deliver(.linkRemoved(2)).published.first?.path.cause?.detail, "interface lan0 is gone")
    }

    @Test func `a refusing rule changes the cause of a missing route, although the kernel's answer is the same`() {
        var bench = PathBench.online()
        bench.routes = [:]
        bench.tables[.routesV4] = [.route(Net.onLink)]
        expectEqual(bench.deliver(.routeRemoved(Net.defaultRoute)).published.first?.path.cause?.code, .noRoute)
        let rule = Rule(family: .v4, priority: 100, action: 7, table: 0)
        expectEqual(bench.deliver(.rule(rule)).published.first?.path.cause?.code, .routeUnreachable)
        expectEqual(bench.deliver(.ruleRemoved(rule)).published.first?.path.cause?.code, .noRoute)
    }

    @Test func `an interface that the kernel's route uses without carrier decides the cause`() throws {
        let address = Address(interface: 3, prefix: IPPrefix(IPAddress(v4: 0x0a00_0003), length: 24))
        let picked = RouteAnswer.route(ChosenRoute(interface: 3, source: address.address))
        expect(
            try cause([Net.eth0, Net.eth1.unplugged], [Net.address, address], answer: picked), .link, .noCarrier, naming: "eth1")
    }

    @Test(
        arguments: [
            ([], .missing), ([[]], nil), ([.tentative], .tentative), ([[.tentative, .optimistic]], nil),
            ([[.tentative, .duplicate]], .duplicate), ([.tentative, []], nil), ([.deprecated], nil),
        ] as [([Address.Flags], AddressFault?)])
    func `an address can be a source if one of its entries is usable`(flags: [Address.Flags], fault: AddressFault?) {
        let entries = flags.enumerated().map { index, flags in
            Address(interface: UInt32(index + 2), prefix: IPPrefix(Net.source6, length: 64), flags: flags)
        }
        expectEqual(sourceFault(of: entries), fault)
    }

    @Test func `after the default route is removed the cause is no route`() {
        var bench = PathBench.online()
        bench.routes = [:]
        bench.tables[.routesV4] = [.route(Net.onLink)]
        let update = bench.deliver(.routeRemoved(Net.defaultRoute)).published.first
        expectEqual(update?.path.cause?.layer, .route)
        expectEqual(update?.path.cause?.code, .noRoute)
        expectEqual(update?.path.cause?.evidence["errno"], .text("ENETUNREACH"))
    }

    @Test func `a changed cause is published, and a cause with the same wording is not`() {
        var bench = PathBench.online()
        bench.disconnect()
        bench.deliver(.link(Net.eth0.off))
        bench.settle()
        expectEmpty(bench.deliver(.link(Net.eth0.with(flags: [.pointToPoint], state: .down))).published)
        let update = bench.deliver(.link(Net.eth0.unplugged)).published.first
        expectEqual(update?.reasons, [.interfacesChanged, .causeChanged])
    }
}
