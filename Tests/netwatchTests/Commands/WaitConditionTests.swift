import Console
import Expectations
import Foundation
import Reachability
import RecordSamples
import Records
import Testing

@testable import netwatch

@Suite struct WaitConditionTests {
    let first = Samples.endpoint("192.0.2.9:22")
    let second = Samples.endpoint("192.0.2.8:80")

    @Test func `without targets the path decides wait`() {
        var condition = WaitCondition(endpoints: [])
        #expect(!condition.isDone(at: Samples.moment(0)))
        expectEqual(condition.reason, "the path is not known yet")
        condition.receive(Samples.path(at: 1))
        #expect(!condition.isDone(at: Samples.moment(1)))
        expectEqual(condition.reason, "path unsatisfied, link/no-carrier: eth0 has no carrier")
        condition.receive(Samples.path(Samples.satisfied, at: 2))
        #expect(condition.isFulfilled(at: Samples.moment(2)))
    }

    @Test func `if there are targets, they decide`() {
        var condition = WaitCondition(endpoints: [first, second])
        condition.receive(Samples.hello)
        condition.receive(Samples.server(0, first.text, at: 1))
        #expect(!condition.isDone(at: Samples.moment(1)))
        condition.receive(Samples.server(1, second.text, .down, cause: Samples.refused, at: 2))
        expectEqual(condition.reason, "192.0.2.8:80 is down, tcp/refused: 192.0.2.9 refuses port 22")
        condition.receive(Samples.server(1, second.text, .degraded, at: 3))
        #expect(condition.isFulfilled(at: Samples.moment(3)))
    }

    @Test func `with --strict and --fail-on a degraded target is not up`() throws {
        let expiring = Cause(.tls, .certificateExpiring, detail: "the certificate expires in 3 days")
        let degraded = Samples.server(0, first.text, .degraded, cause: expiring, at: 1)
        var (strict, named, other) = (FailureRule(), FailureRule(), FailureRule())
        strict.isStrict = true
        try named.add("reset,tls/certificate-expiring")
        try other.add("quality/loss")
        for (rule, isFulfilled) in [(FailureRule(), true), (strict, false), (named, false), (other, true)] {
            var condition = WaitCondition(endpoints: [first], rule: rule)
            condition.receive(degraded)
            expectEqual(condition.isFulfilled(at: Samples.moment(1)), isFulfilled)
            if isFulfilled { continue }
            expectEqual(
                condition.reason, "192.0.2.9:22 is degraded, tls/certificate-expiring: the certificate expires in 3 days")
            condition.receive(Samples.server(0, first.text, at: 2))
            #expect(condition.isFulfilled(at: Samples.moment(2)))
        }
    }

    @Test func `a failed probe is the reason before the target's status is known`() {
        var condition = WaitCondition(endpoints: [first])
        condition.receive(Samples.path())
        condition.receive(Samples.server(0, first.text, .unknown, initial: true, at: 0))
        // No probe has finished yet, so only the path is known.
        expectEqual(
            condition.reason,
            "192.0.2.9:22 is unknown: no probe has ended; path unsatisfied, link/no-carrier: eth0 has no carrier")
        condition.receive(Samples.probe(failed: true))
        expectEqual(condition.reason, "192.0.2.9:22: tcp/refused: 192.0.2.9 refuses port 22")
        // A cause that no longer holds is not reported.
        condition.receive(Samples.probe(at: 2))
        condition.receive(Samples.path(Samples.satisfied, at: 2))
        expectEqual(condition.reason, "192.0.2.9:22 is unknown")
    }

    @Test(arguments: ["127.0.0.1:22", "[::1]:22", "localhost:22", "a.localhost:22", "198.18.0.77:22"])
    func `the path is not the reason for a target of this machine or on the link whose probe has not ended`(text: String) {
        var condition = WaitCondition(endpoints: [Samples.endpoint(text)])
        let eth0 = NetworkInterface(
            name: "eth0", index: 2, type: .wired, isVirtual: false, isExpensive: false, level: .routable,
            addresses: [IPPrefix(Samples.address("198.18.0.7"), length: 24)])
        let path = NetworkPath(
            status: .unsatisfied, supportsDNS: false, gateways: [], interfaces: [eth0],
            cause: Cause(.route, .noRoute, detail: "no default route"))
        condition.receive(Samples.path(path))
        condition.receive(Samples.server(0, text, .unknown, initial: true, at: 0))
        expectEqual(condition.reason, "\(Samples.endpoint(text).sentence) is unknown: no probe has ended")
        // Another target may need the path.
        var both = WaitCondition(endpoints: [Samples.endpoint(text), first])
        both.receive(Samples.path(path))
        #expect(both.reason.hasSuffix("path unsatisfied, route/no-route: no default route"))
    }

