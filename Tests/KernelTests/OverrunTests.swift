import Dispatch
import Expectations
import Foundation
import Glibc
import NetworkLab
import Reachability
import Testing

/// Slow readers. The monitor recovers lost messages by dumping the kernel's tables once.
@Suite(.requiresNamespaces)
struct OverrunTests {
    /// More events than the event socket holds: the kernel doubles its 8 MiB, and counts 768 bytes or more for each.
    private static let storm: [String] = {
        let routes = (0..<30_000).map { "10.\(100 + $0 / 65_536).\($0 / 256 % 256).\($0 % 256)/32 dev v0" }
        return routes.map { "route add \($0)" } + routes[..<15_000].map { "route del \($0)" }
    }()

    private func makeNetwork() throws -> Network {
        let network = try Network()
        try network.uplink("v0", "10.1.0.1/24")
        try network.host.ip("route add default via 10.1.0.254")
        return network
    }

    @Test func `a callback that blocks during 45,000 events causes one resync, and the last path is correct`() throws {
        let network = try makeNetwork()
        let events = EventQueue()
        let gate = DispatchSemaphore(value: 0)
        let session = try MonitorSession(MonitorConfiguration(namespace: NetworkNamespace(network.host.path))) { event in
            events.put(event)
            if case .path(let update) = event, update.reasons == [.addressesChanged] { gate.wait() }
        }
        defer { session.stop() }
        guard case .path(let first) = try events.next() else { throw LabError("no path first") }
        expectEqual(Seen(first).line, "satisfied v0 wired 4 via 10.1.0.254")

        try network.host.ip("addr add 10.9.0.1/24 dev v0")
        guard case .path = try events.next() else { throw LabError("no path") }
        // The reader is blocked from here on.
        try network.host.ipBatch(Self.storm + ["route change default via 10.1.0.253"])
        gate.signal()

        guard case .path(let update) = try events.next() else { throw LabError("no path after the storm") }
        expectEqual(Seen(update).line, "satisfied v0 wired 4 via 10.1.0.253")
        #expect(update.reasons.contains(.resynced) && update.reasons.contains(.gatewaysChanged))
        guard case .resync(.overrun, _) = try events.next() else { throw LabError("no resync") }
        let snapshot: KernelSnapshot? = try answer { session.withSnapshot($0) }
        expectEqual(snapshot, (try FreshDump.take(of: network.host)))
        #expect(snapshot?.routes.count ?? 0 > 15_000)
        expectNil(events.takeNow())
    }

    @Test func `a program stopped during 45,000 events prints one resync and the present path`() throws {
        let network = try makeNetwork()
        let observer = try ProgramObserver(watching: network.host.path)
        try expectEqual(observer.nextPath()?.line, "satisfied v0 wired 4 via 10.1.0.254")

        try observer.program.signal(SIGSTOP)
        try network.host.ipBatch(Self.storm + ["route del default"])
        try observer.program.signal(SIGCONT)
        let path = try #require(try observer.nextRecord())
        #expect(path["type"] as? String == "path" && path["status"] as? String == "unsatisfied")
        #expect((path["reasons"] as? [String])?.contains("resynced") == true)
        let resync = try #require(try observer.nextRecord())
        #expect(resync["type"] as? String == "resync" && resync["reason"] as? String == "overrun")
        try network.host.ip("route add default via 10.1.0.252")
        try expectEqual(observer.nextRecord()?["gateways"] as? [String], ["10.1.0.252"])
    }
}
