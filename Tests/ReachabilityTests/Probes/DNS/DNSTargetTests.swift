import Expectations
import Foundation
import Testing

@testable import Reachability

/// The conversations and the machine of targets of DNS.
@Suite struct DNSTargetTests {
    private static let server = "192.0.2.1"
    private static let gateway = Neighbor.Key(interface: 2, address: IPAddress(v4: 0x0a00_0001))

    /// A target whose first question is sent.
    private func target(
        _ text: String = "dns://192.0.2.1/example.com", _ settings: ProbeSettings = Transcript.unscheduled()
    ) throws -> Transcript {
        var target = try Transcript(text, settings)
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .route(to: Self.server)), ["connect 1 192.0.2.1"])
        return target
    }

    private func attempt(_ target: Transcript) throws -> ProbeAttempt {
        try #require(target.effects.compactMap { if case .connect(let attempt) = $0 { attempt } else { nil } }.last)
    }

    /// Plays datagrams to the conversation of the last attempt, a millisecond after the question. - Returns: the result; `nil` if it waits on.
    private func played(_ target: Transcript, _ datagrams: ([UInt8]) -> [[UInt8]]) throws -> TargetMachine.Event? {
        let attempt = try attempt(target)
        guard case .datagrams(let plan)? = attempt.plan?.plan.transport else {
            Issue.record("no datagrams")
            return nil
        }
        let run = plan.makeRun(number: 0xabcd_ef01_2345_6789)
        run.begin(5_000_000)
        let question = try #require(run.takeOutput().first)
        expectEqual(Array(question.prefix(2)), [0x67, 0x89])
        #expect(run.takeOutput().isEmpty && run.due == .max)
        for datagram in datagrams(question) { datagram.withUnsafeBytes { run.receive($0, now: 6_000_000) } }
        guard run.hasEnded else { return nil }
        var result = ProbeResult(id: attempt.id, roundTripNanoseconds: run.result.answerNanoseconds ?? 0)
        result.levels = run.result
        return .probe(result)
    }

    /// Plays bytes to the conversation on the connection of an attempt. - Returns: the result.
    private func playedOnConnection(
        _ attempt: ProbeAttempt, _ pieces: ([UInt8]) -> [[UInt8]], end: (any StreamRun) -> Void = { _ in }
    ) throws -> LevelResult {
        let plan = try #require(attempt.plan?.stream)
        let run = plan.makeRun(deadline: 3_000_000_000)
        run.connected(1_000_000)
        let question = run.takeOutput()
        expectEqual(Int(question[0]) << 8 | Int(question[1]), question.count - 2)
        for piece in pieces(Array(question.dropFirst(2))) {
            expectEqual(run.hasEnded, false)
            piece.withUnsafeBytes { run.receive($0, now: 3_000_000) }
        }
        end(run)
        expectEqual(run.hasEnded, true)
        return run.result
    }

    private static func framed(_ message: [UInt8]) -> [UInt8] { DNSBytes.bytes(UInt16(clamping: message.count)) + message }
    private static let address = DNSBytes.record(1, [198, 51, 100, 7])

    @Test func `an answer is up, its round trip is the response, and forged datagrams before it are ignored`() throws {
        var target = try target()
        let event = try #require(
            try played(target) { question -> [[UInt8]] in
                let good = DNSBytes.answer(to: question, [Self.address])
                var (otherNumber, otherName) = (good, good)
                otherNumber[0] ^= 0xff
                otherName[13] = UInt8(ascii: "f")
                return [[], [0xfe], otherNumber, otherName, question, good, good]
            })
        expectEqual(target.at(7, event), ["report ok", "up 192.0.2.1 eth0"])
        let report = try #require(target.effects.compactMap { if case .report(let report) = $0 { report } else { nil } }.last)
        #expect(report.roundTrip == .milliseconds(1) && report.responseTime == .milliseconds(1))
        let step = target.machine.endpoint.scheme.kind.step(.dns, of: target.machine.endpoint, report, degradation: nil)
        expectEqual(
            step.detail,
            "the question for A of example.com is answered with NOERROR and 1 record: example.com. 60 IN A 198.51.100.7")
        #expect(step.finding == .works && step.duration == .milliseconds(1) && step.evidence["ttl"] == .number(60))
        let levels = try #require(report.levels)
        expectEqual(try JSONDecoder().decode(LevelResult.self, from: JSONEncoder().encode(levels)), levels)
    }

    @Test func `datagrams that are no answer leave the probe waiting`() throws {
        let target = try target()
        expectNil(try played(target) { [$0, Array(DNSBytes.answer(to: $0).dropLast(6)), [UInt8](repeating: 0xfe, count: 60)] })
    }

    @Test(
        arguments: [
            (3, [], "dns/unexpected-rcode", "this answers the question for A of example.com with NXDOMAIN, not NOERROR"),
            (
                0, ["198.51.100.9"], "dns/unexpected-answer",
                "this answers the question for A of example.com with no record in its answer section that matches 198.51.100.9"
            ),
            (
                0, ["!198"], "dns/unexpected-answer",
                "this answers the question for A of example.com with a record in its answer section that matches 198"
            ),
        ] as [(UInt16, [String], String, String)])
    func `an answer that is not expected is the server's fault`(code: UInt16, rules: [String], cause: String, detail: String)
        throws
    {
        var settings = Transcript.unscheduled()
        for rule in rules { try settings.dns.expect(rule, in: .answer) }
        var target = try target("dns://192.0.2.1/example.com", settings)
        let end = UInt32(86_400 * 3)
        let event = try #require(
            try played(target) {
                [DNSBytes.answer(to: $0, code: code, [Self.address, DNSBytes.signature(until: end)], authority: [DNSBytes.soa])]
            })
        expectEqual(target.at(7, event), ["report \(cause)"])
        let found = try #require(target.cause)
        expectEqual(found.detail, detail.replacing("this", with: Self.server))
        #expect(found.evidence["serial"] == .number(77) && found.evidence["rrsig_days_left"] == .number(2))
        #expect(
            found.evidence["flags"] == .list(["RD", "RA"]) && found.evidence["rcode"] == .text(code == 3 ? "NXDOMAIN" : "NOERROR")
        )
        #expect(found.isAnswer && !found.isOfLookup && !found.isSilence)
    }

    @Test func `records that are cut are no expected answer`() throws {
        var target = try target()
        let event = try #require(try played(target) { [Array(DNSBytes.answer(to: $0, [Self.address]).dropLast(1))] })
        expectEqual(target.at(7, event), ["report dns/unexpected-answer"])
        expectEqual(target.cause?.detail.hasSuffix("cannot be read: a record of its answer section is cut or damaged"), true)
    }

    @Test func `a silent server whose host is alive is down, and a closed port too`() throws {
        var target = try target()
        target.targetState = HopBook.State(isAlive: true, reply: HostReply(.answered), hasAnswered: true)
        _ = target.at(3000, .tick)
        expectEqual(target.at(3000, .neighbor(Self.gateway, .state(.reachable))), ["report dns/no-answer"])
        expectEqual(target.cause?.detail, "192.0.2.1 does not answer on port 53, although the host is alive")
        _ = target.at(7000, .tick)
        _ = target.at(7000, .route(to: Self.server))
        let lines = target.at(7001, .failed(2, .connectionRefused, call: "answer", icmp: (3, 3), from: Self.server))
        expectEqual(lines, ["report dns/resolver-refused", "down dns/resolver-refused 192.0.2.1 eth0"])
        #expect(target.cause?.isAnswer == true && target.cause?.isOfLookup == false)
    }

    @Test func `a closed port of this machine itself is no packet filter`() throws {
        var target = try Transcript("dns://127.0.0.1/example.com", Transcript.unscheduled())
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: "127.0.0.1", over: 1, gateway: nil, kind: .local, source: "127.0.0.1"))
        let lines = target.at(1, .failed(1, .connectionRefused, call: "answer", icmp: (3, 3), from: "127.0.0.1"))
        expectEqual(lines.first, "report dns/resolver-refused")
        expectEqual(target.cause?.detail, "this machine (127.0.0.1) has no server on port 53")
    }

    @Test func `silence without a witness accuses the way`() throws {
        var target = try target()
        target.beyond = WitnessBook.State(witness: nil)
        target.targetState = HopBook.State(isAlive: false, reply: nil, hasAnswered: false)
        _ = target.at(3000, .tick)
        expectEqual(target.at(3000, .neighbor(Self.gateway, .state(.reachable))), ["report network/upstream-silent"])
    }

    @Test func `a truncated answer is requested again by TCP, and the response time is the sum`() throws {
        var target = try target()
        let event = try #require(try played(target) { [DNSBytes.answer(to: $0, flags: 0x8380)] })
        expectEqual(target.at(7, event), ["route? 192.0.2.1"])
        expectEqual(target.at(8, .route(to: Self.server)), ["connect 2 192.0.2.1"])
        let attempt = try attempt(target)
        #expect(attempt.port == 53 && attempt.plan?.plan.scheme == .dnsOverTCP)
        let levels = try playedOnConnection(attempt) { question -> [[UInt8]] in
            let answer = Self.framed(DNSBytes.answer(to: question, [Self.address]))
            return [[answer[0]], Array(answer[1..<20]), Array(answer[20...])]
        }
        #expect(levels.processingNanoseconds == 2_000_000 && levels.transferNanoseconds == 0)
        _ = target.at(9, .probe(ProbeResult(id: 2, roundTripNanoseconds: 500_000)))
        var result = ProbeResult(id: 2, roundTripNanoseconds: 500_000)
        result.levels = levels
        expectEqual(target.at(11, .probe(result)), ["report ok", "up 192.0.2.1 eth0"])
        let report = try #require(target.effects.compactMap { if case .report(let report) = $0 { report } else { nil } }.last)
        #expect(report.levels?.facts[DNSFacts.self].answer?.answers.count == 1 && report.roundTrip == .milliseconds(1))
        expectEqual(report.responseTime, .milliseconds(4))
    }

    @Test func `a truncated error is not requested again`() throws {
        var target = try target()
        let event = try #require(try played(target) { [DNSBytes.answer(to: $0, code: 2, flags: 0x8380)] })
        expectEqual(target.at(7, event), ["report dns/unexpected-rcode"])
    }

    @Test(
        arguments: [
            (0, "dns/no-answer", "192.0.2.1 closes the connection instead of answering the question for A of example.com"),
            (1, "dns/no-answer", "192.0.2.1 accepts the connection and does not answer the question for A of example.com"),
            (
                2, "dns/unexpected-answer",
                "192.0.2.1 sends what is no answer to the question for A of example.com: it answers another question"
            ),
            (
                3, "dns/unexpected-answer",
                "192.0.2.1 sends what is no answer to the question for A of example.com: its first bytes are \"ok\""
            ),
            (4, "tcp/reset", "192.0.2.1 reset the connection to port 53"),
            (5, "dns/no-answer", "192.0.2.1 does not finish its answer in time"),
        ] as [(Int, String, String)])
    func `a connection without a good answer is the server's fault`(ending: Int, cause: String, detail: String) throws {
        var target = try target("dns+tcp://192.0.2.1/example.com")
        let attempt = try attempt(target)
        _ = target.at(1, .probe(ProbeResult(id: 1, roundTripNanoseconds: 500_000)))
        let progress = ConnectionProgress()
        let levels = try playedOnConnection(attempt) { question -> [[UInt8]] in
            switch ending {
            case 2:
                var answer = DNSBytes.answer(to: question)
                answer[0] ^= 1
                return [Self.framed(answer)]
            case 3: return [Self.framed(Array("ok".utf8))]
            case 5: return [[0, 99, 1]]
            default: return []
            }
        } end: { run in
            switch ending {
            case 0: run.inputEnded(4_000_000)
            case 1, 5: run.deadlineReached(progress)
            case 4: run.connectionFailed(SystemErrorNumber.connectionReset.rawValue)
            default: break
            }
        }
        var result = ProbeResult(id: 1, roundTripNanoseconds: 500_000)
        result.levels = levels
        expectEqual(target.at(5, .probe(result)).first, "report \(cause)")
        expectEqual(target.cause?.detail, detail)
        expectEqual(try JSONDecoder().decode(LevelResult.self, from: JSONEncoder().encode(levels)), levels)
    }

    @Test func `DNS over TLS begins with a handshake for the server's name, and a port without TLS is the layer tls`() throws {
        var settings = Transcript.unscheduled()
        settings.tls.serverName = "dns.example"
        settings.tls.isInsecure = true
        var target = try target("dns+tls://192.0.2.1/example.com", settings)
        let plan = try #require(attempt(target).plan?.plan as? DNSStreamPlan)
        #expect(plan.tls?.serverName == "dns.example" && plan.tls?.applicationProtocols == ["dot"])
        _ = target.at(1, .probe(ProbeResult(id: 1, roundTripNanoseconds: 500_000)))
        let run = plan.makeRun(deadline: 3_000_000_000)
        run.connected(1_000_000)
        expectEqual(run.takeOutput().first, 22)
        Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8).withUnsafeBytes { run.receive($0, now: 2_000_000) }
        expectEqual(run.hasEnded, true)
        var result = ProbeResult(id: 1, roundTripNanoseconds: 500_000)
        result.levels = run.result
        expectEqual(target.at(5, .probe(result)).first, "report tls/protocol-mismatch")
    }

    @Test func `the layer dns of a target is its answer, and the last one`() {
        let layers: [Cause.Layer] = [.link, .address, .route, .neighbor, .firewall, .network, .tcp]
        expectEqual(Endpoint.Scheme.dns.kind.layers, layers + [.dns])
        expectEqual(Endpoint.Scheme.dnsOverTLS.kind.layers, layers + [.tls, .dns])
        #expect(Endpoint.Scheme.dns.kind.owns(.dns) && Endpoint.Scheme.dns.kind.owns(.tcp))
        #expect(!Endpoint.Scheme.dnsOverTCP.kind.owns(.tcp) && !Endpoint.Scheme.https.kind.owns(.dns))
    }
}
