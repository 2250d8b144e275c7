import Expectations
import Testing

@testable import Reachability

@Suite struct EventPacingTests {
    private static let microsecond: Int64 = 1_000

    private func begin(_ pacing: inout EventPacing, at now: Int64) -> Bool { pacing.begin(at: now) }

    private func endTurn(_ pacing: inout EventPacing, at now: Int64) -> Bool { pacing.endTurn(at: now) }

    /// Ends a turn. - Returns: the pause after it.
    private func end(_ pacing: inout EventPacing, isSilent: Bool = true, at now: Int64) -> Int64? {
        if !isSilent { pacing.noteUpdate() }
        defer { pacing.resume() }
        return pacing.endTurn(at: now) ? pacing.pauseEnd.map { $0 - now } : nil
    }

    /// Returns the pauses after turns that are 100 µs apart.
    private func pauses(_ pacing: inout EventPacing, _ turns: Int, from start: Int64 = 0, isSilent: Bool = true) -> [Int64?] {
        (0..<turns).map { turn in
            let now = start + Int64(turn) * 100 * Self.microsecond
            _ = pacing.begin(at: now)
            return end(&pacing, isSilent: isSilent, at: now)
        }
    }

    @Test func `the events of a change do not wait`() {
        var pacing = EventPacing()
        #expect(!begin(&pacing, at: 0))
        expectNil(end(&pacing, at: 0))
        #expect(begin(&pacing, at: 200 * Self.microsecond))
        #expect(pauses(&pacing, 15, from: 300 * Self.microsecond).allSatisfy { $0 == nil })
    }

    @Test func `the events of a storm wait for a millisecond, also after each pause`() {
        var pacing = EventPacing()
        #expect(pauses(&pacing, 16).allSatisfy { $0 == nil })
        var now: Int64 = 1_600 * Self.microsecond
        for _ in 0..<100 {
            #expect(begin(&pacing, at: now))
            expectEqual(end(&pacing, at: now), EventPacing.pause)
            now += EventPacing.pause + 100 * Self.microsecond
        }
    }

    @Test func `an update within a storm ends the pauses`() {
        var pacing = EventPacing()
        #expect(pauses(&pacing, 20).last != .some(nil))
        let later: Int64 = 3_000 * Self.microsecond
        expectEqual(pauses(&pacing, 1, from: later, isSilent: false), [nil])
        #expect(pauses(&pacing, 16, from: later + 100 * Self.microsecond).allSatisfy { $0 == nil })
    }

    @Test func `after a quiet time, the next event begins a change`() {
        var pacing = EventPacing()
        #expect(pauses(&pacing, 20).last != .some(nil))
        let later: Int64 = 10_000 * Self.microsecond
        #expect(!begin(&pacing, at: later))
        expectNil(end(&pacing, at: later))
    }

    @Test func `a turn without events ends no pause and counts for nothing`() {
        var pacing = EventPacing()
        _ = pauses(&pacing, 16)
        #expect(!endTurn(&pacing, at: 1_600 * Self.microsecond))
        _ = pacing.begin(at: 1_600 * Self.microsecond)
        #expect(endTurn(&pacing, at: 1_600 * Self.microsecond))
        #expect(!endTurn(&pacing, at: 1_700 * Self.microsecond))
        expectEqual(pacing.pauseEnd, 2_600 * Self.microsecond)
    }
}
