import Certificates
import Expectations
import Foundation
import NetlinkBytes
import Testing

@testable import Reachability

/// Numbers that no kernel, server or clock produces, in a recording from anybody.
@Suite(.timeLimit(.minutes(10))) struct RecordedRangesTests {
    private static let header =
        #"{"netwatch_recording":3,"program":"p","boot_id":"b","netns":null,"netns_inode":1,"selection":"any","families":[4,6]}"#

    private static func line(_ input: RecordedInput) throws -> String {
        String(decoding: try JSONEncoder().encode(input), as: UTF8.self)
    }

    @Test(arguments: [
        (
            #""probe","probe":{"id":1,"errno":0,"roundTripNanoseconds":5,"retransmissions":-1}"#,
            "'retransmissions' is -1, outside of 0 to 1023"
        ),
        (
            #""probe","probe":{"id":1,"errno":0,"roundTripNanoseconds":-5}"#,
            "'roundTripNanoseconds' is -5, outside of 0 to 1152921504606846975"
        ),
        (
            #""probe","probe":{"id":1,"errno":-2147483648,"roundTripNanoseconds":5}"#,
            "'errno' is -2147483648, outside of 0 to 4095"
        ),
        (#""resumed","asleep":9223372036854775807"#, "'asleep' is 9223372036854775807, outside of 0 to 1152921504606846975"),
        (#""probe-limit","limit":-1"#, "'limit' is -1, outside of 0 to 2147483646"),
        (#""target-removed","target":-4"#, "'target' is -4, outside of 0 to 4294967295"),
    ])
    func `a number of a recording outside of its range is one line about it`(_ input: String, _ reason: String) throws {
        var lines = [Self.header, #"{"t":1,"w":2,"input":\#(input)}"#][...]
        var replay = try Replay { lines.popFirst() }
        let damage = #expect(throws: Replay.DamageError.self) { try replay.run { _ in } }
        expectEqual(damage, Replay.DamageError(line: 2, reason: "has a number out of range: \(reason)"))
    }

    /// The numbers of a line of JSON outside of its strings.
    private static func numbers(in line: String) -> [Range<Int>] {
        let bytes = Array(line.utf8)
        var (found, isText, index): ([Range<Int>], Bool, Int) = ([], false, 0)
        while index < bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: "\\") {
                index += 2
                continue
            }
            if byte == UInt8(ascii: "\"") { isText.toggle() }
            let start = index
            while !isText, index < bytes.count, "0123456789-.eE+".utf8.contains(bytes[index]),
                index > start || "0123456789-".utf8.contains(byte)
            {
                index += 1
            }
            if index > start { found.append(start..<index) } else { index += 1 }
        }
        return found
    }

    private static let hostile = [
        "-1", "0", "1", "\(Int64.max)", "\(Int64.min)", "\(UInt64.max)", "\((1 as Int64) << 60 - 1)", "\((1 as Int64) << 62)",
        "\(Int32.max)", "\(Int32.min)", "\(UInt32.max)", "1e308", "-0.5",
    ]

    /// Runs a machine, and answers its requests. - Returns: the machine before each input, and the input.
    private static func run() throws -> [(machine: MonitorMachine, input: RecordedInput)] {
        var script = Script()
        try script.run()
        return script.steps
    }

    @Test(.skippedByThreadSanitizer) func `no number of a recording ends the process`() throws {
        let steps = try Self.run()
        expectEqual(Set(steps.map { Self.kind($0.input.input) }).isSuperset(of: Script.kinds), true)
        var (refused, accepted) = (0, 0)
        for (place, step) in steps.enumerated() {
            let line = try Self.line(step.input)
            for number in Self.numbers(in: line) {
                for value in Self.hostile {
                    var bytes = Array(line.utf8)
                    bytes.replaceSubrange(number, with: Array(value.utf8))
                    guard let input = try? JSONDecoder().decode(RecordedInput.self, from: Data(bytes)) else {
                        refused += 1
                        continue
                    }
                    accepted += 1
                    var machine = step.machine
                    _ = machine.handle(input.input.event, at: input.moment)
                    for next in steps.dropFirst(place + 1).prefix(16) {
                        _ = machine.handle(next.input.input.event, at: next.input.moment)
                        _ = machine.deadline
                    }
                }
            }
        }
        #expect(refused > 500 && accepted > 500)
    }

    private static func kind(_ input: MonitorInput) -> String { String("\(input)".prefix { $0 != "(" }) }

    /// A machine whose requests are answered at once: two targets, one of them with TLS and HTTP, whose probes succeed and fail in turn.
    private struct Script {
        static let kinds: Set = [
            "began", "resolver", "targetAdded", "dump", "evidence", "routeReply", "probe", "lookup", "counters", "passiveReport",
            "resumed", "probeLimit", "turnEnded",
        ]
        private(set) var steps: [(machine: MonitorMachine, input: RecordedInput)] = []
        private var machine = MonitorMachine(MonitorConfiguration())
        private var time: Int64 = 1_000_000_000
        private var probes = 0
        private var pending: [MonitorInput] = []

        mutating func run() throws {
            var settings = ProbeSettings(interval: .milliseconds(500), timeout: .milliseconds(400))
            settings.quality = QualityLimits(
                loss: 0.1, roundTrip: .milliseconds(1), responseTime: .milliseconds(1), jitter: .milliseconds(1), window: 5)
            let endpoints = try [Endpoint("https://192.0.2.9/"), Endpoint("named.example:80")]
            take(.began(seed: 1, isPolling: false))
            take(.resolver(ResolverConfiguration(nameservers: [.init(Net.gateway)], exists: true)))
            take(.probeLimit(16))
            for (number, endpoint) in endpoints.enumerated() { take(.targetAdded(TargetID(number), endpoint, settings)) }
            endTurn()
            for round in 0..<40 {
                time = max(time + 20_000_000, min(machine.deadline ?? .max, time + 300_000_000))
                if round == 12 {
                    take(.passiveReport(PassiveReport(endpoints[0], .success(address: nil, roundTrip: .milliseconds(7)))))
                }
                if round == 14 { take(.counters(2, LinkCounters(received: 5, sent: 9))) }
                if round == 20 { take(.resumed(nanosecondsAsleep: 5_000_000_000)) }
                endTurn()
            }
        }

        private mutating func endTurn() {
            var count = 0
            repeat {
                while !pending.isEmpty, count < 500 {
                    count += 1
                    take(pending.removeFirst())
                }
                take(.turnEnded)
            } while !pending.isEmpty && count < 500
        }

        private mutating func take(_ input: MonitorInput) {
            let moment = Moment(monotonicNanoseconds: time, wallClockNanoseconds: 1_763_700_000_000_000_000 + time)
            steps.append((machine, RecordedInput(moment: moment, input: input)))
            for effect in machine.handle(input.event, at: moment) { answer(effect) }
        }

        private mutating func answer(_ effect: MonitorMachine.Effect) {
            switch effect {
            case .dump(let table, _, let sequence):
                let messages: [RawMessage] =
                    switch table {
                    case .links: [.link(Net.eth0, sequence: sequence)]
                    case .addresses: [.address(Net.address, sequence: sequence)]
                    case .routesV4: [.route(Net.defaultRoute, sequence: sequence)]
                    default: []
                    }
                pending.append(.dump((messages + [.done(sequence)]).bytes))
            case .askRoute(let query):
                let chosen = Route(
                    Route.Key(destination: IPPrefix(query.destination, length: 32)),
                    nextHops: [Route.NextHop(interface: 2, gateway: Net.gateway)], preferredSource: Net.source)
                let bytes =
                    query.destination.family == .v4
                    ? RawMessage.route(chosen, sequence: 1).bytes : RawMessage.error(2, errno: 101).bytes
                pending.append(.routeReply(query, bytes))
            case .askNeighbor(let key): pending.append(.neighborReply(key, []))
            case .askHost(let query): pending.append(.hostReply(query, HostReply(.silent)))
            case .search(let search):
                let answer = HopSearchReply.Answer(
                    IPAddress(v4: 0x0a00_0101), limit: 2, target: probes % 2, roundTripNanoseconds: 2_000_000)
                pending.append(.searchReply(search.hop, HopSearchReply(answer)))
                pending.append(.searchReply(search.hop, HopSearchReply()))
            case .readCounters(let interface): take(.counters(interface, LinkCounters(received: 7, sent: 7)))
            case .readEvidence(let link): pending.append(.evidence(link.index, InterfaceEvidence()))
            case .resolve(let request):
                let server = ResolverConfiguration.Nameserver(Net.gateway)
                var lookup = LookupAnswer(
                    id: request.id, addresses: [IPAddress(v4: 0xc000_0208)], elapsedNanoseconds: 900_000, answeredBy: .dns,
                    server: server, v4: FamilyLookup(.addresses, exchanges: [NameServerExchange(server, .answered, rcode: 0)]))
                lookup.queuedNanoseconds = 5
                pending.append(.lookup(lookup))
            case .connect(let attempt): probe(attempt)
            case .cancel, .cancelLookup, .emit, .changed: break
            }
        }

        private mutating func probe(_ attempt: ProbeAttempt) {
            probes += 1
            guard probes % 5 != 0 else {
                let reporter = ProbeResult.Reporter(origin: 2, type: 3, code: 1, offender: Net.gateway)
                pending.append(.probe(ProbeResult(id: attempt.id, errno: 113, call: "handshake", reporter: reporter)))
                return
            }
            var result = ProbeResult(id: attempt.id, roundTripNanoseconds: 2_000_000, retransmissions: probes % 3)
            pending.append(.probe(result))
            guard attempt.plan != nil else { return }
            var levels = LevelResult()
            var facts = TLSHandshakeFacts(serverName: "a")
            (facts.bytesReceived, facts.isComplete, facts.chainLength, facts.chainNotAfter) = (4_000, true, 2, 1_764_500_000)
            facts.certificate = TLSCertificateFacts(
                subject: "a", issuer: "b", isSelfIssued: false, names: ["a"], nameCount: 1, notBefore: 1_763_000_000,
                notAfter: 1_764_500_000, sha256: "00", serialNumber: "1")
            facts.nameMatches = true
            (levels.tls, levels.handshakeEnd) = (facts, .completed)
            levels.http = HTTPProbeFacts(
                response: HTTPResponseFacts(
                    status: probes % 7 == 0 ? 503 : 200, version: "1.1", receivedBytes: 300, bodyBytes: 200), mismatch: nil)
            levels.httpEnding = probes % 4 == 0 ? .systemError(104) : .exchange
            (levels.handshakeNanoseconds, levels.processingNanoseconds, levels.transferNanoseconds) = (3, 4, 5)
            (levels.tunnelNanoseconds, levels.furtherConnectNanoseconds) = (6, 7)
            (levels.bytesSent, levels.bytesReceived) = (500, 4_300)
            result.levels = levels
            pending.append(.probe(result))
        }
    }
}
