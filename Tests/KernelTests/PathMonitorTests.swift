import Expectations
import FoundationEssentials
import NetworkLab
import Synchronization
import Testing

@testable import Reachability
@testable import ReachabilityCompatibility

@Suite(.requiresNamespaces) struct PathMonitorTests {
    /// Two hosts and a cable. The first host has a default route to the second.
    private func uplink() throws -> (Lab, LabHost, LabHost) {
        let lab = Lab()
        let (client, router) = (try lab.host(), try lab.host())
        // IPv6 is switched off because the kernel adds its addresses at moments of its own, and these tests expect each next
        // event.
        for host in [client, router] { try host.set("ipv6.conf.default.disable_ipv6", "1") }
        try lab.connect(client, "up0", router, "down0")
        try client.ip("address add 198.18.0.2/24 dev up0")
        try router.ip("address add 198.18.0.1/24 dev down0")
        try client.ip("link set up0 up")
        try router.ip("link set down0 up")
        try client.ip("route add default via 198.18.0.1")
        // A veth's carrier is announced some milliseconds after both ends are up.
        let watch = try Program([Programs.netwatch, "wait"], on: client)
        try expectEqual(watch.wait(within: patience), 0, "\(watch.ending)")
        return (lab, client, router)
    }

    @Test func `the first path update is the present path, and changes follow`() async throws {
        let (lab, client, router) = try uplink()
        defer { withExtendedLifetime((lab, router)) {} }
        let monitor = try PathMonitor(namespace: NetworkNamespace(client.path))
        await expectEqual(monitor.firstPath()?.status, .satisfied)
        var updates = monitor.updates.makeAsyncIterator()
        let first = await updates.next()
        expectEqual(first?.isInitial, true)
        expectEqual(first?.path.interface?.name, "up0")
        try client.ip("link set up0 down")
        let second = await updates.next()
        expectEqual(second?.isInitial, false)
        expectEqual(second?.path.status, .unsatisfied)
        expectEqual(second?.path.cause?.code, .interfaceDown)
    }

    @Test func `two tasks receive the same path change, and both sequences end with the monitor`() async throws {
        let (lab, client, router) = try uplink()
        defer { withExtendedLifetime((lab, router)) {} }
        let monitor = try PathMonitor(namespace: NetworkNamespace(client.path))
        _ = await monitor.firstPath()
        var (one, other) = (monitor.updates.makeAsyncIterator(), monitor.updates.makeAsyncIterator())
        await expectEqual(one.next()?.isInitial, true)
        await expectEqual(other.next()?.isInitial, true)
        try client.ip("route del default")
        await expectEqual(one.next()?.path.cause?.code, .noRoute)
        await expectEqual(other.next()?.path.cause?.code, .noRoute)
        monitor.cancel()
        await expectNil(one.next())
        await expectNil(other.next())
    }

    @Test func `a subscriber to kernel changes is notified of a route that changes no path, until it returns false`() async throws
    {
        let (lab, client, router) = try uplink()
        defer { withExtendedLifetime((lab, router)) {} }
        let monitor = try PathMonitor(namespace: NetworkNamespace(client.path))
        let settled = await monitor.firstPath()
        let (calls, call) = AsyncStream.makeStream(of: (path: NetworkPath, answer: Bool).self)
        let isWelcome = Atomic<Bool>(true)
        monitor.onKernelChange { path in
            // One reading: the test changes the value as soon as it has the path.
            let answer = isWelcome.load(ordering: .relaxed)
            call.yield((path, answer))
            return answer
        }
        var received = calls.makeAsyncIterator()
        await expectEqual(received.next()?.path, settled)
        let route = IPPrefix(IPAddress(v4: 0xcb00_7100), length: 24)
        try client.ip("route add 203.0.113.0/24 via 198.18.0.1")
        // The kernel may divide a change into several messages, each of which is a call.
        var isAdded = false
        while !isAdded {
            await expectEqual(received.next()?.path, settled)
            isAdded = await monitor.snapshot().allRoutes.contains { $0.key.destination == route }
        }
        isWelcome.store(false, ordering: .relaxed)
        try client.ip("route del 203.0.113.0/24")
        while let last = await received.next() {
            expectEqual(last.path, settled)
            if !last.answer { break }
        }
        try client.ip("route del default")
        var updates = monitor.updates.makeAsyncIterator()
        while let update = await updates.next(), update.path.status != .unsatisfied {}
        call.finish()
        await expectNil(received.next())
    }

    @Test func `callbacks and notifications of a path run outside the monitor's thread`() async throws {
        let (lab, client, router) = try uplink()
        defer { withExtendedLifetime((lab, router)) {} }
        let monitor = try PathMonitor(namespace: NetworkNamespace(client.path))
        let (paths, path) = AsyncStream.makeStream(of: NetworkPath.Status.self)
        let (notes, note) = AsyncStream.makeStream(of: NetworkPath.Status.self)
        let token = monitor.onChange { path.yield($0.path.status) }
        let observer = NotificationCenter.default.addObserver(of: monitor, for: .pathDidChange) {
            note.yield($0.update.path.status)
        }
        var (seen, noted) = (paths.makeAsyncIterator(), notes.makeAsyncIterator())
        await expectEqual(seen.next(), .satisfied)
        try client.ip("link set up0 down")
        await expectEqual(seen.next(), .unsatisfied)
        while let status = await noted.next(), status != .unsatisfied {}
        NotificationCenter.default.removeObserver(observer)
        token.cancel()
    }

