import Glibc
import NetworkLab
import Testing

@testable import Reachability

/// All tables of a host, dumped once by separate sockets. A snapshot has to equal them.
enum FreshDump {
    static func take(of host: LabHost) throws -> KernelSnapshot {
        try host.perform {
            let source = try NetlinkSource()
            let dumpDescriptor = try source.dumpDescriptor ?? { throw LabError("no netlink here") }()
            var keeper = SnapshotKeeper()
            for (number, table) in KernelTable.allCases.enumerated() {
                // A dump with dead routes is repeated, since the kernel is removing them. An interrupted one may have missed an
                // entry.
                var sequence = UInt32(number * 1000)
                while true {
                    sequence += 1
                    keeper.beginDump(table)
                    guard source.startDump(table, over: nil, sequence: sequence) == 0 else {
                        throw LabError("the dump is refused")
                    }
                    if try read(source, dumpDescriptor, into: &keeper) {
                        if keeper.endDump().staleTables.isDisjoint(with: [table]) { break }
                    } else {
                        keeper.abandonDump()
                    }
                    guard sequence % 1000 < 500 else { throw LabError("the dumps of \(table) never complete") }
                    poll(nil, 0, 5)
                }
            }
            return keeper.live
        }
    }

    /// Waits until the observer's snapshot equals the tables, and records an issue if it never does.
    static func expect(
        _ host: LabHost, _ observer: LibraryObserver, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let end = ContinuousClock.now + patience
        var difference: [KernelChange] = []
        repeat {
            difference = try take(of: host).changes(since: observer.settledState().snapshot)
        } while !difference.isEmpty && ContinuousClock.now < end
        #expect(difference.isEmpty, sourceLocation: sourceLocation)
    }

    /// - Returns: whether the dump was complete.
    private static func read(_ source: NetlinkSource, _ descriptor: Int32, into keeper: inout SnapshotKeeper) throws -> Bool {
        var isComplete = true
        var end: Int32?
        while end == nil {
            var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&polled, 1, 60_000) == 1 else { throw LabError("the dump does not end") }
            let failure = source.readDump { bytes in
                for message in NetlinkDecoder.decode([UInt8](bytes)) {
                    if message.wasInterrupted { isComplete = false }
                    if case .done(let errno) = message.event { end = errno } else { keeper.addDumped(message.event) }
                }
            }
            guard failure == 0 else { throw LabError("the dump cannot be read") }
        }
        return isComplete && end == 0
    }
}
