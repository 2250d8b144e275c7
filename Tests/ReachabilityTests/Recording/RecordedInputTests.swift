import Expectations
import FoundationEssentials
import NetlinkBytes
import Pacing
import Testing

@testable import Reachability

@Suite struct RecordedInputTests {
    private static let settings = ProbeSettings(
        interval: .milliseconds(250), timeout: .seconds(7), failAfter: 3, recoverAfter: 2, families: [.v6], interface: "eth0",
        quality: QualityLimits(
            loss: nil, roundTrip: .milliseconds(200), responseTime: .seconds(2), jitter: .microseconds(1_500), window: 7),
        metered: MeteredLimits(intervalFactor: 3, bytesPerDay: 77), openAfter: .milliseconds(1_500), closeAfter: .seconds(60))

    private static let settingsOfEach = {
        var settings = ProbeSettings()
        settings.addresses = .each
        return settings
    }()

    static let inputs: [MonitorInput] = {
        var inputs: [MonitorInput] = [
            .began(seed: .max, isPolling: false), .began(seed: 0, isPolling: true), .datagram([0, 1, 0xff]), .datagram([]),
            .overrun,
            .dump(RawMessage.done(7).bytes), .dumpFailed(errno: 105), .routeReply(RouteQuery(Net.anywhere), []),
            .routeReply(RouteQuery(Net.anywhere6, interface: .max), [1, 2, 3]),
            .routeReply(
                RouteQuery(Net.anywhere, port: 1, selector: RouteSelector(source: Net.gateway, mark: .max), showsAll: true), [4]),
            .routeReply(RouteQuery(Net.anywhere6, selector: RouteSelector(mark: 7)), []),
            .hostReply(
                HostQuery(
                    Neighbor.Key(interface: 9, address: Net.gateway), isBound: false,
                    selector: RouteSelector(source: Net.gateway)), HostReply(.silent)),
            .lookup(LookupAnswer(id: 6, answeredBy: .dns, server: NameServerAddress(Net.gateway, port: 5353))),
            .routeReply(RouteQuery(Net.anywhere, port: .max), [4]), .routeReply(RouteQuery(Net.anywhere, showsAll: true), [4]),
            .neighborReply(Neighbor.Key(interface: 9, address: Net.gateway), [4]), .evidence(3, InterfaceEvidence()),
            .evidence(
                .max,
                InterfaceEvidence(
                    deviceType: "wlan", isWireless: true, driver: "iwl\"wifi", bus: "pci", sources: ["sysfs", "ethtool"])),
            .resolver(ResolverConfiguration()),
            .resolver(
                ResolverConfiguration(
                    nameservers: [.init(Net.gateway), .init(Net.linkLocal6, zone: "eth0")], search: ["lan", "b\u{fc}ro"],
                    exists: true)),
            .lookup(LookupAnswer(id: .max, addresses: [Net.gateway, Net.source6], elapsedNanoseconds: 12)),
            .lookup(LookupAnswer(id: 1, code: -11, errno: 5)),
            .lookup(
                LookupAnswer(
                    id: 3, addresses: [Net.gateway], elapsedNanoseconds: 9, answeredBy: .dns, server: .init(Net.gateway),
                    v4: FamilyLookup(
                        .addresses,
                        exchanges: [
                            NameServerExchange(.init(Net.linkLocal6, zone: "eth0"), .silent),
                            NameServerExchange(.init(Net.gateway), .answered, rcode: 0, isOverTCP: true),
                        ]),
                    v6: FamilyLookup(
                        .failed,
                        exchanges: [
                            NameServerExchange(
                                .init(Net.gateway), .failed, errno: 1, call: "send",
                                reporter: .init(origin: 2, type: 3, code: 3, offender: Net.gateway), scope: .port)
                        ]))),
            .resolver(ResolverConfiguration(exists: true, ndots: 5, usesTCP: true, isIPv4Only: true)),
            .probe(ProbeResult(id: 1 << 32, roundTripNanoseconds: 1_234_567, retransmissions: 2)),
            .probe(
                ProbeResult(
                    id: 2, errno: 111, call: "handshake",
                    reporter: .init(origin: 2, type: 3, code: 13, offender: IPAddress(v6: 0, 0xffff_0102_0304)))),
            .resumed(nanosecondsAsleep: 1 << 50), .namespaceGone, .pollDue, .targetRemoved(TargetID(4)),
            .targetReplaced(TargetID(4), by: TargetID(9)), .turnEnded,
            .probeLimit(720), .counters(7, LinkCounters(received: .max, sent: 0)), .counters(0, nil),
            .searchReply(
                Neighbor.Key(interface: 9, address: Net.gateway),
                HopSearchReply(.init(IPAddress(v4: 1), limit: 3, target: 7, roundTripNanoseconds: 5))),
            .searchReply(Neighbor.Key(interface: 0, address: IPAddress(v6: 0, 0)), HopSearchReply(wasSent: false)),
            .hostReply(HostQuery(Neighbor.Key(interface: 9, address: Net.gateway), isBound: true), HostReply(.silent)),
            .hostReply(
                HostQuery(Neighbor.Key(interface: 2, address: Net.source6), isBound: false),
                HostReply(
                    .reported, errno: 113, reporter: .init(origin: 3, type: 1, code: 3, offender: Net.linkLocal6))),
        ]
        if let endpoint = try? Endpoint("tcp://[fe80::1%eth0]:22") {
            inputs.append(.targetAdded(TargetID(5), endpoint, settings))
            inputs.append(.targetAdded(TargetID(5), endpoint, settingsOfEach))
        }
        if let endpoint = try? Endpoint("Example.com:80") {
            var scheduled = ProbeSettings()
            scheduled.isScheduledOnly = true
            scheduled.initialInterval = .milliseconds(250)
            inputs += [
                .targetAdded(TargetID(0), endpoint, ProbeSettings()), .targetAdded(TargetID(1), endpoint, scheduled),
            ]
            inputs.append(.targetAdded(TargetID(2), endpoint.with(.dialogue), ProbeSettings()))
            var sourced = ProbeSettings()
            (sourced.sourceAddress, sourced.mark) = (Net.source6, .max)
            sourced.resolver = NameServerAddress(Net.linkLocal6, port: 5353, zone: "eth0")
            inputs.append(.targetAdded(TargetID(3), endpoint, sourced))
            inputs.append(.passiveReport(PassiveReport(endpoint, .failure)))
            inputs.append(.heartbeat(TargetID(3), HeartbeatReport(.failed(code: 1), text: "full", time: 5)))
            inputs.append(.passiveReport(PassiveReport(endpoint, .success(address: nil, roundTrip: nil))))
            inputs.append(.passiveReport(PassiveReport(endpoint, .success(address: Net.source6, roundTrip: .microseconds(7)))))
        }
        return inputs
    }()