    @Test func `with --any one target is enough`() {
        var condition = WaitCondition(endpoints: [first, second], needsAll: false)
        condition.receive(Samples.path())
        #expect(!condition.isDone(at: Samples.moment(1)))
        condition.receive(Samples.server(1, second.text, at: 2))
        #expect(condition.isFulfilled(at: Samples.moment(2)))
    }

    @Test func `--stable restarts after each break`() {
        var condition = WaitCondition(endpoints: [first], stable: .seconds(5))
        condition.receive(Samples.server(at: 1))
        expectEqual(condition.deadline(at: Samples.moment(1)), Samples.moment(6))
        #expect(!condition.isDone(at: Samples.moment(5.9)))
        condition.receive(Samples.server(0, first.text, .down, cause: Samples.refused, at: 5.95))
        expectNil(condition.deadline(at: Samples.moment(6)))
        #expect(!condition.isDone(at: Samples.moment(7)))
        condition.receive(Samples.server(at: 8))
        condition.receive(Samples.server(at: 10))
        #expect(!condition.isDone(at: Samples.moment(12.9)))
        #expect(condition.isFulfilled(at: Samples.moment(13)))
    }

    @Test func `a suspended machine is a break of --stable`() {
        var condition = WaitCondition(endpoints: [first], stable: .seconds(5))
        condition.receive(Samples.server(at: 1))
        condition.receive(.gap(from: Samples.moment(2), to: Samples.moment(4)))
        expectEqual(condition.deadline(at: Samples.moment(4)), Samples.moment(9))
    }

    @Test func `--timeout ends wait without any event`() {
        var condition = WaitCondition(endpoints: [first], stable: .seconds(5), timeLimit: Samples.moment(3))
        expectEqual(condition.deadline(at: Samples.moment(0)), Samples.moment(3))
        condition.receive(Samples.server(at: 1))
        #expect(!condition.isDone(at: Samples.moment(2.9)))
        #expect(condition.isDone(at: Samples.moment(3)))
        #expect(!condition.isFulfilled(at: Samples.moment(3)))
        expectEqual(condition.reason, "it did not hold for 5.0s without a break")
    }

    @Test func `the reason counts targets beyond three`() {
        let endpoints = (1...5).map { Samples.endpoint("192.0.2.\($0):1") }
        let condition = WaitCondition(endpoints: endpoints)
        expectEqual(condition.reason, (1...3).map { "192.0.2.\($0):1 is unknown: no probe has ended; " }.joined() + "and 2 more")
    }
}

@Suite struct WaitProgressTests {
    let endpoint = Samples.endpoint("192.0.2.9:22")

    private func condition(stable: Duration = .zero) -> WaitCondition { WaitCondition(endpoints: [endpoint], stable: stable) }

    @Test func `a terminal shows after half a second what wait waits for and for how long`() {
        var condition = condition()
        condition.receive(Samples.server(0, endpoint.text, .down, cause: Samples.refused, at: 0))
        var progress = WaitProgress(.live(TextStyle()), start: Samples.moment(0), limit: .seconds(30))
        var turn = progress.text(condition, at: Samples.moment(0.1))
        #expect(turn.text.isEmpty && turn.next == Samples.moment(0.5))
        turn = progress.text(condition, at: Samples.moment(2.5))
        expectEqual(
            turn.text, "waiting for 2s of 30s: 192.0.2.9:22 is down, tcp/refused: 192.0.2.9 refuses\u{1b}[K\n  port 22\u{1b}[K\n")
        expectEqual(turn.next, Samples.moment(3))
        #expect(progress.text(condition, at: Samples.moment(63)).text.hasPrefix("\u{1b}[2A\rwaiting for 1m03s of 30s: "))
        // The line is removed at the end.
        condition.receive(Samples.server(0, endpoint.text, at: 64))
        expectEqual(progress.end(condition, at: Samples.moment(64)), "\u{1b}[2A\r\u{1b}[J")
    }

