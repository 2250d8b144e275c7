import Foundation
import Reachability
import Testing

@testable import Console
@testable import netwatch

@Suite struct TextStyleTests {
    @Test(
        arguments: [
            (.auto, true, ["TERM": "xterm"], true), (.auto, false, ["TERM": "xterm"], false), (.auto, true, [:], false),
            (.auto, true, ["TERM": "dumb"], false), (.auto, true, ["TERM": "xterm", "NO_COLOR": "1"], false),
            (.auto, true, ["TERM": "xterm", "NO_COLOR": ""], true), (.always, false, ["NO_COLOR": "1", "TERM": "dumb"], true),
            (.never, true, ["TERM": "xterm", "CLICOLOR_FORCE": "1"], false), (.auto, false, ["CLICOLOR_FORCE": "1"], true),
            (.auto, false, ["CLICOLOR_FORCE": "1", "NO_COLOR": "1"], false),
        ] as [(TextStyle.ColorChoice, Bool, [String: String], Bool)])
    func coloursAreForTerminalsUnlessToldOtherwise(
        choice: TextStyle.ColorChoice, isTerminal: Bool, environment: [String: String], isColored: Bool
    ) {
        #expect(TextStyle(choice: choice, isTerminal: isTerminal, environment: environment).isColored == isColored)
    }

    @Test func symbolsBeyondASCIINeedALocaleThatHasThem() {
        func isUnicode(_ environment: [String: String]) -> Bool {
            TextStyle(choice: .auto, isTerminal: true, environment: environment).isUnicode
        }
        #expect(isUnicode(["LANG": "de_DE.UTF-8"]))
        #expect(!isUnicode(["LANG": "de_DE.UTF-8", "LC_ALL": "C"]))
        #expect(isUnicode(["LANG": "C", "LC_ALL": "", "LC_CTYPE": "C.utf8"]))
        #expect(!isUnicode([:]))
    }

    @Test func controlCharactersNeverReachATerminal() {
        #expect(TextStyle.printable("a\u{1b}[2Jb\n\u{9b}c é") == "a\u{fffd}[2Jb\u{fffd}\u{fffd}c é")
    }
}

@Suite struct PlainLinesTests {
    let lines = PlainLines(header: Samples.header, style: TextStyle())

    @Test func everyRecordIsOneLine() {
        let text = Samples.oneOfEach.map { lines.line(Record(event: $0)) }
        #expect(
            text == [
                "2026-08-02T12:00:00.000Z hello  netwatch 0.1.0: path satisfied via eth0 (wired), IPv4 IPv6 DNS, "
                    + "gateway 192.0.2.1 fe80::1%eth0",
                "2026-08-02T12:00:01.000Z path   unsatisfied link/no-carrier: eth0 has no carrier (interface-changed)",
                "2026-08-02T12:00:01.000Z target 192.0.2.9:22 up 1.25 ms from 192.0.2.9 via eth0 (wired)",
                "2026-08-02T12:00:01.000Z probe  192.0.2.9:22 ok 1.25 ms from 192.0.2.9",
                "2026-08-02T12:00:02.000Z resync the kernel was asked anew: overrun",
                "2026-08-02T12:01:00.000Z gap    suspended from 2026-08-02T12:00:03.000Z to 2026-08-02T12:01:00.000Z",
            ])
    }

    @Test func droppedRecordsAreTold() {
        let record = Record(event: Samples.server(0, "192.0.2.9:22", .down, cause: Samples.refused), superseded: 4)
        #expect(
            lines.line(record)
                == "2026-08-02T12:00:01.000Z target 192.0.2.9:22 down tcp/refused: 192.0.2.9 refuses port 22 [4 superseded]")
    }
}

