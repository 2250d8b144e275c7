import FoundationEssentials
import Glibc
import NetlinkBytes
import NetworkLab
import Pacing
import Testing

@testable import Reachability

@Suite struct RecordedInputTests {
    private static let settings = ProbeSettings(
        interval: .milliseconds(250), timeout: .seconds(7), failAfter: 3, recoverAfter: 2, families: [.v6], interface: "eth0")

    static let inputs: [MonitorInput] = {
        var inputs: [MonitorInput] = [
            .began(seed: .max, isPolling: false), .began(seed: 0, isPolling: true), .datagram([0, 1, 0xff]), .datagram([]),
            .overrun,
            .dump(RawMessage.done(7).bytes), .dumpFailed(errno: 105), .routeReply(RouteQuery(Net.anywhere), []),
            .routeReply(RouteQuery(Net.anywhere6, interface: .max), [1, 2, 3]),
            .routeReply(RouteQuery(Net.anywhere, port: .max), [4]), .routeReply(RouteQuery(Net.anywhere, showsAll: true), [4]),
            .neighbourReply(Neighbour.Key(interface: 9, address: Net.gateway), [4]), .evidence(3, InterfaceEvidence()),
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
            .probe(ProbeResult(id: 1 << 32, roundTripNanoseconds: 1_234_567)),
            .probe(
                ProbeResult(
                    id: 2, errno: 111, call: "handshake",
                    reporter: .init(origin: 2, type: 3, code: 13, offender: IPAddress(v6: 0, 0xffff_0102_0304)))),
            .resumed(nanosecondsAsleep: 1 << 50), .namespaceGone, .pollDue, .targetRemoved(TargetID(4)), .turnEnded,
        ]
        if let endpoint = try? Endpoint("tcp://[fe80::1%eth0]:22") {
            inputs.append(.targetAdded(TargetID(5), endpoint, settings))
        }
        if let endpoint = try? Endpoint("Example.com:80") { inputs.append(.targetAdded(TargetID(0), endpoint, ProbeSettings())) }
        return inputs
    }()

