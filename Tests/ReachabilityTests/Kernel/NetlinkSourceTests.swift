import Expectations
import Testing

@testable import Reachability

/// The kernel's event socket.
@Suite struct NetlinkSourceTests {
    @Test func `the first event of a new address is read alone, and the others together`() throws {
        let namespace = try ProbeNamespace()
        let read = try namespace.perform {
            let source = try NetlinkSource()
            // The address has a route of its own, which is another event.
            try namespace.run("ip", "addr add 127.0.0.9/8 dev lo")
            var counts: [Int] = []
            var first: [NetlinkMessage] = []
            var results: [NetlinkSource.Drained] = []
            for limit in [1, Int.max, 1] {
                counts.append(0)
                let result = source.readEvents(atMost: limit) { bytes in
                    counts[counts.count - 1] += 1
                    if limit == 1 { NetlinkDecoder.decode(bytes, into: &first) }
                }
                results.append(result)
            }
            return (counts: counts, first: first, results: results)
        }
        expectEqual(read.results, [.more, .read, .read])
        #expect(read.counts[0] == 1 && read.counts[1] >= 1 && read.counts[2] == 0)
        expectEqual(read.first.count, 1)
    }
}
