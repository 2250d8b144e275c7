import Pacing
import Testing

@Suite struct HysteresisTests {
    /// Records results (`+` success, `-` failure) and returns each change: `+` up, `-` down, `.` none.
    private func transcript(_ results: String, failAfter: Int, recoverAfter: Int) -> String {
        var state = Hysteresis(failAfter: failAfter, recoverAfter: recoverAfter)
        return String(results.map { state.record(success: $0 == "+").map { $0 ? "+" : "-" } ?? "." })
    }

    @Test func `two failures make the state down, one success up`() {
        #expect(transcript("+-+--+--", failAfter: 2, recoverAfter: 1) == "+...-+.-")
    }

    @Test func `an unknown state needs as many results as a known one`() {
        #expect(transcript("--", failAfter: 2, recoverAfter: 1) == ".-")
        #expect(transcript("+++", failAfter: 1, recoverAfter: 3) == "..+")
        #expect(transcript("+-+-+-", failAfter: 2, recoverAfter: 2) == "......")
    }

    @Test func `a change is reported once`() {
        #expect(transcript("----++++", failAfter: 2, recoverAfter: 3) == ".-....+.")
    }

    @Test func `a threshold below one counts as one`() {
        #expect(transcript("-+-", failAfter: 0, recoverAfter: -3) == "-+-")
    }

    @Test func `a result against the state contradicts it until it is confirmed or refuted`() {
        var state = Hysteresis(failAfter: 2, recoverAfter: 1)
        #expect(!state.isContradicted)
        #expect(state.record(success: false) == nil)
        #expect(state.isContradicted)
        #expect(state.record(success: true) == true)
        #expect(!state.isContradicted)
        #expect(state.record(success: false) == nil)
        #expect(state.isContradicted)
        #expect(state.record(success: false) == false)
        #expect(!state.isContradicted)
    }

    @Test func `after a reset the state is unknown and the streak restarts`() {
        var state = Hysteresis(failAfter: 2, recoverAfter: 1)
        #expect(state.record(success: true) == true)
        #expect(state.record(success: false) == nil)
        state.reset()
        #expect(state.isUp == nil)
        #expect(state.record(success: false) == nil)
        #expect(state.record(success: false) == false)
    }
}
