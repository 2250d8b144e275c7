import CLinux
import Expectations
import Foundation
import Glibc
import Testing

@testable import HTTPSession
@testable import Reachability

/// Outages on a machine without any network.
final class OutageTrackerTests {
    private var outages = OutageTracker()
    private let cause = Cause(.link, .noCarrier, detail: "no carrier")
    private let path: NetworkPath

    init() { path = NetworkPath(status: .unsatisfied, cause: cause) }

    private func origin(_ number: Int = 0) throws -> Origin {
        try #require(URL(string: "https://203.0.113.\(number)/").flatMap { Origin($0) })
    }

    /// Fails a task as the session does: an unreachable server is watched, if there is room.
    private func failed(_ id: UInt64, at number: Int = 0, hasNoRoute: Bool = false) throws -> Cause? {
        let origin = try origin(number)
        if !outages.isWatched(origin), outages.hasRoom(for: origin) { _ = outages.watch(origin) }
        return outages.failed(id, at: origin, hasNoRoute: hasNoRoute, path: path)
    }

    /// Reports a change of a watched server. The tracker's first watch has number 1.
    private func changed(
        _ state: StatusName, for other: Cause? = nil, watch: UInt64 = 1
    ) throws -> [OutageTracker.Decision] {
        let moment = Moment(monotonicNanoseconds: 0, wallClockNanoseconds: 0)
        let update = ServerUpdate(
            endpoint: try Endpoint("203.0.113.0:443"), statusName: state, cause: state == .unreachable ? other ?? cause : nil,
            since: moment,
            address: nil, interface: nil, roundTrip: nil, isInitial: false, moment: moment)
        return outages.changed(try origin(), watch: watch, update, path: path) { $0 - 1 }
    }

    /// The decision for a task that follows the canary, with the longest delay.
    private func following(_ ids: UInt64...) -> [OutageTracker.Decision] {
        ids.map { .proceed($0, delay: OutageTracker.canaryTimeout + Int64(ids.count) * 1_000_000 - 1) }
    }

    @Test func `tasks wait together and proceed in order of arrival`() throws {
        for id in [7, 3, 9] as [UInt64] { try expectNil(failed(id)) }
        try expectNil(failed(3))
        try expectEqual(changed(.unreachable), [.wait(7, cause), .wait(3, cause), .wait(9, cause)])
        try expectEqual(failed(4), cause)
        outages.forget(3, at: try origin())
        // The first task proceeds at once. The others follow its response, or a second later within a millisecond for each.
        try expectEqual(changed(.up), [.proceed(7, delay: 0)] + following(9, 4))
        try expectEqual(changed(.up), [])
        expectEqual(outages.answered(9, at: try origin()) { $0 - 1 }, [])
        expectEqual(outages.answered(7, at: try origin(1)) { $0 - 1 }, [])
        let late: Int64 = 1_999_999
        expectEqual(outages.answered(7, at: try origin()) { $0 - 1 }, [.proceed(9, delay: late), .proceed(4, delay: late)])
        expectEqual(outages.answered(7, at: try origin()) { $0 - 1 }, [])
    }

    @Test func `no task follows a canary that ended without a response`() throws {
        for id in [1, 2] as [UInt64] { _ = try failed(id) }
        try expectEqual(changed(.down), [.proceed(1, delay: 0)] + following(2))
        outages.forget(1, at: try origin())
        expectEqual(outages.answered(1, at: try origin()) { $0 - 1 }, [])
    }

    @Test func `a task that starts while others wait joins them until the cause changes`() throws {
        expectNil(outages.join(1, at: try origin()))
        try expectNil(failed(1))
        expectNil(outages.join(2, at: try origin()))
        _ = try changed(.unreachable)
        expectEqual(outages.join(2, at: try origin()), cause)
        // Without a network the name cannot be resolved either; it is resolved again when a network is present.
        let unknown = Cause(.dns, .nameNotFound, detail: "no such name")
        try expectEqual(changed(.unreachable, for: unknown), [])
        expectNil(outages.join(3, at: try origin()))
        try expectEqual(failed(3, hasNoRoute: true)?.layer, .link)
        expectEqual(
            outages.pathRestored { $0 - 1 }, [.proceed(1, delay: 0)] + following(2, 3))
        // No task waits for the end of a refusal.
        let refused = Cause(.route, .routeProhibited, detail: "prohibit default")
        try expectEqual(changed(.unreachable, for: refused).first, .proceed(1, delay: 2_999_999))
        try expectNil(failed(3, hasNoRoute: true))
        expectNil(outages.join(4, at: try origin()))
        // An existing connection needs no name server.
        let silent = Cause(.dns, .resolverSilent, detail: "no answer")
        _ = try changed(.unreachable, for: silent)
        try expectEqual(failed(3), silent)
        expectNil(outages.join(4, at: try origin()))
    }

    @Test func `a report of a dropped watch does not count for the next one`() throws {
        _ = try failed(1)
        outages.forget(1, at: try origin())
        _ = try failed(2)
        try expectEqual(changed(.unreachable, watch: 1), [])
        try expectNil(failed(3))
        try expectEqual(changed(.up, watch: 2), [.proceed(2, delay: 0)] + following(3))
    }

    @Test func `tasks of servers beyond the limit have only their retries`() throws {
        for number in 0..<OutageTracker.maximumWatches { try expectNil(failed(UInt64(number), at: number)) }
        // Not even the path's cause makes such a task wait: nothing would end its wait.
        try expectNil(failed(100, at: 100, hasNoRoute: true))
        outages.forget(5, at: try origin(5))
        #expect(try failed(100, at: 100, hasNoRoute: true) != nil)
    }

    @Test func `ten thousand tasks arrive and leave quickly`() throws {
        func processorTime() -> Int64 {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
        }
        let start = processorTime()
        for id in 0..<10_000 as Range<UInt64> { _ = try failed(id) }
        for id in 0..<10_000 as Range<UInt64> { outages.forget(id, at: try origin()) }
        // This takes 0.2 s of processor time in a debug build; it took 11 s when each task searched all others.
        let spent = processorTime() - start
        #expect(spent < 3_000_000_000, "\(spent) ns")
    }
}
