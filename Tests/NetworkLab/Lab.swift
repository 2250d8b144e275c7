import CLinux
import Foundation
import Glibc
import Synchronization

/// A set of hosts on this machine, each a network namespace, and the cables between them. No packet leaves the machine.
///
/// Every interface that the lab makes has its own index, counted from 300 over all labs of the process. The kernel takes two ends
/// of a cable with the same index in two namespaces for one interface stacked on itself, and then announces carrier changes late.
/// Indexes above 255 also reveal code that stores one in a byte.
public final class Lab: Sendable {
    private static let interfaces = Atomic<UInt32>(300)
    private static let names = Atomic<Int>(0)

    /// An empty lab. A host is removed with its last reference, not with the lab.
    public init() {}

    /// A new host with only `lo`, which is down unless `loopback` is true.
    public func host(loopback: Bool = false) throws -> LabHost {
        let host = try LabHost()
        if loopback { try host.ip("link set lo up") }
        return host
    }

    /// A new host that `ip netns` lists as `nwlab-PID-N`. The name is deleted with the host, and at the end of the test process,
    /// however it ends.
    public func namedHost(loopback: Bool = false) throws -> LabHost {
        Lab.sweep
        let number = Lab.names.add(1, ordering: .relaxed).newValue
        let host = try LabHost(named: "\(Lab.prefix)\(getpid())-\(number)")
        if loopback { try host.ip("link set lo up") }
        return host
    }

    /// Connects two hosts by a cable (veth pair). Both ends are down.
    public func connect(_ left: LabHost, _ leftName: String, _ right: LabHost, _ rightName: String) throws {
        let (one, other) = (Lab.nextIndex(), Lab.nextIndex())
        try left.ip("link add name \(leftName) index \(one) type veth peer name \(rightName) index \(other) netns \(right.path)")
    }

    /// The index for the next interface.
    static func nextIndex() -> UInt32 {
        interfaces.add(1, ordering: .relaxed).oldValue
    }

    private static let prefix = "nwlab-"

    /// Deletes the names of processes that have ended. They exist only if the watchdog was killed too.
    private static let sweep: Void = {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/run/netns")) ?? [] where name.hasPrefix(prefix) {
            let owner = name.dropFirst(prefix.count).prefix { $0 != "-" }
            guard let process = Int32(owner), kill(process, 0) != 0, errno == ESRCH else { continue }
            // Another test process may sweep at the same time.
            _ = try? runProgram(["ip", "netns", "del", name], on: nil)
        }
    }()
}
