import Dispatch
import EventLoop
import Expectations
import Reachability
import ReachabilityTestKit
import Synchronization
import Testing

/// The order and the guarantees of a ``ScriptedNetwork``'s updates if several threads or callbacks publish.
@Suite(.timeLimit(.minutes(20))) struct ScriptedPublisherTests {
    private static func path(_ name: String, _ index: UInt32 = 2) -> NetworkPath { .satisfied(over: .wired(name, index: index)) }

    @Test func `when publish returns, current is the publisher's update or a later one`() async {
        let network = ScriptedNetwork()
        let positions = Locked<[NetworkPath: Int]>([:])
        network.monitor.onKernelChange { path in
            positions.withLock { $0[path] = $0.count }
            return true
        }
        await withTaskGroup(of: Void.self) { group in
            for publisher in 0..<4 {
                group.addTask {
                    for number in 1...500 {
                        let path = Self.path("eth\(publisher)", UInt32(number))
                        network.publish(path)
                        let current = network.monitor.currentPath
                        let own = positions.withLock { $0[path] }
                        let present = current.flatMap { current in positions.withLock { $0[current] } }
                        // A later path may be current before the followers have received it.
                        expectEqual(own.map { $0 <= present ?? .max }, true, "publisher \(publisher), path \(number)")
                    }
                }
            }
        }
        expectEqual(positions.withLock { $0.count }, 2_000)
    }

    @Test func `followers receive the paths of all publishers in the order of the updates`() async {
        let network = ScriptedNetwork(Self.path("first"))
        let followed = Mutex<[NetworkPath]>([])
        let published = Mutex<[NetworkPath]>([])
        let token = network.monitor.onPublish { update in published.withLock { $0.append(update.path) } }
        network.monitor.onKernelChange { path in
            followed.withLock { $0.append(path) }
            return true
        }
        await withTaskGroup(of: Void.self) { group in
            for publisher in 0..<4 {
                group.addTask { for number in 1...500 { network.publish(Self.path("eth\(publisher)", UInt32(number))) } }
            }
        }
        expectEqual(followed.withLock { $0 }, published.withLock { $0 })
        #expect(followed.withLock { $0.count } == 2_001 && followed.withLock { $0.last } == network.monitor.currentPath)
        token.cancel()
    }

    @Test func `a follower that ends leaves the others, whichever threads publish`() async {
        let network = ScriptedNetwork(Self.path("first"))
        let counts = Mutex([Int](repeating: 0, count: 60))
        for follower in 0..<60 {
            network.monitor.onKernelChange { _ in
                counts.withLock { counts in
                    counts[follower] += 1
                    // Every second follower ends, each at another path.
                    return follower.isMultiple(of: 2) || counts[follower] <= follower
                }
            }
        }
        await withTaskGroup(of: Void.self) { group in
            for publisher in 0..<4 {
                group.addTask { for number in 1...100 { network.publish(Self.path("eth\(publisher)", UInt32(number))) } }
            }
        }
        expectEqual(counts.withLock { $0 }, (0..<60).map { $0.isMultiple(of: 2) ? 401 : $0 + 1 })
    }

    @Test func `a callback on a serial queue has run after publish and sync`() {
        let network = ScriptedNetwork()
        let queue = DispatchQueue(label: "callbacks")
        let seen = Mutex<[UInt32]>([])
        let token = network.monitor.onChange(on: queue) { update in
            seen.withLock { $0.append(update.path.interface?.index ?? 0) }
        }
        for number in 1...1_000 {
            network.publish(Self.path("eth0", UInt32(number)))
            queue.sync {}
        }
        expectEqual(seen.withLock { $0 }, Array(1...1_000))
        token.cancel()
    }

    @Test(arguments: [DispatchQueue?.none, DispatchQueue(label: "callbacks"), DispatchQueue.global()])
    func `a path that a callback publishes is published after the present one`(on queue: DispatchQueue?) async {
        let network = ScriptedNetwork(Self.path("eth0", 1))
        let seen = Mutex<[UInt32]>([])
        let (ends, end) = AsyncStream<Void>.makeStream()
        let token = network.monitor.onChange(on: queue) { update in
            let number = update.path.interface?.index ?? 0
            seen.withLock { $0.append(number) }
            guard number < 500 else { return end.finish() }
            network.publish(Self.path("eth0", number + 1))
            expectEqual(network.monitor.currentPath?.interface?.index, number + 1)
        }
        for await _ in ends {}
        expectEqual(seen.withLock { $0 }, Array(1...500))
        token.cancel()
    }

    @Test func `a path that a follower publishes during a delivery is delivered next`() {
        let network = ScriptedNetwork(Self.path("eth0", 1))
        let seen = Mutex<[UInt32]>([])
        network.monitor.onKernelChange { path in
            let number = path.interface?.index ?? 0
            seen.withLock { $0.append(number) }
            if number < 100 { network.publish(Self.path("eth0", number + 1)) }
            return true
        }
        expectEqual(seen.withLock { $0 }, Array(1...100))
        expectEqual(network.monitor.currentPath?.interface?.index, 100)
    }

    @Test func `after the end nothing is published`() async throws {
        let network = ScriptedNetwork(Self.path("eth0", 1))
        let server = try ServerMonitor("api.example.com:443", monitor: network.monitor)
        let queue = DispatchQueue(label: "callbacks")
        let calls = Mutex<[UInt32]>([])
        let token = network.monitor.onChange(on: queue) { update in
            calls.withLock { $0.append(update.path.interface?.index ?? 0) }
        }
        queue.sync {}
        network.cancel()
        network.cancel()
        network.publish(Self.path("eth0", 2))
        try network.publish(.down(Cause(.tcp, .refused, detail: "refused")), of: "api.example.com:443")
        queue.sync {}
        #expect(network.monitor.currentPath == Self.path("eth0", 1) && server.current?.status == .unknown)
        expectEqual(calls.withLock { $0 }, [1])
        var updates = network.monitor.updates.makeAsyncIterator()
        while let update = await updates.next() { expectEqual(update.path, Self.path("eth0", 1)) }
        token.cancel()
    }

    @Test func `after cancel nothing is published`() {
        let network = ScriptedNetwork(Self.path("eth0", 1))
        network.monitor.cancel()
        network.publish(Self.path("eth0", 2))
        expectEqual(network.monitor.currentPath, Self.path("eth0", 1))
    }

    @Test func `a server monitor that is made while paths are published has its first status at once`() async throws {
        let network = ScriptedNetwork(Self.path("eth0"))
        try network.publish(.down(Cause(.tcp, .refused, detail: "refused")), of: "api.example.com:443")
        let publishing = Task { for number in 1...2_000 { network.publish(Self.path("eth1", UInt32(number))) } }
        for _ in 0..<200 {
            try expectEqual(ServerMonitor("api.example.com:443", monitor: network.monitor).current?.cause?.code, .refused)
        }
        await publishing.value
    }
}
