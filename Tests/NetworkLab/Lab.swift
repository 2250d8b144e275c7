import CLinux
import Foundation
import Glibc
import Synchronization

/// A set of hosts on this machine, each a network namespace, and the cables between them. No packet leaves it.
///
/// Every interface that the lab makes has an index of its own, counted over all labs of the process from 300. Two ends of a cable with
/// the same index in two namespaces look to the kernel like one interface stacked on itself, and it then announces carrier changes
/// late. Indexes above 255 also show where somebody keeps one in a byte.
public final class Lab: Sendable {
    private static let interfaces = Atomic<UInt32>(300)
    private static let names = Atomic<Int>(0)

    /// An empty lab; hosts go with their last reference, not with the lab.
    public init() {}

    /// A new host: only `lo`, down unless asked for.
    public func host(loopback: Bool = false) throws -> LabHost {
        let host = try LabHost()
        if loopback { try host.ip("link set lo up") }
        return host
    }

    /// A new host that `ip netns` lists, named `nwlab-PID-N`. The name goes with the host, and with the test process however it ends.
    public func namedHost(loopback: Bool = false) throws -> LabHost {
        Lab.sweep
        let number = Lab.names.add(1, ordering: .relaxed).newValue
        let host = try LabHost(named: "\(Lab.prefix)\(getpid())-\(number)")
        if loopback { try host.ip("link set lo up") }
        return host
    }

    /// A cable (veth pair) between two hosts; both ends are down.
    public func connect(_ left: LabHost, _ leftName: String, _ right: LabHost, _ rightName: String) throws {
        let (one, other) = (Lab.nextIndex(), Lab.nextIndex())
        try left.ip("link add name \(leftName) index \(one) type veth peer name \(rightName) index \(other) netns \(right.path)")
    }

    /// The index for the next interface.
    static func nextIndex() -> UInt32 {
        interfaces.add(1, ordering: .relaxed).oldValue
    }

    private static let prefix = "nwlab-"

    /// Deletes names whose process is gone: only where the watchdog was killed too.
    private static let sweep: Void = {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/run/netns")) ?? [] where name.hasPrefix(prefix) {
            let owner = name.dropFirst(prefix.count).prefix { $0 != "-" }
            guard let process = Int32(owner), kill(process, 0) != 0, errno == ESRCH else { continue }
            // Another test process may sweep at the same time.
            _ = try? runProgram(["ip", "netns", "del", name], on: nil)
        }
    }()
}
