import Console
import Expectations
import HTTPSession
import Reachability
import Testing

@testable import netwatch_transfer

/// The moment some milliseconds after an arbitrary start, 12:00:00 UTC.
func moment(_ milliseconds: Int64) -> Moment {
    Moment(
        monotonicNanoseconds: 1_000_000_000_000 + milliseconds * 1_000_000,
        wallClockNanoseconds: 1_785_672_000_000_000_000 + milliseconds * 1_000_000)
}

enum Problems {
    static let busy = TransferProblem(
        message: "the server answered 503", cause: Cause(.http, .status, detail: "the server answered 503"), kind: .temporary)
    static let noCarrier = TransferProblem(
        message: "link: wlan0 has no carrier", cause: Cause(.link, .noCarrier, detail: "wlan0 has no carrier"), kind: .temporary)
    static let gone = TransferProblem(
        message: "the server answered 404", cause: Cause(.http, .status, detail: "the server answered 404"), kind: .permanent)
}

func download(_ name: String = "big.bin") -> TransferStatus {
    TransferStatus(url: "http://example.test/\(name)", name: name, at: moment(0))
}

@Suite struct TransferStatusTests {
    @Test func `a download without problems goes from waiting to finished`() {
        var status = download()
        expectEqual(status.recordState, .waiting)
        expectEqual(status.apply(.started, at: moment(1)), true)
        #expect(status.recordState == .running && status.attempt == 0)
        expectEqual(status.apply(.requested, at: moment(2)), false)
        expectEqual(status.attempt, 1)
        expectEqual(status.apply(.answered(status: 200, phrase: "OK"), at: moment(3)), true)
        status.sample(bytes: 250, total: 1_000, at: moment(1_003))
        expectEqual(status.percent, 25)
        expectEqual(status.rate(at: moment(1_003)), 250)
        expectEqual(status.timeLeft(at: moment(1_003)), .seconds(3))
        status.sample(bytes: 1_000, total: 1_000, at: moment(2_000))
        #expect(status.isComplete)
        expectEqual(status.apply(.finished, at: moment(2_001)), true)
        expectEqual(status.recordState, .finished)
        expectEqual(status.total, 1_000)
        expectEqual(status.resumedFrom, nil)
        expectEqual(status.bytesOfEarlierRuns, 0)
        expectEqual(status.apply(.failed(Problems.gone), at: moment(3_000)), false, "a finished transfer does not change")
    }

    @Test func `a redirect belongs to its attempt`() {
        var status = download()
        for event in [TransferEvent.started, .requested, .answered(status: 302, phrase: ""), .redirected(to: "/x"), .requested] {
            _ = status.apply(event, at: moment(1))
        }
        expectEqual(status.attempt, 1)
        expectEqual(status.phase, .connecting)
    }

    @Test func `a retry counts an attempt and has a cause`() {
        var status = download()
        _ = status.apply(.started, at: moment(0))
        _ = status.apply(.requested, at: moment(0))
        expectEqual(status.apply(.failedForNow(Problems.busy), at: moment(10)), true)
        status.sample(bytes: 0, total: nil, wait: .seconds(8), at: moment(10))
        expectEqual(status.recordState, .backingOff)
        expectEqual(status.problem, Problems.busy)
        expectEqual(status.timeToNextAttempt(at: moment(3_010)), .seconds(5))
        expectEqual(status.apply(.failedForNow(Problems.busy), at: moment(20)), false, "the same state is not reported twice")
        expectEqual(status.apply(.requested, at: moment(8_010)), true)
        expectEqual(status.attempt, 2)
        expectEqual(status.problem, nil)
    }

    @Test func `bytes of earlier runs do not count for the rate`() {
        var status = download()
        _ = status.apply(.started, at: moment(0))
        status.sample(bytes: 610_000, total: 1_000_000, at: moment(1))
        _ = status.apply(.requested, at: moment(2))
        _ = status.apply(.answered(status: 206, phrase: ""), at: moment(3))
        expectEqual(status.apply(.continued(offset: 610_000, total: 1_000_000), at: moment(3)), true)
        status.sample(bytes: 611_000, total: 1_000_000, at: moment(1_003))
        expectEqual(status.rate(at: moment(1_003)), 1_000)
        expectEqual(status.percent, 61)
        expectEqual(status.resumedFrom, 610_000)
        expectEqual(status.bytesOfEarlierRuns, 610_000)
        // The server had another version after all, and the download restarted.
        _ = status.apply(.answered(status: 200, phrase: ""), at: moment(2_000))
        status.sample(bytes: 1_000, total: 900_000, at: moment(2_003))
        expectEqual(status.resumedFrom, nil)
        expectEqual(status.bytesOfEarlierRuns, 0)
        expectNil(status.rate(at: moment(2_003)))
    }

