import Expectations
import Foundation
import Reachability
import ReachabilityTestKit
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(20))) struct ScriptedNetworkTests {
    private let noCarrier = Cause(.link, .noCarrier, detail: "interface wlan0 has no carrier")

    @Test func `a scripted monitor has the published path at once, and its iterators return it next`() async {
        let network = ScriptedNetwork(.satisfied(over: .wifi()))
        expectEqual(network.monitor.current?.path.interface?.type, .wifi)
        expectEqual(network.monitor.current?.isInitial, true)
        var updates = network.monitor.updates.makeAsyncIterator()
        await expectEqual(updates.next()?.isInitial, true)
        let date = Date(timeIntervalSince1970: 1_000_000)
        network.publish(.unsatisfied(noCarrier), at: date)
        let update = await updates.next()
        expectEqual(update?.path.cause, noCarrier)
        #expect(update?.reasons.contains(.interfaceChanged) == true)
        expectEqual(update?.isInitial, false)
        #expect((update.map { abs($0.date.timeIntervalSince(date)) < 0.001 }) == true)
        expectEqual(network.monitor.currentPath?.status, .unsatisfied)
    }

    @Test func `without a first path, the first published path is initial and ends firstPath()`() async {
        let network = ScriptedNetwork()
        expectNil(network.monitor.current)
        async let first = network.monitor.firstPath()
        network.publish(.satisfied(over: .wired()))
        await expectEqual(first?.interface?.name, "eth0")
    }

    @Test
    func `a server monitor receives its server's status, even if it was published before the monitor was made`() async throws {
        let network = ScriptedNetwork(.satisfied(over: .wired()))
        let server = try ServerMonitor("api.example.com:443", monitor: network.monitor)
        expectEqual(network.watchedEndpoints.map(\.text), ["api.example.com:443"])
        expectEqual(server.current?.status, .unknown)
        let refused = Cause(.tcp, .refused, detail: "api.example.com refuses")
        try network.publish(.down(refused), of: "api.example.com:443")
        try network.publish(.unknown, of: "other.example.com:443")
        expectEqual(server.current?.status, .down(refused))
        // The same server in another spelling, and another name: a final dot excludes the search list.
        try network.publish(.unreachable(noCarrier), of: "tcp://API.Example.com:443")
        try network.publish(.unknown, of: "api.example.com.:443")
        #expect(server.current?.status == .unreachable(noCarrier) && server.endpoint.text == "api.example.com:443")
        let route = ServerStatus.Route(
            address: try #require(IPAddress("192.0.2.1")), interface: .wired(), roundTrip: .milliseconds(3))
        try network.publish(.up(via: route), of: "api.example.com:443")
        let later = try ServerMonitor("api.example.com:443", monitor: network.monitor)
        var updates = later.updates.makeAsyncIterator()
        let update = await updates.next()
        expectEqual(update?.status, .up(via: route))
        expectEqual(update?.isInitial, true)
        try network.publish(.up(), of: "api.example.com:443")
        expectEqual(server.current?.status.route?.interface, .wired())
        try network.publish(.degraded(refused, over: .wifi()), of: "api.example.com:443")
        #expect(server.current?.status.cause == refused && server.current?.status.route?.interface?.type == .wifi)
        expectEqual(update?.status.isReachable, true)
        #expect(throws: Endpoint.ParseError.self) { try network.publish(.unknown, of: "no port") }
    }

    @Test func `a server group has one stream for many servers, and a slow reader gets the latest update of each`() async throws {
        let network = ScriptedNetwork(.satisfied(over: .wired()))
        let names = ["a.example:1", "b.example:2", "c.example:3", "a.example:1", "A.Example:1"]
        let group = try ServerGroup(names, monitor: network.monitor)
        expectEqual(group.endpoints.map(\.text), ["a.example:1", "b.example:2", "c.example:3"])
        expectEqual(group.current.map(\.status), [.unknown, .unknown, .unknown])
        var updates = group.updates.makeAsyncIterator()
        for _ in 0..<3 { await expectEqual(updates.next()?.isInitial, true) }
        for number in 0..<10 {
            let cause = Cause(.tcp, .refused, detail: "\(number)")
            try network.publish(.down(cause), of: "b.example:2")
            try network.publish(.unreachable(cause), of: "c.example:3")
        }
        let (first, second) = (await updates.next(), await updates.next())
        expectEqual(Set([first, second].compactMap { $0?.endpoint.text }), ["b.example:2", "c.example:3"])
        #expect([first, second].allSatisfy { $0?.cause?.detail == "9" && $0?.isInitial == false })
        expectEqual(group.current.map { $0.cause?.detail }, [nil, "9", "9"])
        expectEqual(group.current(group.endpoints[1])?.status.isReachable, false)
        group.cancel()
        await expectNil(updates.next())
        expectEqual(network.watchedEndpoints, [])
    }

    @Test func `callbacks receive each published update, in order`() async throws {
        let network = ScriptedNetwork()
        let seen = Mutex<[String]>([])
        let ended = AsyncStream<Void>.makeStream()
        let token = network.monitor.onChange { update in
            let names = seen.withLock { names in
                names.append(update.path.interface?.name ?? "none")
                return names
            }
            if names.last == "none" { ended.continuation.yield() }
        }
        network.publish(.satisfied(over: .wired()))
        network.publish(.unsatisfied(noCarrier))
        for await _ in ended.stream { break }
        expectEqual(seen.withLock { $0 }.suffix(1), ["none"])
        withExtendedLifetime(token) {}
    }

    @Test func `the end of a scripted network ends its monitors' sequences`() async {
        let network = ScriptedNetwork(.satisfied(over: .wired()))
        var updates = network.monitor.updates.makeAsyncIterator()
        _ = await updates.next()
        network.cancel()
        await expectNil(updates.next())
    }

    @Test func `updates published by many threads arrive, and the last one stays current`() async {
        let network = ScriptedNetwork()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask { for _ in 0..<500 { network.publish(.satisfied(over: .wired("eth\(number)"))) } }
            }
        }
        network.publish(.satisfied(over: .wifi("last")))
        expectEqual(network.monitor.current?.path.interface?.name, "last")
    }

    @Test func `a monitor is a sequence of its paths, as NWPathMonitor is`() async {
        let network = ScriptedNetwork(.satisfied(over: .wifi()))
        for await path in network.monitor {
            expectEqual(path.status, .satisfied)
            break
        }
    }

    @Test func `a server monitor is a sequence of its updates, and ends when it is canceled`() async throws {
        let network = ScriptedNetwork(.satisfied(over: .wifi()))
        let server = try ServerMonitor("api.example.com:443", monitor: network.monitor)
        var statuses: [ServerStatus] = []
        for await update in server {
            statuses.append(update.status)
            if update.isInitial { try network.publish(.down(noCarrier), of: "api.example.com:443") } else { server.cancel() }
        }
        expectEqual(statuses, [.unknown, .down(noCarrier)])
    }

    @Test func `a server group is a sequence of the updates of all its servers, and ends when it is canceled`() async throws {
        let network = ScriptedNetwork(.satisfied(over: .wifi()))
        let group = try ServerGroup(["a.example:1", "b.example:2"], monitor: network.monitor)
        var seen: [String] = []
        for await update in group {
            seen.append("\(update.endpoint.text) \(update.cause?.code.rawValue ?? "unknown")")
            if seen.count == 2 { try network.publish(.down(noCarrier), of: "b.example:2") }
            if seen.count == 3 { group.cancel() }
        }
        expectEqual(Set(seen.prefix(2)), ["a.example:1 unknown", "b.example:2 unknown"])
        expectEqual(seen.dropFirst(2), ["b.example:2 no-carrier"])
    }

    @Test func `paths, updates and codes print as a person would write them`() throws {
        let network = ScriptedNetwork(.satisfied(over: .wifi()))
        expectEqual("\(try #require(network.monitor.currentPath))", "satisfied (wlan0, wifi)")
        network.publish(.unsatisfied(Cause(.link, .noCarrier, detail: "interface wlan0 has no carrier")))
        #expect(
            "\(try #require(network.monitor.current))".hasPrefix("unsatisfied (link: interface wlan0 has no carrier) ["))
        expectEqual("\(Cause.Code.noCarrier) \(Cause.Layer.link) \(PathChangeReason.resumed)", "no-carrier link resumed")
    }
}
