import Expectations
import Testing

@testable import netwatch_service

@Suite struct ConnectionTableTests {
    private func limits(_ change: (inout WebLimits) -> Void) -> WebLimits {
        var limits = WebLimits()
        (limits.connections, limits.streams, limits.reserve, limits.connectionsOfAddress) = (3, 2, 1, 2)
        change(&limits)
        return limits
    }

    @Test func `the connection that has waited longest is closed for a new one, and one with a request is not`() {
        var table = ConnectionTable(limits: limits { $0.waiting = 2 })
        expectEqual(table.admit(0, .loopback, at: 0), .accepted(replacing: nil))
        expectEqual(table.admit(1, .loopback, at: 1), .accepted(replacing: nil))
        expectEqual(table.beginRequests(0, at: 2), .accepted(replacing: nil))
        expectEqual(table.admit(2, .loopback, at: 3), .accepted(replacing: nil))
        expectEqual(table.admit(3, .loopback, at: 4), .accepted(replacing: 1))
        expectEqual(table.admit(4, .loopback, at: 5), .accepted(replacing: 2))
        // Its place was taken before its request arrived.
        expectEqual(table.beginRequests(1, at: 6), .refused)
        expectEqual(table.requests, 1)
    }

    @Test func `a connection that never had a complete request is closed before an idle one`() {
        var table = ConnectionTable(limits: limits { _ in })
        _ = table.admitRequest(0, .loopback, at: 0)
        // It had an answer, and waits for the next request.
        table.setIdle(0, since: nil)
        table.setIdle(0, since: 1)
        for id in 1..<3 { _ = table.admitRequest(id, .loopback, at: Int64(id + 1)) }
        let decisions = [table.admitRequest(3, .loopback, at: 4), table.admitRequest(4, .loopback, at: 5)]
        expectEqual(decisions, [.accepted(replacing: 1), .accepted(replacing: 2)])
    }

    @Test(arguments: [WebLimits.leastOpenFiles, 256, 1_024, 65_536])
    func `connections leave half of the open files to probes and to the history`(openFiles: Int) {
        let limits = WebLimits(openFiles: openFiles)
        #expect(limits.waiting + limits.connections + limits.streams + limits.reserve <= openFiles / 2)
    }

    @Test func `each new connection replaces the oldest of those that remain`() {
        var table = ConnectionTable(limits: limits { $0.waiting = 3 })
        var remaining: [Int] = []
        for id in 0..<10_000 {
            let oldest = remaining.count == 3 ? remaining.removeFirst() : nil
            expectEqual(table.admit(id, .loopback, at: Int64(id)), .accepted(replacing: oldest))
            remaining.append(id)
            if id % 7 == 6 { table.remove(remaining.removeLast()) }
        }
    }

    @Test func `the oldest waiting connection of the client with the most is replaced`() {
        var table = ConnectionTable(limits: limits { _ in })
        let decisions = [
            table.admitRequest(0, .socket, at: 0), table.admitRequest(1, .loopback, at: 1),
            table.admitRequest(2, .loopback, at: 2),
            table.admitRequest(3, .socket, at: 3), table.admitRequest(4, .loopback, at: 4),
        ]
        #expect(decisions[..<3].allSatisfy { $0 == .accepted(replacing: nil) })
        expectEqual(decisions[3], .accepted(replacing: 1))
        // Connections that wait are replaced in turn, so their number stays.
        expectEqual(decisions[4], .accepted(replacing: 0))
        expectEqual(table.requests, 3)
    }

    @Test func `connections that make progress are not replaced, and the reserve is limited`() {
        var table = ConnectionTable(limits: limits { _ in })
        for id in 0..<3 {
            _ = table.admitRequest(id, .loopback, at: 0)
            table.setIdle(id, since: nil)
        }
        var decisions = [table.admitRequest(3, .loopback, at: 1), table.admitRequest(4, .loopback, at: 1)]
        expectEqual(decisions, [.reserved(replacing: nil), .reserved(replacing: 3)])
        table.setIdle(4, since: nil)
        table.setIdle(9, since: nil)
        decisions = [table.admitRequest(5, .socket, at: 2)]
        expectEqual(decisions, [.refused])
        // The client of one reads nothing any more.
        table.setIdle(1, since: 3)
        decisions = [table.admitRequest(6, .loopback, at: 4)]
        expectEqual(decisions, [.accepted(replacing: 1)])
    }

    @Test func `streams have places of their own, and one that is not read is replaced`() {
        var table = ConnectionTable(limits: limits { _ in })
        for id in 0..<3 { _ = table.admitRequest(id, .loopback, at: 0) }
        var decisions = [0, 1, 2, 0, 9].map { table.beginStream($0) }
        expectEqual(decisions, [.accepted(replacing: nil), .accepted(replacing: nil), .refused, .refused, .refused])
        #expect(table.requests == 1 && table.streams == 2)
        table.setIdle(0, since: 5)
        decisions = [table.beginStream(2)]
        expectEqual(decisions, [.accepted(replacing: 0)])
        #expect(table.requests == 0 && table.streams == 2)
        table.remove(1)
        table.remove(1)
        expectEqual(table.streams, 1)
    }

    @Test func `another machine has a limit of its own`() {
        var table = ConnectionTable(limits: limits { $0.connections = 100 })
        let (client, other) = (ConnectionTable.Client.address("192.0.2.1"), ConnectionTable.Client.address("192.0.2.2"))
        var decisions = (0..<3).map { table.admit($0, client, at: Int64($0)) }
        expectEqual(decisions, [.accepted(replacing: nil), .accepted(replacing: nil), .accepted(replacing: 0)])
        table.setIdle(1, since: nil)
        table.setIdle(2, since: nil)
        decisions = [table.admit(3, client, at: 2), table.admit(4, other, at: 2)]
        expectEqual(decisions, [.refused, .accepted(replacing: nil)])
        table.remove(1)
        decisions = [table.admit(5, client, at: 3)]
        expectEqual(decisions, [.accepted(replacing: nil)])
    }
}

extension ConnectionTable {
    /// Enters a connection whose first request is there already.
    fileprivate mutating func admitRequest(_ id: Int, _ client: Client, at now: Int64) -> Admission {
        _ = admit(id, client, at: now)
        return beginRequests(id, at: now)
    }
}
