import Expectations
import Pacing
import Testing

@testable import Reachability

/// Times are seconds; the interval is 10 s.
@Suite struct VerdictTests {
    private struct T {
        var verdict: Verdict
        init(failAfter: Int = 2, recoverAfter: Int = 1) {
            verdict = Verdict(failAfter: failAfter, recoverAfter: recoverAfter, interval: 10_000_000_000)
        }

        /// A failed probe. - Returns: the state, and after a comma the cause of a failure that does not change it.
        mutating func fail(
            _ second: Double, _ code: Cause.Code = .refused, _ layer: Cause.Layer = .tcp, provisional: Bool = false,
            evidence: [String: Cause.Evidence] = [:]
        ) -> String {
            var finding = Finding(Cause(layer, code, detail: "", evidence: evidence), accusesServer: layer == .tcp)
            finding.isProvisional = provisional
            _ = verdict.fail(finding, start: Self.time(second), at: Self.time(second))
            return line
        }

        mutating func succeed(_ second: Double) -> String {
            verdict.succeed(start: Self.time(second))
            return line
        }

        var line: String {
            verdict.status.rawValue + (verdict.cause.map { " \($0.code.rawValue)" } ?? "")
                + (verdict.pending.map { ", \($0.code.rawValue)" } ?? "") + (verdict.needsConfirmation ? ", confirm" : "")
        }

        static func time(_ second: Double) -> Int64 { Int64(second * 1e9) }
    }

    @Test func `failures count an interval apart, and those between find the cause`() {
        var t = T()
        expectEqual(t.succeed(0), "up")
        expectEqual(t.fail(10), "up, refused, confirm")
        expectEqual(t.fail(10.1, .reset), "up, reset")
        expectEqual(t.fail(19.9), "up, refused")
        expectEqual(t.fail(20, .reset), "down reset")
        expectEqual(t.verdict.failingSince, T.time(10))
    }

    @Test func `the first failures after a start count like others`() {
        var t = T(failAfter: 3)
        expectEqual(t.line, "unknown, confirm")
        expectEqual(t.fail(0), "unknown, refused, confirm")
        expectEqual(t.fail(0.1), "unknown, refused")
        expectEqual(t.fail(10), "unknown, refused, confirm")
        expectEqual(t.fail(20), "down refused")
    }

    @Test func `any success ends a row of failures`() {
        var t = T()
        _ = t.succeed(0)
        _ = t.fail(10)
        expectEqual(t.succeed(10.1), "up")
        expectNil(t.verdict.failingSince)
        expectEqual(t.fail(20), "up, refused, confirm")
        expectEqual(t.verdict.failingSince, T.time(20))
    }

    @Test(
        arguments: [
            (Cause.Layer.link, Cause.Code.noCarrier, [:]), (.route, .noRoute, [:]), (.local, .notPermitted, [:]),
            (.local, .cannotRead, [:]),
            (.firewall, .localReject, [:]), (.firewall, .localDrop, ["errno": .text("EPERM")]),
        ] as [(Cause.Layer, Cause.Code, [String: Cause.Evidence])])
    func `what this machine alone determines needs no count, and neither does its end`(
        _ layer: Cause.Layer, _ code: Cause.Code, _ evidence: [String: Cause.Evidence]
    ) {
        var t = T(failAfter: 5, recoverAfter: 5)
        expectEqual(t.fail(0, code, layer, evidence: evidence), "unreachable \(code.rawValue)")
        expectEqual(t.succeed(0.1), "up")
    }

    @Test func `a drop that only the silence shows is counted`() {
        var t = T()
        expectEqual(t.fail(0, .localDrop, .firewall), "unknown, local-drop, confirm")
    }

    @Test func `another cause of the same status needs as many counted failures`() {
        var t = T()
        _ = t.fail(0)
        expectEqual(t.fail(10), "down refused")
        expectEqual(t.fail(20, .reset), "down refused")
        expectEqual(t.fail(20.5, .reset), "down refused")
        expectEqual(t.fail(30, .reset), "down reset")
        expectEqual(t.fail(30.5), "down reset")
        expectEqual(t.fail(40), "down reset")
        expectEqual(t.fail(50), "down refused")
    }

    @Test func `a failure shows that a certain cause is over, and is counted itself`() {
        var t = T()
        expectEqual(t.fail(0, .noRoute, .route), "unreachable no-route")
        expectEqual(t.fail(1), "unknown, refused, confirm")
        expectEqual(t.verdict.failingSince, T.time(1))
        expectEqual(t.fail(1.1), "unknown, refused")
        expectEqual(t.fail(11), "down refused")
        expectEqual(t.fail(12, .noRoute, .route), "unreachable no-route")
        expectEqual(t.verdict.failingSince, T.time(12))
    }

    @Test func `a provisional failure counts, and decides nothing before another one`() {
        var t = T(failAfter: 1)
        expectEqual(t.fail(0, .latency, .quality, provisional: true), "unknown, latency, confirm")
        expectEqual(t.fail(1, .latency, .quality), "unreachable latency")
        var other = T()
        _ = other.fail(0)
        expectEqual(other.fail(10, .latency, .quality, provisional: true), "unknown, latency, confirm")
        expectEqual(other.fail(13, .latency, .quality), "unreachable latency")
    }

    @Test func `recoveries count an interval apart, and the first success over another path needs no other`() {
        var t = T(recoverAfter: 3)
        _ = t.fail(0)
        _ = t.fail(10)
        expectEqual([20, 20.1, 30].map { t.succeed($0) }, ["down refused", "down refused", "down refused"])
        expectEqual(t.succeed(40), "up")
        _ = t.fail(50)
        _ = t.fail(60)
        expectEqual(t.succeed(70), "down refused")
        t.verdict.pathChanged()
        expectEqual(t.succeed(70.1), "up")
    }

    @Test func `a suspend ends the count, and not the status`() {
        var t = T()
        _ = t.succeed(0)
        _ = t.fail(10)
        t.verdict.resetCounts()
        expectEqual(t.line, "up")
        expectEqual(t.fail(30), "up, refused, confirm")
    }
}