    private func line(_ input: RecordedInput) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(input)
    }

    @Test(arguments: inputs) func `every input comes back as it was, on one line`(input: MonitorInput) throws {
        let moment = Moment(monotonicNanoseconds: 81_234_567, wallClockNanoseconds: 1_763_700_000_123_456_789)
        let line = try line(RecordedInput(moment: moment, input: input))
        #expect(!line.contains(0x0a))
        #expect(try JSONDecoder().decode(RecordedInput.self, from: line) == RecordedInput(moment: moment, input: input))
    }

    @Test func `a neighbor-reply is read under its old spelling and written under the new one`() throws {
        let line = { (kind: String) in
            Data(#"{"t":1,"w":2,"input":"\#(kind)","interface":9,"address":"192.0.2.1","bytes":"BA=="}"#.utf8)
        }
        let new = try JSONDecoder().decode(RecordedInput.self, from: line("neighbor-reply"))
        #expect(new.input == .neighbourReply(Neighbour.Key(interface: 9, address: Net.gateway), [4]))
        #expect(try JSONDecoder().decode(RecordedInput.self, from: line("neighbour-reply")) == new)
        #expect(String(decoding: try self.line(new), as: UTF8.self).contains(#""input":"neighbor-reply""#))
    }

    @Test func `the contract's layers are spelled neighbor and not neighbour`() {
        #expect(Cause.Layer(rawValue: "neighbor") == .neighbor)
        #expect(Cause.Layer(rawValue: "neighbour") == nil)
    }

    @Test func `every kind of input is among them`() {
        // A case that is added without a place in this list does not compile here.
        let kinds = Set(
            Self.inputs.map { input in
                switch input {
                case .began: 0
                case .datagram: 1
                case .overrun: 2
                case .dump: 3
                case .dumpFailed: 4
                case .routeReply: 5
                case .neighbourReply: 6
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
                }
            })
        #expect(kinds == Set(0...16))
    }

    @Test func `random bytes come back`() throws {
        var generator = SplitMix64(seed: 5)
        for _ in 0..<200 {
            let bytes = (0..<Int.random(in: 0...300, using: &generator)).map { _ in UInt8.random(in: 0...255, using: &generator) }
            let input = RecordedInput(
                moment: Moment(monotonicNanoseconds: .random(in: 0..<1 << 62, using: &generator), wallClockNanoseconds: 0),
                input: .datagram(bytes))
            #expect(try JSONDecoder().decode(RecordedInput.self, from: line(input)) == input)
        }
    }

    @Test func `the lines of the documentation are lines`() throws {
        let header =
            #"{"netwatch_recording":2,"program":"0.1.0","boot_id":"…","netns":null,"netns_inode":4026531840,"selection":"any","families":[4,6]}"#
        let decoded = try JSONDecoder().decode(RecordingHeader.self, from: Data(header.utf8))
        #expect(decoded.configuration == MonitorConfiguration())
        #expect(decoded.identity.namespaceInode == 4_026_531_840)
        let line = #"{"t":81234567,"w":1763700000123456789,"input":"turn-ended"}"#
        #expect(try JSONDecoder().decode(RecordedInput.self, from: Data(line.utf8)).input == .turnEnded)
        let end = #"{"netwatch_recording_end":2,"inputs":2}"#
        #expect(try JSONDecoder().decode(RecordingEnd.self, from: Data(end.utf8)) == RecordingEnd(inputs: 2))
    }

    @Test(arguments: [
        MonitorConfiguration.Selection.any, .named("eth0"), .named("a:b"), .required(.wifi), .prohibited([.cellular, .wifi]),
        .prohibited([]),
    ])
    func `the header says how it was watched`(selection: MonitorConfiguration.Selection) throws {
        let configuration = MonitorConfiguration(namespace: NetworkNamespace("blue"), selection: selection, families: [.v6])
        let identity = MonitorIdentity(bootID: "b", namespaceName: "blue", namespaceInode: 7)
        let header = RecordingHeader(program: "x", identity: identity, configuration: configuration)
        let decoded = try JSONDecoder().decode(RecordingHeader.self, from: JSONEncoder().encode(header))
        #expect(decoded == header)
        #expect(decoded.configuration == configuration)
        #expect(decoded.identity == identity)
    }
}

@Suite struct RecordingWriterTests {
    private static let header = RecordingHeader(
        program: "x", identity: MonitorIdentity(bootID: "b", namespaceName: nil, namespaceInode: 7),
        configuration: MonitorConfiguration())