    @Test func `a pipe has a line for each other reason, and the time at the end`() {
        var condition = condition(stable: .seconds(5))
        var progress = WaitProgress(.lines, start: Samples.moment(0), limit: nil)
        expectEqual(
            progress.text(condition, at: Samples.moment(0)).text, "netwatch: wait: 192.0.2.9:22 is unknown: no probe has ended\n")
        condition.receive(Samples.server(0, endpoint.text, .down, cause: Samples.refused, at: 0.5))
        let line = "netwatch: wait: 192.0.2.9:22 is down, tcp/refused: 192.0.2.9 refuses port 22\n"
        let turn = progress.text(condition, at: Samples.moment(1))
        #expect(turn.text == line && turn.next == Samples.moment(2))
        expectEmpty(progress.text(condition, at: Samples.moment(2)).text)
        condition.receive(Samples.server(0, endpoint.text, at: 3))
        expectEqual(progress.text(condition, at: Samples.moment(4)).text, "netwatch: wait: 192.0.2.9:22 is up for 1.0s of 5.0s\n")
        expectEqual(progress.end(condition, at: Samples.moment(8)), "netwatch: wait: the condition holds after 8.0s\n")
    }
}

@Suite struct StatusCollectionTests {
    let endpoint = Samples.endpoint("192.0.2.9:22")

    private func collection(_ endpoints: [Endpoint]) -> StatusCollection {
        StatusCollection(endpoints: endpoints, start: Samples.moment(0), probeTimeout: .seconds(3))
    }

    @Test func `without targets status is done with the settled path`() {
        var collection = collection([])
        #expect(!collection.isDone(at: Samples.moment(1)))
        expectNil(collection.document(at: Samples.moment(1)))
        collection.receive(Samples.hello)
        #expect(collection.isDone(at: Samples.moment(1)))
        expectEqual(collection.document(at: Samples.moment(1))?.verdict, .holds)
    }

    @Test func `status waits for the canary, which is not among the targets`() {
        let url = "http://canary.example/"
        var collection = StatusCollection(
            endpoints: [endpoint], canary: Samples.endpoint(url), start: Samples.moment(0), probeTimeout: .seconds(3))
        collection.receive(Samples.hello)
        collection.receive(Samples.server(0, endpoint.text, .up, at: 1))
        #expect(!collection.isDone(at: Samples.moment(1)))
        expectEqual(collection.document(at: Samples.moment(1))?.canary?.statusName, .unknown)
        collection.receive(Samples.server(1, url, .down, cause: Samples.refused, at: 2))
        #expect(collection.isDone(at: Samples.moment(2)))
        let document = collection.document(at: Samples.moment(2))
        #expect(document?.targets.map(\.endpoint) == [endpoint] && document?.canary?.endpoint.text == url)
        #expect(document?.canary?.isInitial == true && document?.verdict == .doesNotHold)
    }

    @Test func `status waits until each target is known`() {
        var collection = collection([endpoint])
        collection.receive(Samples.hello)
        collection.receive(Samples.server(0, endpoint.text, .unknown, initial: true, at: 0))
        #expect(!collection.isDone(at: Samples.moment(1)))
        expectEqual(collection.deadline(at: Samples.moment(1)), Samples.moment(5))
        collection.receive(Samples.server(0, endpoint.text, .down, cause: Samples.refused, at: 1))
        #expect(collection.isDone(at: Samples.moment(1)))
        expectEqual(collection.document(at: Samples.moment(1))?.verdict, .doesNotHold)
        // The update was not the monitor's first, but the record is the first in the document.
        expectEqual(collection.document(at: Samples.moment(1))?.targets.map(\.isInitial), [true])
    }

    @Test func `status ends soon after an indecisive probe`() {
        var collection = collection([endpoint])
        collection.receive(Samples.hello)
        collection.receive(Samples.server(0, endpoint.text, .unknown, initial: true, at: 0))
        collection.receive(Samples.probe(at: 1))
        #expect(!collection.isDone(at: Samples.moment(1)))
        expectEqual(collection.deadline(at: Samples.moment(1)), Samples.moment(3))
        #expect(collection.isDone(at: Samples.moment(3)))
        expectEqual(collection.document(at: Samples.moment(3))?.verdict, .undetermined)
    }

    @Test func `status ends after the deadline without a probe result`() {
        var collection = collection([endpoint])
        expectEqual(collection.deadline(at: Samples.moment(0)), Samples.moment(30))
        collection.receive(Samples.hello)
        #expect(collection.isDone(at: Samples.moment(5)))
        expectEqual(collection.document(at: Samples.moment(5))?.targets.map(\.statusName), [.unknown])
    }
}
