import Expectations
import Testing

@testable import Reachability

@Suite struct MissingFamiliesTests {
    private let interface = NetworkInterface(
        name: "eth0", index: 2, type: .wired, isVirtual: false, isExpensive: false, level: .routable, addresses: [])
    private let noAddress = Cause(.address, .noAddress, detail: "interface eth0 has no usable IPv4 address")
    private let noRoute = Cause(.route, .noRoute, detail: "there is no route to 192.0.2.1")
    private let refused = Cause(.tcp, .refused, detail: "refused")

    private func path(_ families: IPAddress.Family...) -> NetworkPath {
        NetworkPath(
            status: families.isEmpty ? .unsatisfied : .satisfied, interface: families.isEmpty ? nil : interface,
            interfaceV4: families.contains(.v4) ? interface : nil, interfaceV6: families.contains(.v6) ? interface : nil)
    }

    private func update(_ cause: Cause?, _ address: String = "192.0.2.1") throws -> ServerUpdate {
        let moment = Moment(monotonicNanoseconds: 0, wallClockNanoseconds: 0)
        return ServerUpdate(
            endpoint: try Endpoint("a:1"), statusName: cause == nil ? .up : cause == refused ? .down : .unreachable, cause: cause,
            since: moment,
            address: IPAddress(address), interface: nil, roundTrip: nil, isInitial: false, moment: moment)
    }

    @Test func `a missing family is a fault while the path is unsatisfied, and none when it becomes satisfied`() throws {
        var families = MissingFamilies()
        expectEmpty(families.pathChanged(path()).map(\.id))
        for (number, cause) in [noAddress, noRoute, refused].enumerated() {
            #expect(families.isFault(TargetID(number), try update(cause)))
        }
        let ended = families.pathChanged(path(.v6))
        #expect(ended.map(\.id) == [TargetID(0), TargetID(1)] && ended.allSatisfy { !$0.isFault })
        #expect(!families.isFault(TargetID(3), try update(noAddress)))
        #expect(families.isFault(TargetID(4), try update(noRoute, "2001:db8::1")), "there is a path of this family")
        let begun = families.pathChanged(path())
        #expect(begun.map(\.id) == [TargetID(0), TargetID(1), TargetID(3)] && begun.allSatisfy { $0.isFault })
    }

    @Test func `a family that the path had before is a fault`() throws {
        var families = MissingFamilies()
        _ = families.pathChanged(path(.v4, .v6))
        _ = families.pathChanged(path(.v6))
        #expect(families.isFault(TargetID(0), try update(noAddress)))
    }

    @Test func `a target that is up or removed is forgotten`() throws {
        var families = MissingFamilies()
        _ = families.pathChanged(path(.v6))
        #expect(!families.isFault(TargetID(0), try update(noAddress)))
        #expect(!families.isFault(TargetID(1), try update(noAddress)))
        #expect(families.isFault(TargetID(0), try update(nil)))
        families.remove(TargetID(1))
        expectEmpty(families.pathChanged(path()).map(\.id))
    }
}