    @Test func `a pipe that nobody reads is refused, not waited for`() throws {
        let directory = try TemporaryDirectory()
        #expect(mkfifo(directory.at("pipe"), 0o600) == 0)
        #expect(throws: MonitorError.recording(path: directory.at("pipe"), errno: ENXIO)) {
            try RecordingWriter(path: directory.at("pipe"), header: Self.header)
        }
    }

    @Test func `a recording empties its own file, and leaves a file with a second hard link or of another user as it is`() throws
    {
        let directory = try TemporaryDirectory()
        try directory.write("older and longer than a header can be: \(String(repeating: "x", count: 1_000))", to: "own")
        let writer = try RecordingWriter(path: directory.at("own"), header: Self.header)
        #expect(writer.finish() == nil)
        #expect(try String(contentsOfFile: directory.at("own"), encoding: .utf8).contains("older") == false)
        try directory.write("older", to: "linked")
        #expect(Glibc.link(directory.at("linked"), directory.at("other")) == 0)
        #expect(throws: MonitorError.recording(path: directory.at("other"), errno: EMLINK)) {
            try RecordingWriter(path: directory.at("other"), header: Self.header)
        }
        #expect(try String(contentsOfFile: directory.at("linked"), encoding: .utf8) == "older")
        try directory.link("symlink", to: directory.at("own"))
        #expect(throws: MonitorError.recording(path: directory.at("symlink"), errno: ELOOP)) {
            try RecordingWriter(path: directory.at("symlink"), header: Self.header)
        }
        // Only root can make a file of another user.
        guard geteuid() == 0 else { return }
        try directory.write("older", to: "foreign")
        guard chown(directory.at("foreign"), 65_534, 65_534) == 0 else { return }
        #expect(throws: MonitorError.recording(path: directory.at("foreign"), errno: EPERM)) {
            try RecordingWriter(path: directory.at("foreign"), header: Self.header)
        }
        #expect(try String(contentsOfFile: directory.at("foreign"), encoding: .utf8) == "older")
    }

    @Test func `what waits for a reader that does not read is bounded by its bytes`() throws {
        let directory = try TemporaryDirectory()
        #expect(mkfifo(directory.at("pipe"), 0o600) == 0)
        let reader = open(directory.at("pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        let writer = try RecordingWriter(path: directory.at("pipe"), header: Self.header, limit: 1 << 20)
        let moment = Moment(monotonicNanoseconds: 1, wallClockNanoseconds: 1)
        let input = RecordedInput(moment: moment, input: .datagram([UInt8](repeating: 0, count: 1 << 16)))
        // What the writer has taken, and cannot write, is twice the limit at most: it takes what waits at once.
        let failure = (0..<48).lazy.compactMap { _ in writer.append(input) }.first
        #expect(failure == ENOBUFS)
        close(reader)
        _ = writer.finish()
    }

    @Test func `a reader that does not read holds neither the beginning nor the end up`() throws {
        let directory = try TemporaryDirectory()
        #expect(mkfifo(directory.at("pipe"), 0o600) == 0)
        let reader = open(directory.at("pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        defer { close(reader) }
        let writer = try RecordingWriter(path: directory.at("pipe"), header: Self.header, patience: 50)
        let moment = Moment(monotonicNanoseconds: 1, wallClockNanoseconds: 1)
        // Twice what a pipe holds.
        #expect(writer.append(RecordedInput(moment: moment, input: .datagram([UInt8](repeating: 0, count: 1 << 17)))) == nil)
        #expect(writer.finish() == ENOBUFS)
        #expect(throws: MonitorError.recording(path: directory.at("pipe"), errno: ENOBUFS)) {
            try RecordingWriter(path: directory.at("pipe"), header: Self.header, patience: 50)
        }
    }
}

@Suite struct ReplayTests {
    private static let header =
        #"{"netwatch_recording":2,"program":"p","boot_id":"b","netns":null,"netns_inode":1,"selection":"any","families":[4,6]}"#

    private func line(_ input: MonitorInput, at time: Int64 = 1_000_000_000) -> String {
        let moment = Moment(monotonicNanoseconds: time, wallClockNanoseconds: 1_700_000_000_000_000_000 + time)
        let data = try? JSONEncoder().encode(RecordedInput(moment: moment, input: input))
        return data.map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// What a recording of these lines, its header and its inputs, ends with.
    private func end(of lines: [String]) -> String { #"{"netwatch_recording_end":2,"inputs":\#(lines.count - 1)}"# }

    /// A machine that settles with one interface, and then loses its carrier.
    private func recording() -> [String] {
        var lines = [
            Self.header, line(.began(seed: 1, isPolling: false)), line(.resolver(ResolverConfiguration())), line(.turnEnded),
        ]
        for (index, table) in KernelTable.allCases.enumerated() {
            let sequence = UInt32(index + 1)
            var messages: [RawMessage] = []
            switch table {
            case .links: messages = [.link(Net.eth0, sequence: sequence)]
            case .addresses: messages = [.address(Net.address, sequence: sequence)]
            case .routesV4: messages = [.route(Net.defaultRoute, sequence: sequence)]
            default: break
            }
            lines.append(line(.dump((messages + [.done(sequence)]).bytes)))
            lines.append(line(.turnEnded))
            if table == .links {
                lines += [line(.evidence(2, InterfaceEvidence())), line(.turnEnded)]
            }
        }
        let chosen = Route(
            Route.Key(destination: IPPrefix(Net.anywhere, length: 32)),
            nextHops: [Route.NextHop(interface: 2, gateway: Net.gateway)],
            preferredSource: Net.source)
        let replies = [
            line(.routeReply(RouteQuery(Net.anywhere), RawMessage.route(chosen, sequence: 1).bytes)),
            line(.routeReply(RouteQuery(Net.anywhere6), RawMessage.error(2, errno: 101).bytes)), line(.turnEnded),
        ]
        lines += replies
        lines += [line(.datagram(RawMessage.link(Net.eth0.unplugged).bytes)), line(.turnEnded)] + replies
        return lines + [end(of: lines)]
    }

    /// What a file says, and the damage that ended it.
    private func replay(_ lines: [String]) throws -> (events: [MonitorEvent], damage: Replay.DamageError?) {
        var rest = lines[...]
        var events: [MonitorEvent] = []
        do {
            var replay = try Replay { rest.popFirst() }
            try replay.run { events.append($0) }
        } catch let damage as Replay.DamageError { return (events, damage) }
        return (events, nil)
    }

    private func statuses(_ events: [MonitorEvent]) -> [NetworkPath.Status] {
        events.compactMap { event in
            if case .path(let update) = event { update.path.status } else { nil }
        }
    }

    @Test func `a recording says what was said`() throws {
        let (events, damage) = try replay(recording())
        #expect(damage == nil)
        #expect(statuses(events) == [.satisfied, .unsatisfied])
        #expect(try replay(recording()).events == events)
    }

    @Test func `cut off anywhere: the line is named, what came before is kept`() throws {
        let lines = recording()
        let whole = try replay(lines).events
        for number in 1..<lines.count {
            let cut = lines.prefix(number) + [String(lines[number].dropLast(3))]
            let (events, damage) = try replay(Array(cut))
            #expect(damage == Replay.DamageError(line: number + 1, why: "is cut off"))
            #expect(events == Array(whole.prefix(events.count)))
            let (complete, missing) = try replay(Array(lines.prefix(number)))
            #expect(missing == Replay.DamageError(line: number + 1, why: "is missing: the recording ends early"))
            #expect(complete == events)
        }
    }

    @Test func `a line that was lost on the way, and what stands after the end, are damage`() throws {
        let lines = recording()
        var short = lines
        short.remove(at: lines.count - 2)
        let (count, number) = (lines.count - 2, lines.count - 1)
        #expect(
            try replay(short).damage
                == Replay.DamageError(line: number, why: "counts \(count) inputs where there are \(count - 1)"))
        for text in ["", "garbage", line(.turnEnded), lines[lines.count - 1]] {
            let (events, damage) = try replay(lines + [text])
            #expect(damage == Replay.DamageError(line: lines.count + 1, why: "stands after the end of the recording"))
            #expect(events == (try replay(lines).events))
        }
        let future = #"{"netwatch_recording_end":3,"inputs":\#(count)}"#
        #expect(
            try replay(lines.dropLast() + [future]).damage
                == Replay.DamageError(line: lines.count, why: "ends a recording of format 3"))
    }

    @Test func `a recording without any turn is whole with its end`() throws {
        #expect(try replay([Self.header, end(of: [Self.header])]).damage == nil)
        #expect(try replay([Self.header]).damage == Replay.DamageError(line: 2, why: "is missing: the recording ends early"))
    }

    @Test(arguments: [
        ("garbage", "is damaged: it is not JSON"), ("", "is damaged: it is not JSON"), (#"{"t":1"#, "is cut off"),
        (#"{"t":1 "w":1,"input":"turn-ended"}"#, "is damaged: it is not JSON"),
        ("{\"t\":1,\"w\":1,\"input\":\"\u{0}\"}", "is damaged: it is not JSON"),
        (#"{"t":1,"w":1,"input":"from-the-future"}"#, "is an input that this version does not know"),
        (#"{"t":1,"w":1}"#, "is damaged: it is no input of a recording"),
        (#"[1]"#, "is damaged: it is no input of a recording"), ("7", "is damaged: it is no input of a recording"),
        (#"{"t":9223372036854775807,"w":1,"input":"turn-ended"}"#, "is damaged: it is no input of a recording"),
        (#"{"t":1,"w":1,"input":"datagram","bytes":"?"}"#, "is damaged: it is no input of a recording"),
    ])
    func `a damaged line is named with what is wrong`(text: String, why: String) throws {
        var lines = recording()
        lines.insert(text, at: 8)
        #expect(try replay(lines).damage == Replay.DamageError(line: 9, why: why))
        // Also among the first inputs, which are read ahead for the targets.
        #expect(try replay([Self.header, line(.overrun), text]).damage == Replay.DamageError(line: 3, why: why))
    }

    @Test func `an empty file, another file, another version`() throws {
        #expect(try replay([]).damage == Replay.DamageError(line: 1, why: "the file is empty"))
        #expect(try replay(["#!/bin/sh"]).damage?.why == "is not the header of a recording")
        #expect(
            try replay([#"{"netwatch_recording":3,"other":"keys"}"#]).damage?.why == "has format 3; this version reads format 2")
        let future = Self.header.replacing("\"any\"", with: "\"cleverest\"")
        #expect(try replay([future]).damage?.why.contains("cleverest") == true)
    }

    @Test func `targets that are there from the start are known before anything runs`() throws {
        let endpoint = try Endpoint("192.0.2.9:80")
        var rest = [
            Self.header, line(.began(seed: 1, isPolling: false)), line(.targetAdded(TargetID(0), endpoint, ProbeSettings())),
            line(.turnEnded), line(.targetAdded(TargetID(1), try Endpoint("192.0.2.10:80"), ProbeSettings())),
        ][...]
        let replay = try Replay { rest.popFirst() }
        #expect(replay.targets == [endpoint])
    }

    // Wall clocks of 2200, of 1970 and before it; a clock that is set back between two inputs.
    @Test func `a recording across jumps of the wall clock is replayed to its end`() throws {
        let inputs = recording().dropFirst().dropLast().compactMap {
            try? JSONDecoder().decode(RecordedInput.self, from: Data($0.utf8))
        }
        let clocks: [Int64] = [7_258_118_400_000_000_000, 0, -1, .max, .min, 1_700_000_000_000_000_000]
        var lines = [Self.header]
        for (number, input) in (inputs + [resumption, turnEnd]).enumerated() {
            let moment = Moment(
                monotonicNanoseconds: input.moment.monotonicNanoseconds, wallClockNanoseconds: clocks[number % clocks.count])
            let data = try JSONEncoder().encode(RecordedInput(moment: moment, input: input.input))
            lines.append(String(decoding: data, as: UTF8.self))
        }
        let (events, damage) = try replay(lines + [end(of: lines)])
        #expect(damage == nil)
        #expect(statuses(events) == [.satisfied, .unsatisfied])
    }

    private var turnEnd: RecordedInput {
        RecordedInput(moment: Moment(monotonicNanoseconds: 1_000_000_000, wallClockNanoseconds: 0), input: .turnEnded)
    }
    private var resumption: RecordedInput {
        RecordedInput(moment: turnEnd.moment, input: .resumed(nanosecondsAsleep: 1 << 61))
    }

    @Test func `random damage never ends the program`() throws {
        var generator = SplitMix64(seed: 21)
        let lines = recording()
        for _ in 0..<300 {
            var damaged = lines
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let number = Int.random(in: 1..<damaged.count, using: &generator)
                switch Int.random(in: 0..<4, using: &generator) {
                case 0: damaged.swapAt(number, Int.random(in: 1..<damaged.count, using: &generator))
                case 1: damaged.remove(at: number)
                case 2: damaged.insert(damaged[Int.random(in: 1..<damaged.count, using: &generator)], at: number)
                default:
                    var text = Array(damaged[number].utf8)
                    let place = Int.random(in: 0..<max(1, text.count), using: &generator)
                    if !text.isEmpty { text[place] = UInt8.random(in: 0x20...0x7e, using: &generator) }
                    damaged[number] = String(decoding: text, as: UTF8.self)
                }
            }
            _ = try replay(damaged)
        }
    }
}
