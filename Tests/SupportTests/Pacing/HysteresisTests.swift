import Expectations
import Pacing
import Testing

@Suite struct HysteresisTests {
    /// Records results (`+` success, `-` failure) and returns each change: `+` up, `-` down, `.` none.
    private func transcript(_ results: String, failAfter: Int, recoverAfter: Int) -> String {
        var state = Hysteresis(failAfter: failAfter, recoverAfter: recoverAfter)
        return String(results.map { state.record(success: $0 == "+").map { $0 ? "+" : "-" } ?? "." })
    }

    @Test func `two failures make the state down, one success up`() {
        expectEqual(transcript("+-+--+--", failAfter: 2, recoverAfter: 1), "+...-+.-")
    }

    @Test func `an unknown state needs as many results as a known one`() {
        expectEqual(transcript("--", failAfter: 2, recoverAfter: 1), ".-")
        expectEqual(transcript("+++", failAfter: 1, recoverAfter: 3), "..+")
        expectEqual(transcript("+-+-+-", failAfter: 2, recoverAfter: 2), "......")
    }

    @Test func `a change is reported once`() {
        expectEqual(transcript("----++++", failAfter: 2, recoverAfter: 3), ".-....+.")
    }

    @Test func `a threshold below one counts as one`() {
        expectEqual(transcript("-+-", failAfter: 0, recoverAfter: -3), "-+-")
    }

    @Test func `a result against the state contradicts it until it is confirmed or refuted`() {
        var state = Hysteresis(failAfter: 2, recoverAfter: 1)
        #expect(!state.isContradicted)
        expectNil(state.record(success: false))
        #expect(state.isContradicted)
        expectEqual(state.record(success: true), true)
        #expect(!state.isContradicted)
        expectNil(state.record(success: false))
        #expect(state.isContradicted)
        expectEqual(state.record(success: false), false)
        #expect(!state.isContradicted)
    }

    @Test func `after a reset the state is unknown and the streak restarts`() {
        var state = Hysteresis(failAfter: 2, recoverAfter: 1)
        expectEqual(state.record(success: true), true)
        expectNil(state.record(success: false))
        state.reset()
        expectNil(state.isUp)
        expectNil(state.record(success: false))
        expectEqual(state.record(success: false), false)
    }
}
