import Expectations
import Foundation
import Glibc
import Reachability
import ReachabilityTestKit
import Synchronization
import Testing

@testable import ReachabilityCompatibility

@Suite(.timeLimit(.minutes(20))) struct NetworkReachabilityManagerTests {
    private typealias Status = NetworkReachabilityManager.Status

    private let noCarrier = Cause(.link, .noCarrier, detail: "interface wlan0 has no carrier")

    /// The statuses that `manager` posts from now on.
    private func posts(
        of manager: NetworkReachabilityManager
    ) -> (AsyncStream<Status>.Iterator, NotificationCenter.ObservationToken) {
        let (statuses, posted) = AsyncStream.makeStream(of: Status.self)
        let token = NotificationCenter.default.addObserver(of: manager, for: .networkReachabilityDidChange) {
            posted.yield($0.status)
        }
        return (statuses.makeAsyncIterator(), token)
    }

    @Test func `networkReachabilityDidChange is posted for a changed status, not for other path updates`() async {
        let network = ScriptedNetwork()
        let manager = NetworkReachabilityManager(monitor: network.monitor)
        expectEqual(manager.status, .unknown)
        var (statuses, token) = posts(of: manager)
        defer { NotificationCenter.default.removeObserver(token) }

        network.publish(.satisfied(over: .wifi()))
        await expectEqual(statuses.next(), .reachableViaWiFi)
        // Another Wi-Fi interface is a path update with the same status: the next post is that of the lost carrier.
        network.publish(.satisfied(over: .wifi("wlan1", index: 9)))
        network.publish(.unsatisfied(noCarrier))
        await expectEqual(statuses.next(), .notReachable)
        network.publish(.satisfied(over: .cellular()))
        await expectEqual(statuses.next(), .reachableViaWWAN)
        #expect(manager.isReachableViaWWAN)
    }

    @Test func `networkReachabilityDidChange is posted for the changed status of a host`() async throws {
        let network = ScriptedNetwork(.satisfied(over: .wired()))
        let manager = NetworkReachabilityManager(server: try ServerMonitor("192.0.2.1:443", monitor: network.monitor))
        expectEqual(manager.status, .unknown)
        var (statuses, token) = posts(of: manager)
        defer { NotificationCenter.default.removeObserver(token) }

        let address = try #require(IPAddress("192.0.2.1"))
        let route = ServerStatus.Route(address: address, interface: .wired(), roundTrip: .milliseconds(3))
        try network.publish(.up(via: route), of: "192.0.2.1:443")
        await expectEqual(statuses.next(), .reachableViaWired)
        let refused = Cause(.tcp, .refused, detail: "192.0.2.1 refuses connections to port 443")
        try network.publish(.down(refused), of: "192.0.2.1:443")
        await expectEqual(statuses.next(), .notReachable)
        #expect(!manager.isReachable)
    }

    @Test(arguments: 1...4)
    func `no message is lost if the first messages of a process are posted at the same time`(repetition: Int) async {
        // Each exit test has its own process, because Foundation's queue belongs to the process. Without its messages it would never end.
        await #expect(processExitsWith: .success, "process \(repetition)") {
            alarm(60)
            let managers = (0..<4).map { _ in NetworkReachabilityManager(monitor: ScriptedNetwork().monitor) }
            let (messages, received) = AsyncStream.makeStream(of: Void.self)
            let tokens = managers.map {
                NotificationCenter.default.addObserver(of: $0, for: .networkReachabilityDidChange) { _ in received.yield() }
            }
            let ready = Atomic(0)
            for manager in managers {
                Thread.detachNewThread {
                    ready.add(1, ordering: .sequentiallyConsistent)
                    while ready.load(ordering: .sequentiallyConsistent) < 4 { sched_yield() }
                    NotificationCenter.default.post(
                        NetworkReachabilityManager.StatusDidChange(status: .notReachable), subject: manager)
                }
            }
            var iterator = messages.makeAsyncIterator()
            for _ in 0..<4 { await iterator.next() }
            for token in tokens { NotificationCenter.default.removeObserver(token) }
        }
    }

    @Test func `a released manager posts no more, and its path monitor continues`() async {
        let network = ScriptedNetwork()
        var manager: NetworkReachabilityManager? = NetworkReachabilityManager(monitor: network.monitor)
        weak let released = manager
        manager = nil
        expectNil(released)
        network.publish(.satisfied(over: .wifi()))
        expectEqual(network.monitor.currentPath?.status, .satisfied)
    }
}
