import Expectations
import Testing

@testable import netwatch_service

@Suite struct ReloadGuardTests {
    private static let second: Int64 = 1_000_000_000

    @Test(arguments: [
        (total: 0, removed: 0, isRefused: false), (1, 0, false), (1, 1, true), (2, 1, false), (2, 2, true), (3, 2, false),
        (3, 3, true), (4, 2, false), (4, 3, true), (300, 150, false), (300, 151, true),
    ])
    func `a reload that removes all targets, or most of four or more, is refused`(total: Int, removed: Int, isRefused: Bool) {
        var reloads = ReloadGuard()
        let refusal = reloads.refusal(
            ReloadCounts(added: 7, removed: removed), of: total, fingerprint: 1, .post(confirmed: nil), at: 0)
        expectEqual(refusal != nil, isRefused)
    }

    @Test func `a request confirms exactly the number of removed targets`() throws {
        let counts = ReloadCounts(removed: 3)
        var reloads = ReloadGuard()
        for (confirmed, sentence) in [
            (nil, "the new one removes all 3 targets (+0 −3 ~0); to confirm it, POST /-/reload?confirm=3"),
            (2, "the new one removes all 3 targets (+0 −3 ~0), and not 2; to confirm it, POST /-/reload?confirm=3"),
            (3, nil),
        ] as [(Int?, String?)] {
            let refusal = reloads.refusal(counts, of: 3, fingerprint: 1, .post(confirmed: confirmed), at: 0)
            expectEqual(refusal?.sentence, sentence)
        }
        // A reload that needs no confirmation ignores the number.
        expectEqual(reloads.refusal(ReloadCounts(removed: 1), of: 3, fingerprint: 1, .post(confirmed: 3), at: 0), nil)
    }

    /// A signal of a transcript.
    struct Signal: Sendable {
        /// The time in seconds.
        var time: Int64
        /// The state of the files.
        var fingerprint: Int
        /// The number of removed targets.
        var removed: Int
        /// Whether the reload is applied.
        var isApplied: Bool

        init(_ time: Int64, _ fingerprint: Int, _ removed: Int, _ isApplied: Bool) {
            (self.time, self.fingerprint, self.removed, self.isApplied) = (time, fingerprint, removed, isApplied)
        }
    }

    @Test(arguments: [
        [Signal(0, 1, 4, false), Signal(4, 1, 4, false), Signal(5, 1, 4, true)],
        // After it was applied, the next one needs two signals again.
        [Signal(0, 1, 4, false), Signal(6, 1, 4, true), Signal(12, 1, 4, false), Signal(18, 1, 4, true)],
        // Other files, or another number of targets, restart the time.
        [Signal(0, 1, 4, false), Signal(6, 2, 4, false), Signal(8, 2, 4, false), Signal(11, 2, 4, true)],
        [Signal(0, 1, 4, false), Signal(6, 1, 3, false), Signal(11, 1, 3, true)],
        // So does a reload without a loss in between.
        [Signal(0, 1, 4, false), Signal(3, 2, 0, true), Signal(6, 1, 4, false)],
        // A timer that sends a signal each hour confirms nothing.
        [Signal(0, 1, 4, false), Signal(3_600, 1, 4, false), Signal(7_200, 1, 4, false)],
        [Signal(0, 1, 4, false), Signal(600, 1, 4, true)],
    ])
    func `a second signal confirms the first if the files are the same and 5 s have passed`(
        signals: [Signal]
    ) {
        var reloads = ReloadGuard()
        for signal in signals {
            let refusal = reloads.refusal(
                ReloadCounts(removed: signal.removed), of: 5, fingerprint: signal.fingerprint, .signal,
                at: signal.time * Self.second)
            expectEqual(refusal == nil, signal.isApplied, "\(signal)")
        }
    }

    @Test func `the refusal of a signal names both ways to confirm it`() {
        var reloads = ReloadGuard()
        let refusal = reloads.refusal(ReloadCounts(added: 1, removed: 3, changed: 1), of: 5, fingerprint: 1, .signal, at: 0)
        expectEqual(
            refusal?.sentence,
            "the new one removes 3 of 5 targets (+1 −3 ~1); to confirm it, send SIGHUP again after 5 s, or POST /-/reload?confirm=3"
        )
    }
}