    private func line(_ input: RecordedInput) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(input)
    }

    @Test(arguments: inputs) func `every input is encoded on one line and decodes to itself`(input: MonitorInput) throws {
        let moment = Moment(monotonicNanoseconds: 81_234_567, wallClockNanoseconds: 1_763_700_000_123_456_789)
        let line = try line(RecordedInput(moment: moment, input: input))
        #expect(!line.contains(0x0a))
        try expectEqual(JSONDecoder().decode(RecordedInput.self, from: line), RecordedInput(moment: moment, input: input))
    }

    @Test func `a neighbor-reply is read under its old spelling and written under the new one`() throws {
        let line = { (kind: String) in
            Data(#"{"t":1,"w":2,"input":"\#(kind)","interface":9,"address":"192.0.2.1","bytes":"BA=="}"#.utf8)
        }
        let new = try JSONDecoder().decode(RecordedInput.self, from: line("neighbor-reply"))
        expectEqual(new.input, .neighborReply(Neighbor.Key(interface: 9, address: Net.gateway), [4]))
        try expectEqual(JSONDecoder().decode(RecordedInput.self, from: line("neighbour-reply")), new)
        #expect(String(decoding: try self.line(new), as: UTF8.self).contains(#""input":"neighbor-reply""#))
    }

    @Test func `a lookup and a resolver configuration of an earlier version are read`() throws {
        let lookup = #"{"id":5,"addresses":["192.0.2.1"],"code":0,"errno":0,"elapsedNanoseconds":7}"#
        let line = Data(#"{"t":1,"w":2,"input":"lookup","lookup":\#(lookup)}"#.utf8)
        let expected = LookupAnswer(id: 5, addresses: [IPAddress(v4: 0xc000_0201)], elapsedNanoseconds: 7)
        try expectEqual(JSONDecoder().decode(RecordedInput.self, from: line).input, .lookup(expected))
        let resolver = #"{"nameservers":[{"address":"192.0.2.1"}],"search":["lan"],"exists":true}"#
        let other = Data(#"{"t":1,"w":2,"input":"resolver","resolver":\#(resolver)}"#.utf8)
        let configuration = ResolverConfiguration(
            nameservers: [.init(IPAddress(v4: 0xc000_0201))], search: ["lan"], exists: true)
        try expectEqual(JSONDecoder().decode(RecordedInput.self, from: other).input, .resolver(configuration))
    }

    @Test func `a target of an earlier version has no limits of quality, and its failures are incidents at once`() throws {
        let settings = #"{"interval":1,"timeout":1,"failAfter":2,"recoverAfter":1,"families":[4]}"#
        let line = #"{"t":1,"w":2,"input":"target-added","target":0,"endpoint":"a:1","settings":\#(settings)}"#
        guard case .targetAdded(_, _, let read) = try JSONDecoder().decode(RecordedInput.self, from: Data(line.utf8)).input
        else {
            Issue.record("another input")
            return
        }
        expectEqual(read.quality, QualityLimits(loss: nil))
        expectEqual(read.metered, MeteredLimits(intervalFactor: 1, bytesPerDay: nil))
        #expect(read.openAfter == .zero && read.closeAfter == .zero)
    }

    @Test func `limits and levels of an earlier version are read without response times`() throws {
        let settings =
            #"{"interval":1,"timeout":1,"failAfter":2,"recoverAfter":1,"families":[4],"quality":{"rtt":5000000,"window":9}}"#
        let added = #"{"t":1,"w":2,"input":"target-added","target":0,"endpoint":"a:1","settings":\#(settings)}"#
        guard case .targetAdded(_, _, let read) = try JSONDecoder().decode(RecordedInput.self, from: Data(added.utf8)).input
        else {
            Issue.record("another input")
            return
        }
        expectEqual(read.quality, QualityLimits(loss: nil, roundTrip: .milliseconds(5), window: 9))
        let levels =
            #"{"isAtDeadline":false,"processingNanoseconds":7,"transferNanoseconds":2,"isAcknowledged":true,"hasGap":false,"#
            + #""hasSmallSegments":false,"bytesSent":1,"bytesReceived":2}"#
        let probe = #"{"t":1,"w":2,"input":"probe","probe":{"id":4,"errno":0,"roundTripNanoseconds":9,"levels":\#(levels)}}"#
        guard case .probe(let result) = try JSONDecoder().decode(RecordedInput.self, from: Data(probe.utf8)).input else {
            Issue.record("another input")
            return
        }
        #expect(result.levels?.exchange == .nanoseconds(9) && result.levels?.furtherConnection == nil)
    }

    @Test func `the layer of neighbors is spelled neighbor and not neighbour`() {
        expectEqual(Cause.Layer(rawValue: "neighbor"), .neighbor)
        #expect(!Cause.Layer.allCases.contains(Cause.Layer(rawValue: "neighbour")))
    }

    @Test func `the list of inputs has every kind of input`() {
        // A case that is missing in this switch does not compile.
        let kinds = Set(
            Self.inputs.map { input in
                switch input {
                case .began: 0
                case .datagram: 1
                case .overrun: 2
                case .dump: 3
                case .dumpFailed: 4
                case .routeReply: 5
                case .neighborReply: 6
                case .evidence: 7
                case .resolver: 8
                case .lookup: 9
                case .probe: 10
                case .resumed: 11
                case .namespaceGone: 12
                case .pollDue: 13
                case .targetAdded: 14
                case .targetRemoved: 15
                case .turnEnded: 16
                case .probeLimit: 17
                case .hostReply: 18
                case .counters: 19
                case .passiveReport: 20
                case .searchReply: 21
                case .targetReplaced: 22
                case .heartbeat: 23
                }
            })
        expectEqual(kinds, Set(0...23))
    }

    @Test func `a datagram of random bytes is encoded and decodes to itself`() throws {
        var generator = SplitMix64(seed: 5)
        for _ in 0..<200 {
            let bytes = (0..<Int.random(in: 0...300, using: &generator)).map { _ in UInt8.random(in: 0...255, using: &generator) }
            let input = RecordedInput(
                moment: Moment(monotonicNanoseconds: .random(in: 0..<1 << 60, using: &generator), wallClockNanoseconds: 0),
                input: .datagram(bytes))
            try expectEqual(JSONDecoder().decode(RecordedInput.self, from: line(input)), input)
        }
    }

    @Test func `the documentation's lines of a recording are decoded`() throws {
        let header =
            #"{"netwatch_recording":3,"program":"0.1.0","boot_id":"…","netns":null,"netns_inode":4026531840,"selection":"any","families":[4,6]}"#
        let decoded = try JSONDecoder().decode(RecordingHeader.self, from: Data(header.utf8))
        expectEqual(decoded.configuration, MonitorConfiguration())
        expectEqual(decoded.identity.namespaceInode, 4_026_531_840)
        let line = #"{"t":81234567,"w":1763700000123456789,"input":"turn-ended"}"#
        try expectEqual(JSONDecoder().decode(RecordedInput.self, from: Data(line.utf8)).input, .turnEnded)
        let end = #"{"netwatch_recording_end":3,"inputs":2}"#
        try expectEqual(JSONDecoder().decode(RecordingEnd.self, from: Data(end.utf8)), RecordingEnd(inputs: 2))
    }

    @Test(arguments: [
        MonitorConfiguration.Selection.any, .named("eth0"), .named("a:b"), .required(.wifi), .prohibited([.cellular, .wifi]),
        .prohibited([]),
    ])
    func `the recording's header has the monitor's configuration and identity`(selection: MonitorConfiguration.Selection) throws {
        let configuration = MonitorConfiguration(namespace: NetworkNamespace("blue"), selection: selection, families: [.v6])
        let identity = MonitorIdentity(bootID: "b", namespaceName: "blue", namespaceInode: 7)
        let header = RecordingHeader(program: "x", identity: identity, configuration: configuration)
        let decoded = try JSONDecoder().decode(RecordingHeader.self, from: JSONEncoder().encode(header))
        expectEqual(decoded, header)
        expectEqual(decoded.configuration, configuration)
        expectEqual(decoded.identity, identity)
    }
}
