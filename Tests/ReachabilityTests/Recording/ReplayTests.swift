import Expectations
import FoundationEssentials
import NetlinkBytes
import Pacing
import ReachabilityTestKit
import Testing

@testable import Reachability

@Suite struct ReplayTests {
    private static let header =
        #"{"netwatch_recording":3,"program":"p","boot_id":"b","netns":null,"netns_inode":1,"selection":"any","families":[4,6]}"#

    private func line(_ input: MonitorInput, at time: Int64 = 1_000_000_000) -> String {
        let moment = Moment(monotonicNanoseconds: time, wallClockNanoseconds: 1_700_000_000_000_000_000 + time)
        let data = try? JSONEncoder().encode(RecordedInput(moment: moment, input: input))
        return data.map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// The end line of a recording of these lines, which are its header and its inputs.
    private func end(of lines: [String]) -> String { #"{"netwatch_recording_end":3,"inputs":\#(lines.count - 1)}"# }

    /// A recording of a machine that settles with one interface, whose carrier is then lost.
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

    /// Replays a file. - Returns: its events, and the damage that ended it.
    private func replay(_ lines: [String]) throws -> (events: [MonitorEvent], damage: Replay.DamageError?) {
        var remaining = lines[...]
        var events: [MonitorEvent] = []
        do {
            var replay = try Replay { remaining.popFirst() }
            try replay.run { events.append($0) }
        } catch let damage as Replay.DamageError { return (events, damage) }
        return (events, nil)
    }

    private func statuses(_ events: [MonitorEvent]) -> [NetworkPath.Status] {
        events.compactMap { event in
            if case .path(let update) = event { update.path.status } else { nil }
        }
    }

    @Test func `a recording replays the events that it recorded`() throws {
        let (events, damage) = try replay(recording())
        expectNil(damage)
        expectEqual(statuses(events), [.satisfied, .unsatisfied])
        try expectEqual(replay(recording()).events, events)
    }

    @Test func `a recorded network replays its paths by the recording's clock`() async throws {
        let lines = recording().dropLast()
        // The last five inputs, with the loss of the carrier, come 5 s after the others.
        let text = lines.dropLast(5) + lines.suffix(5).map { $0.replacing(#""t":1000000000"#, with: #""t":6000000000"#) }
        let network = try RecordedNetwork((text + [end(of: Array(text))]).joined(separator: "\n"))
        expectNil(network.monitor.current)
        #expect(try network.advance(by: .zero))
        expectEqual(network.monitor.currentPath?.status, .satisfied)
        #expect(try network.advance(by: .milliseconds(4_999)))
        expectEqual(network.monitor.currentPath?.status, .satisfied)
        #expect(try !network.advance(by: .milliseconds(1)))
        expectEqual(network.monitor.currentPath?.status, .unsatisfied)
        #expect(try !network.advance(by: .seconds(1)))
    }

    @Test func `a recorded network in real time replays to the recording's end, and reports a damaged line`() async throws {
        let network = try RecordedNetwork(recording().joined(separator: "\n"))
        try await network.play(speed: 1_000)
        expectEqual(network.monitor.currentPath?.status, .unsatisfied)
        let damaged = try RecordedNetwork(recording().dropLast().joined(separator: "\n"))
        await #expect(throws: RecordedNetwork.ReadError.self) { try await damaged.play(speed: 1_000) }
        expectEqual(damaged.monitor.currentPath?.status, .unsatisfied)
        #expect(throws: RecordedNetwork.ReadError.self) { try RecordedNetwork("nonsense") }
    }

    @Test func `a recording truncated at any line replays the lines before it and names that line`() throws {
        let lines = recording()
        let complete = try replay(lines).events
        for number in 1..<lines.count {
            let cut = lines.prefix(number) + [String(lines[number].dropLast(3))]
            let (events, damage) = try replay(Array(cut))
            expectEqual(damage, Replay.DamageError(line: number + 1, reason: "is cut off"))
            expectEqual(events, Array(complete.prefix(events.count)))
            let (shortened, missing) = try replay(Array(lines.prefix(number)))
            expectEqual(missing, Replay.DamageError(line: number + 1, reason: "is missing: the recording ends early"))
            expectEqual(shortened, events)
        }
    }

    @Test func `a missing line and a line after the end of a recording are reported as damage`() throws {
        let lines = recording()
        var short = lines
        short.remove(at: lines.count - 2)
        let (count, number) = (lines.count - 2, lines.count - 1)
        try expectEqual(
            replay(short).damage,
            Replay.DamageError(line: number, reason: "counts \(count) inputs where there are \(count - 1)"))
        for text in ["", "garbage", line(.turnEnded), lines[lines.count - 1]] {
            let (events, damage) = try replay(lines + [text])
            expectEqual(damage, Replay.DamageError(line: lines.count + 1, reason: "stands after the end of the recording"))
            expectEqual(events, (try replay(lines).events))
        }
        let former = #"{"netwatch_recording_end":2,"inputs":\#(count)}"#
        try expectEqual(
            replay(lines.dropLast() + [former]).damage,
            Replay.DamageError(line: lines.count, reason: "ends a recording of format 2"))
    }

    @Test func `a recording without any turn is complete with its end line`() throws {
        try expectNil(replay([Self.header, end(of: [Self.header])]).damage)
        try expectEqual(replay([Self.header]).damage, Replay.DamageError(line: 2, reason: "is missing: the recording ends early"))
    }

    @Test(arguments: [
        ("garbage", "is damaged: it is not JSON"), ("", "is damaged: it is not JSON"), (#"{"t":1"#, "is cut off"),
        (#"{"t":1 "w":1,"input":"turn-ended"}"#, "is damaged: it is not JSON"),
        ("{\"t\":1,\"w\":1,\"input\":\"\u{0}\"}", "is damaged: it is not JSON"),
        (#"{"t":1,"w":1,"input":"from-the-future"}"#, "is an input that this version does not know"),
        (#"{"t":1,"w":1}"#, "is damaged: it is no input of a recording"),
        (#"[1]"#, "is damaged: it is no input of a recording"), ("7", "is damaged: it is no input of a recording"),
        (
            #"{"t":9223372036854775807,"w":1,"input":"turn-ended"}"#,
            "has a number out of range: 't' is 9223372036854775807, outside of 0 to 1152921504606846975"
        ),
        (#"{"t":1,"w":1,"input":"datagram","bytes":"?"}"#, "is damaged: it is no input of a recording"),
    ])
    func `a damaged line of a recording is reported with its number and its fault`(text: String, why: String) throws {
        var lines = recording()
        lines.insert(text, at: 8)
        try expectEqual(replay(lines).damage, Replay.DamageError(line: 9, reason: why))
        // The first inputs are read ahead for the targets, so damage among them is tested too.
        try expectEqual(replay([Self.header, line(.overrun), text]).damage, Replay.DamageError(line: 3, reason: why))
    }

    @Test func `an empty file, another kind of file and another format are refused`() throws {
        try expectEqual(replay([]).damage, Replay.DamageError(line: 1, reason: "the file is empty"))
        try expectEqual(replay(["#!/bin/sh"]).damage?.reason, "is not the header of a recording")
        try expectEqual(
            replay([#"{"netwatch_recording":2,"other":"keys"}"#]).damage?.reason,
            "has format 2; this version reads format 3")
        let future = Self.header.replacing("\"any\"", with: "\"cleverest\"")
        #expect(try replay([future]).damage?.reason.contains("cleverest") == true)
    }

    @Test func `targets that a recording adds before its first turn are known before the replay runs`() throws {
        let endpoint = try Endpoint("192.0.2.9:80")
        var remaining = [
            Self.header, line(.began(seed: 1, isPolling: false)), line(.targetAdded(TargetID(0), endpoint, ProbeSettings())),
            line(.turnEnded), line(.targetAdded(TargetID(1), try Endpoint("192.0.2.10:80"), ProbeSettings())),
        ][...]
        let replay = try Replay { remaining.popFirst() }
        expectEqual(replay.targets, [endpoint])
    }

    // Wall clocks of 2200, of 1970 and before, and a clock that is set back between two inputs.
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
        expectNil(damage)
        expectEqual(statuses(events), [.satisfied, .unsatisfied])
    }

    private var turnEnd: RecordedInput {
        RecordedInput(moment: Moment(monotonicNanoseconds: 1_000_000_000, wallClockNanoseconds: 0), input: .turnEnded)
    }
    private var resumption: RecordedInput {
        RecordedInput(moment: turnEnd.moment, input: .resumed(nanosecondsAsleep: (1 << 60) - 1))
    }

    @Test func `random damage of a recording never crashes the replay`() throws {
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
