import EventLoop
import Expectations
import Foundation
import Glibc
import NetworkLab
import Reachability
import Testing

/// Changes of an uplink beside a large routing table on another interface.
@Suite(.requiresNamespaces)
struct LargeTableTests {
    /// `NETWATCH_LARGE_TABLE=100000,40,150` measures: routes, changes, and milliseconds between changes. Otherwise each change waits for the path
    /// of the change before it, because a monitor that does not run in time publishes nothing for two changes that cancel each other.
    private static let scale: (routes: Int, changes: Int, interval: Int?) = {
        let text = ProcessInfo.processInfo.environment["NETWATCH_LARGE_TABLE"] ?? ""
        let parts = text.split(separator: ",").compactMap { Int($0) }
        return parts.count == 3 ? (parts[0], parts[1], parts[2]) : (10_000, 20, nil)
    }()

    /// A status with the time at which it was published.
    private struct Published: Sendable {
        let status: NetworkPath.Status
        let time: ContinuousClock.Instant
    }

    @Test func `with a large routing table on another interface, every change of the uplink is published in order`() throws {
        let scale = Self.scale
        let network = try Network()
        let host = network.host
        try network.uplink("v1", "10.2.0.1/24")
        // A tun and not a cable: the kernel may announce a cable's carrier a second late.
        let uplink = try host.openTun("d0")
        defer { withExtendedLifetime(uplink) {} }
        try host.ipBatch(["link set d0 addrgenmode none", "addr add 10.1.0.1/24 dev d0", "link set d0 up"])
        try host.ipBatch(
            (0..<scale.routes).map { "route add 11.\($0 / 65_536).\($0 / 256 % 256).\($0 % 256)/32 via 10.2.0.254 dev v1" })
        try host.ip("route add default via 10.1.0.254")
        let published = Locked<[Published]>([])
        let events = EventQueue()
        let session = try MonitorSession(MonitorConfiguration(namespace: NetworkNamespace(host.path))) { event in
            guard case .path(let update) = event else { return }
            published.withLock { paths in
                if paths.last?.status == update.path.status { return }
                paths.append(Published(status: update.path.status, time: .now))
                events.put(event)
            }
        }
        defer { session.stop() }
        _ = try events.next()

        var (started, ended): ([ContinuousClock.Instant], [ContinuousClock.Instant]) = ([], [])
        for change in 0..<scale.changes {
            let isLoss = change.isMultiple(of: 2)
            started.append(.now)
            let gain = ["link set d0 up", "route add default via 10.1.0.254"]
            try host.ipBatch(isLoss ? ["link set d0 down"] : gain)
            ended.append(.now)
            if let interval = scale.interval { poll(nil, 0, Int32(interval)) } else { _ = try events.next() }
        }
        if scale.interval != nil { for _ in 0..<scale.changes { _ = try events.next() } }
        let paths = published.withLock { $0 }.dropFirst()
        expectEqual(paths.map(\.status), (0..<scale.changes).map { $0.isMultiple(of: 2) ? .unsatisfied : .satisfied })
        // The kernel's event lies between the command's start and its end, so both are measured.
        let delays = zip(paths, zip(started, ended)).map { ($0.time - $1.0, $0.time - $1.1) }
        let sorted = delays.map(\.1).sorted()
        if scale.interval != nil { #expect(try #require(sorted.last) < .seconds(2)) }
        print("large routing table \(scale): after the command's end median \(sorted[sorted.count / 2])", sorted.last ?? .zero)
        print("large routing table \(scale): after its start most \(delays.map(\.0).max() ?? .zero)")
        let snapshot: KernelSnapshot? = try answer { session.withSnapshot($0) }
        #expect(snapshot?.routes.count ?? 0 > scale.routes)
    }
}