    @Test func `a progress that is older than the continuation does not undo it`() {
        var status = download()
        for event in [
            TransferEvent.started, .requested, .answered(status: 206, phrase: ""), .continued(offset: 500, total: 1_000),
        ] {
            _ = status.apply(event, at: moment(0))
        }
        status.sample(bytes: 400, total: 1_000, at: moment(10))
        expectEqual(status.resumedFrom, 500)
        expectEqual(status.bytes, 500)
    }

    @Test func `a continuation within a run has no bytes of earlier runs`() {
        var status = download()
        for event in [TransferEvent.started, .requested, .answered(status: 200, phrase: "")] {
            _ = status.apply(event, at: moment(0))
        }
        status.sample(bytes: 500, total: 1_000, at: moment(500))
        _ = status.apply(.failedForNow(Problems.busy), at: moment(600))
        _ = status.apply(.requested, at: moment(700))
        _ = status.apply(.continued(offset: 500, total: 1_000), at: moment(800))
        expectEqual(status.resumedFrom, 500)
        expectEqual(status.bytesOfEarlierRuns, 0)
        expectEqual(status.attempt, 2)
    }

    @Test func `the network is missing since the first failed attempt`() {
        var status = download()
        _ = status.apply(.started, at: moment(0))
        _ = status.apply(.requested, at: moment(0))
        _ = status.apply(.networkGone(Problems.noCarrier), at: moment(1_000))
        _ = status.apply(.requested, at: moment(60_000))
        _ = status.apply(.networkGone(Problems.noCarrier), at: moment(61_000))
        expectEqual(status.recordState, .waiting)
        expectEqual(status.since, moment(1_000))
        _ = status.apply(.requested, at: moment(70_000))
        _ = status.apply(.continued(offset: 1, total: nil), at: moment(70_001))
        _ = status.apply(.networkGone(Problems.noCarrier), at: moment(80_000))
        expectEqual(status.since, moment(80_000))
    }

    @Test func `a signal suspends the transfer`() {
        var status = download()
        _ = status.apply(.started, at: moment(0))
        expectEqual(status.apply(.stopped, at: moment(5)), true)
        expectEqual(status.recordState, .suspended)
        expectEqual(status.problem, nil)
    }
}

@Suite struct RateMeterTests {
    private func time(_ milliseconds: Int64) -> Int64 { milliseconds * 1_000_000 }

    @Test func `the rate covers the last five seconds`() {
        var meter = RateMeter(bytes: 0, at: 0)
        expectNil(meter.rate(at: time(400)), "the time is too short")
        for tenth in 1...100 { meter.add(bytes: Int64(tenth) * 1_000, at: time(Int64(tenth) * 100)) }
        expectEqual(meter.rate(at: time(10_000)), 10_000)
        for tenth in 101...200 { meter.add(bytes: 100_000, at: time(Int64(tenth) * 100)) }
        expectEqual(meter.rate(at: time(20_000)), 0)
        expectEqual(meter.silence(at: time(20_000)), time(10_000))
    }

    @Test func `close samples are merged`() {
        var meter = RateMeter(bytes: 0, at: 0)
        for number in 1...100_000 { meter.add(bytes: Int64(number), at: Int64(number) * 100_000) }
        #expect(abs((meter.rate(at: 10_000_000_000) ?? 0) - 10_000) < 300)
    }

    @Test func `fewer bytes than before restart the meter`() {
        var meter = RateMeter(bytes: 1_000, at: 0)
        meter.add(bytes: 10, at: time(1_000))
        expectNil(meter.rate(at: time(1_100)))
        meter.add(bytes: 1_010, at: time(2_000))
        expectEqual(meter.rate(at: time(2_000)), 1_000)
    }