@Suite struct LiveLinesTests {
    @Test func aSessionReadsAsAStory() {
        var live = LiveLines(header: Samples.header, style: TextStyle(isColored: false, isUnicode: true))
        let events = [
            Samples.hello, Samples.server(0, "192.0.2.9:22", .unknown, initial: true, at: 0), Samples.server(at: 0.02),
            Samples.path(Samples.unsatisfied, [.interfaceChanged, .interfacesChanged], suppressed: 2, at: 63.5),
            Samples.server(0, "192.0.2.9:22", .unreachable, cause: Samples.noCarrier, at: 63.5),
        ]
        let text = events.flatMap { live.lines(Record(event: $0)) }.joined(separator: "\n")
        #expect(
            text == """
                netwatch 0.1.0 · this machine · 2026-08-02T12:00:00.000Z
                   +0.000s ✓ path satisfied  via eth0 (wired), IPv4 IPv6 DNS, gateway 192.0.2.1 fe80::1%eth0
                             eth0  wired     routable  192.0.2.7/24 fe80::7/64
                             lo    loopback  carrier   127.0.0.1/8
                   +0.000s ? 192.0.2.9:22  unknown
                   +0.020s ✓ 192.0.2.9:22  up  1.25 ms from 192.0.2.9 via eth0 (wired)
                  +1m03.5s ✗ path unsatisfied  link/no-carrier: eth0 has no carrier
                             interface-changed, interfaces-changed; 2 other events
                             eth0  wired  no-carrier
                  +1m03.5s ✗ 192.0.2.9:22  unreachable  link/no-carrier: eth0 has no carrier  (was up for 1m03s)
                """)
    }

    @Test func coloursStandBesideSymbols() {
        var live = LiveLines(header: Samples.header, style: TextStyle(isColored: true, isUnicode: false))
        let lines = live.lines(Record(event: Samples.path()))
        #expect(lines.first?.contains("\u{1b}[31mx\u{1b}[0m") ?? false)
        #expect(lines.joined().unicodeScalars.allSatisfy { $0.isASCII })
    }
}

@Suite struct StatusTextTests {
    @Test func pathInterfacesAndTargetsAreAligned() throws {
        let path = try RecordEncoderTests.update(Samples.hello)
        guard case .server(_, let up) = Samples.server(),
            case .server(_, let down) = Samples.server(1, "[2001:db8::9]:443", .down, cause: Samples.refused)
        else { return }
        let document = StatusDocument(moment: Samples.moment(9), path: path, targets: [up, down])
        let text = StatusText(document: document, style: TextStyle(), showsEvidence: true).lines.joined(separator: "\n")
        #expect(
            text == """
                path  + satisfied  via eth0 (wired), IPv4 IPv6 DNS, gateway 192.0.2.1 fe80::1%eth0

                interfaces
                  eth0  wired     routable  192.0.2.7/24 fe80::7/64
                      ARPHRD_ETHER
                      driver e1000e
                  lo    loopback  carrier   127.0.0.1/8

                targets
                  + 192.0.2.9:22       up    1.25 ms from 192.0.2.9 via eth0 (wired)
                  x [2001:db8::9]:443  down  tcp/refused: 192.0.2.9 refuses port 22
                """)
        #expect(document.verdict == .doesNotHold)
    }

    @Test func targetsDecideWhereThereAreAny() throws {
        guard case .path(let broken) = Samples.path(), case .server(_, let up) = Samples.server(),
            case .server(_, let unknown) = Samples.server(0, "192.0.2.9:22", .unknown)
        else { return }
        let working = try RecordEncoderTests.update(Samples.hello)
        func verdict(_ path: PathUpdate, _ targets: [ServerUpdate]) -> StatusDocument.Verdict {
            StatusDocument(moment: Samples.moment(9), path: path, targets: targets).verdict
        }
        #expect(verdict(broken, []) == .doesNotHold)
        #expect(verdict(working, []) == .holds)
        #expect(verdict(broken, [up]) == .holds)
        #expect(verdict(working, [up, unknown]) == .undetermined)
    }
}

@Suite struct HookEnvironmentTests {
    @Test func everyVariableIsSet() {
        let record = Record(
            event: Samples.server(0, "192.0.2.9:22", .down, cause: Samples.refused), seq: 12, superseded: 3)
        let variables = Dictionary(HookEnvironment.variables(for: record)) { first, _ in first }
        #expect(
            variables == [
                "NETWATCH_TYPE": "target", "NETWATCH_STATUS": "down", "NETWATCH_TARGET": "192.0.2.9:22",
                "NETWATCH_ADDRESS": "192.0.2.9", "NETWATCH_INTERFACE": "eth0", "NETWATCH_INTERFACE_TYPE": "wired",
                "NETWATCH_CAUSE": "tcp/refused", "NETWATCH_DETAIL": "192.0.2.9 refuses port 22", "NETWATCH_SEQ": "12",
                "NETWATCH_TS": "2026-08-02T12:00:01.000Z", "NETWATCH_SUPERSEDED": "3",
            ])
    }

    @Test func hooksRunOnChangesOnly() {
        let changes = Samples.oneOfEach.filter { HookEnvironment.isChange(Record(event: $0)) }
        #expect(changes == [Samples.path(), Samples.server()])
        #expect(!HookEnvironment.isChange(Record(event: Samples.server(0, "192.0.2.9:22", .unknown, initial: true))))
    }
}