    @Test func `a released path monitor leaves no object behind`() async throws {
        let (lab, client, router) = try uplink()
        defer { withExtendedLifetime((lab, router)) {} }
        weak var core: MonitorCore?
        weak var leftover: PathMonitor?
        do {
            let monitor = try PathMonitor(namespace: NetworkNamespace(client.path))
            let token = monitor.onChange { _ in }
            var updates = monitor.updates.makeAsyncIterator()
            #expect(await updates.next() != nil)
            (core, leftover) = (monitor.core, monitor)
            _ = token
        }
        // A notification that is being posted still refers to the monitor.
        let end = ContinuousClock.now + patience
        while leftover != nil || core != nil, ContinuousClock.now < end { await Task.yield() }
        expectNil(leftover)
        expectNil(core)
    }

    @Test func `a callback's token keeps the path monitor alive`() async throws {
        let (lab, client, router) = try uplink()
        defer { withExtendedLifetime((lab, router)) {} }
        let (paths, path) = AsyncStream.makeStream(of: NetworkPath.Status.self)
        let token = try PathMonitor(namespace: NetworkNamespace(client.path)).onChange { path.yield($0.path.status) }
        var seen = paths.makeAsyncIterator()
        await expectEqual(seen.next(), .satisfied)
        try client.ip("link set up0 down")
        await expectEqual(seen.next(), .unsatisfied)
        token.cancel()
    }

    @Test func `a path monitor with a required or prohibited interface type uses only allowed interfaces`() async throws {
        let (lab, client, router) = try uplink()
        defer { withExtendedLifetime((lab, router)) {} }
        let namespace = NetworkNamespace(client.path)
        let wired = try PathMonitor(requiredInterfaceType: .wired, namespace: namespace)
        let wireless = try PathMonitor(requiredInterfaceType: .wifi, namespace: namespace)
        let unwired = try PathMonitor(prohibitedInterfaceTypes: [.wired], namespace: namespace)
        await expectEqual(wired.firstPath()?.interface?.name, "up0")
        await expectEqual(wireless.firstPath()?.cause?.code, .noInterface)
        await expectEqual(unwired.firstPath()?.status, .unsatisfied)
    }

    @Test
    func `a server is up while it listens, down when its listener ends, and unreachable when the link is down`() async throws {
        let (lab, client, router) = try uplink()
        defer { withExtendedLifetime(lab) {} }
        var listener: Server? = try router.serve(.accepting, at: "198.18.0.1")
        let port = try #require(listener?.port)
        let monitor = try PathMonitor(namespace: NetworkNamespace(client.path))
        let settings = ProbeSettings(interval: .milliseconds(20))
        let server = try ServerMonitor("198.18.0.1:\(port)", settings: settings, monitor: monitor)
        var updates = server.updates.makeAsyncIterator()
        var states: [StatusName] = []
        while states.last != .up, let update = await updates.next() { states.append(update.statusName) }
        expectEqual(states.last, .up)
        guard case .up(let via) = server.current?.status else {
            Issue.record("not reachable: \(String(describing: server.current))")
            return
        }
        expectEqual(via.interface?.name, "up0")
        #expect(via.roundTrip > .zero)
        #expect(listener != nil)
        listener = nil
        let failure = await updates.next()
        expectEqual(failure?.pending?.code, .refused)
        expectEqual(failure?.statusName, .up)
        await expectEqual(updates.next()?.cause?.code, .refused)
        expectEqual(server.current?.statusName, .down)
        try client.ip("link set up0 down")
        await expectEqual(updates.next()?.statusName, .unreachable)
    }

    @Test func `AFNetworking's reachability status follows from the path and its interface`() async throws {
        expectEqual(NetworkReachabilityManager.Status(nil as NetworkPath?), .unknown)
        let cable = NetworkInterface(
            name: "eth0", index: 2, type: .wired, isVirtual: false, isExpensive: false, level: .routable, addresses: [])
        let modem = NetworkInterface(
            name: "wwan0", index: 3, type: .cellular, isVirtual: false, isExpensive: true, level: .routable, addresses: [])
        let tunnel = NetworkInterface(
            name: "wg0", index: 4, type: .tunnel, isVirtual: true, isExpensive: false, level: .routable, addresses: [])
        expectEqual(NetworkReachabilityManager.Status(NetworkPath(status: .unsatisfied)), .notReachable)
        expectEqual(NetworkReachabilityManager.Status(NetworkPath(status: .satisfied, interface: cable)), .reachableViaWired)
        let over = NetworkPath(status: .satisfied, interface: tunnel, underlying: modem)
        expectEqual(NetworkReachabilityManager.Status(over), .reachableViaWWAN)
    }
}