    @Test func `an upload is running once bytes are sent, whatever is answered before`() {
        var status = TransferStatus(.upload, url: "http://example.test/film", name: "film", at: moment(0))
        _ = status.apply(.started, at: moment(0))
        _ = status.apply(.requested, at: moment(1))
        expectEqual(status.apply(.answered(status: 201, phrase: "Created"), at: moment(2)), false)
        expectEqual(status.phase, .connecting)
        _ = status.apply(.requested, at: moment(3))
        status.sample(bytes: 400, total: 1_000, at: moment(4))
        expectEqual(status.phase, .moving)
        expectEqual(status.attempt, 1)
        expectEqual(status.percent, 40)
        _ = status.apply(.failedForNow(Problems.busy), at: moment(5))
        _ = status.apply(.requested, at: moment(6))
        // Some of the sent bytes were lost.
        _ = status.apply(.continued(offset: 300, total: 1_000), at: moment(7))
        status.sample(bytes: 0, total: 1_000, at: moment(7))
        expectEqual(status.bytes, 300)
        expectEqual(status.resumedFrom, 300)
        expectEqual(status.attempt, 2)
        expectEqual(status.bytesOfEarlierRuns, 0)
        status.sample(bytes: 1_000, total: 1_000, at: moment(8))
        expectEqual(StateText(offset: 0).text(status, at: moment(8)), "all bytes sent, waiting for the response")
        expectEqual(status.apply(.finished, at: moment(9)), true)
    }

    @Test func `records count sent and received bytes separately`() {
        var status = TransferStatus(.upload, url: "http://example.test/film", name: "film", at: moment(0))
        _ = status.apply(.started, at: moment(0))
        status.sample(bytes: 400, total: 1_000, at: moment(4))
        let line = String(decoding: TransferRecord(status: status, moment: moment(5)).encode(seq: 0), as: UTF8.self)
        #expect(line.contains(#""state":"running","received":0,"sent":400,"total":1000"#))
    }

    @Test func `an unanswered TLS handshake has stalled although libcurl reports no connection`() {
        var status = TransferStatus(url: "https://example.test/x", name: "x", at: moment(0))
        status.usesTLS = true
        for event in [TransferEvent.started, .requested, .diagnosed(.answers), .measured(.unconnected)] {
            _ = status.apply(event, at: moment(1))
        }
        let late = TransferProblem(HTTPSessionError(.timedOut, "not done within 4.9 seconds"))
        expectEqual(status.explained(late).cause.code, .handshakeStalled)
        #expect(!status.explained(late).message.contains("4.9"))
        status.usesTLS = false
        expectEqual(status.explained(late).cause.code, .timeout)
    }

    @Test func `the cause of a timeout that the session has found stays`() {
        var status = TransferStatus(url: "https://example.test/x", name: "x", at: moment(0))
        status.usesTLS = true
        for event in [TransferEvent.started, .requested, .diagnosed(.answers), .measured(.unconnected)] {
            _ = status.apply(event, at: moment(1))
        }
        var error = HTTPSessionError(.timedOut, "not done within 4.9 seconds")
        error.cause = Cause(
            .tls, .handshakeTimeout, detail: "192.0.2.9 does not finish the TLS handshake in time: it has sent 3 bytes")
        let explained = status.explained(TransferProblem(error))
        #expect(explained.cause == error.cause && explained.message == error.cause?.detail)
    }

    @Test func `a refused user is told which options have credentials`() {
        let refused = TransferProblem(TransferAnswer(status: 401, phrase: "Unauthorized"))
        expectEqual(refused.message, "the server answered 401 Unauthorized; credentials come from --user or -H")
        expectEqual(TransferProblem(TransferAnswer(status: 403, phrase: "No")).message, "the server answered 403 No")
    }

    @Test func `a response of the proxy names the proxy and is no connection failure`() {
        var status = download()
        let refused = TransferProblem(TransferAnswer(status: 407, phrase: "Proxy Authentication Required"))
        let answer = "answered 407 Proxy Authentication Required; its credentials are part of its URL, NAME:PASSWORD@HOST"
        expectEqual(status.explained(refused).message, "the server \(answer)")
        status.proxy = "192.0.2.1:3128"
        expectEqual(status.explained(refused).message, "the proxy 192.0.2.1:3128 \(answer)")
        expectEqual(status.explained(refused).cause.evidence["proxy"], .text("192.0.2.1:3128"))

        let context = HTTPSessionError.Context(statusCode: 502)
        let error = HTTPSessionError(.proxyFailed, "the proxy refused the connection: 502 Bad Gateway", context: context)
        let named = status.explained(TransferProblem(error))
        expectEqual(named.cause.layer, .http)
        expectEqual(named.cause.code, .status)
        expectEqual(named.kind, .temporary)
        expectEqual(named.message, "the proxy 192.0.2.1:3128 refused the connection: 502 Bad Gateway")
        expectEqual(named.cause.evidence["status"], .number(502))
        expectEqual(named.cause.evidence["proxy"], .text("192.0.2.1:3128"))
        // The server's own 502 does not name the proxy.
        expectEqual(status.explained(Problems.busy), Problems.busy)
    }
}
