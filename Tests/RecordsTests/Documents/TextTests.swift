import Expectations
import Foundation
import Reachability
import RecordSamples
import Testing

@testable import Console
@testable import Records

@Suite struct TextStyleTests {
    @Test(
        arguments: [
            (.auto, true, ["TERM": "xterm"], true), (.auto, false, ["TERM": "xterm"], false), (.auto, true, [:], false),
            (.auto, true, ["TERM": "dumb"], false), (.auto, true, ["TERM": "xterm", "NO_COLOR": "1"], false),
            (.auto, true, ["TERM": "xterm", "NO_COLOR": ""], true), (.always, false, ["NO_COLOR": "1", "TERM": "dumb"], true),
            (.never, true, ["TERM": "xterm", "CLICOLOR_FORCE": "1"], false), (.auto, false, ["CLICOLOR_FORCE": "1"], true),
            (.auto, false, ["CLICOLOR_FORCE": "1", "NO_COLOR": "1"], false),
        ] as [(TextStyle.ColorChoice, Bool, [String: String], Bool)])
    func `colors are for terminals unless an option or variable decides`(
        choice: TextStyle.ColorChoice, isTerminal: Bool, environment: [String: String], isColored: Bool
    ) {
        expectEqual(TextStyle(choice: choice, isTerminal: isTerminal, environment: environment).isColored, isColored)
    }

    @Test func `symbols beyond ASCII need a UTF-8 locale`() {
        func isUnicode(_ environment: [String: String]) -> Bool {
            TextStyle(choice: .auto, isTerminal: true, environment: environment).isUnicode
        }
        #expect(isUnicode(["LANG": "de_DE.UTF-8"]))
        #expect(!isUnicode(["LANG": "de_DE.UTF-8", "LC_ALL": "C"]))
        #expect(isUnicode(["LANG": "C", "LC_ALL": "", "LC_CTYPE": "C.utf8"]))
        #expect(!isUnicode([:]))
    }

    @Test func `control characters never reach a terminal`() {
        expectEqual(TextStyle.printable("a\u{1b}[2Jb\n\u{9b}c é"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c é")
    }

    /// Unsafe characters: C0, DEL, C1, marks and overrides of direction, isolates, separators, a tag beyond U+FFFF.
    private static let hostile: [Unicode.Scalar] = [
        "\u{1b}", "\u{7f}", "\u{85}", "\u{9b}", "\u{61c}", "\u{200e}", "\u{202a}", "\u{202e}", "\u{2028}", "\u{2066}", "\u{2069}",
        "\u{e0041}",
    ]

    @Test(arguments: hostile) func `C1 controls and bidirectional controls are filtered on terminals and escaped in JSON`(
        scalar: Unicode.Scalar
    ) throws {
        let text = "exe\(scalar)gpj"
        expectEqual(TextStyle.printable(text), "exe\u{fffd}gpj")
        expectEqual(DisplayWidth.harmless(text, isUnicode: true), "exe\u{fffd}gpj")
        expectEqual(DisplayWidth.harmless(text, isUnicode: false), "exe?gpj")
        expectEqual(Failure(1, text).line, "netwatch: exe\u{fffd}gpj")
        let cause = Cause(.tls, .certificateUntrusted, detail: text, evidence: [text: .text(text)])
        #expect(!cause.sentence.unicodeScalars.contains(scalar))
        var writer = JSONWriter()
        writer.object { writer in
            writer.key(text: text)
            writer.value(text)
            writer.member("list", [text])
            writer.member(cause)
        }
        let json = String(decoding: writer.bytes, as: UTF8.self)
        #expect(!json.unicodeScalars.contains(scalar))
        let decoded = try JSONSerialization.jsonObject(with: Data(writer.bytes)) as? [String: Any]
        expectEqual((decoded?["cause"] as? [String: Any])?["detail"] as? String, text)
    }

    @Test func `every character of Latin-1 at every place of a text is read back`() throws {
        // Texts are examined eight bytes at a time.
        for length in [1, 7, 8, 9, 16, 17] {
            for place in 0..<length {
                let texts = (UInt8(0)...0xFF).map { character in
                    var scalars = [Unicode.Scalar](repeating: "a", count: length)
                    scalars[place] = Unicode.Scalar(character)
                    if place > 0, character.isMultiple(of: 2) { scalars[place - 1] = "\"" }
                    return String(String.UnicodeScalarView(scalars))
                }
                var writer = JSONWriter()
                writer.array { writer in
                    for text in texts { writer.value(text) }
                }
                #expect(writer.bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
                try expectEqual(JSONSerialization.jsonObject(with: Data(writer.bytes)) as? [String], texts)
            }
        }
    }

    @Test func `numbers of every size are written in decimal digits`() {
        var writer = JSONWriter()
        writer.array { writer in
            for number in [0, 9, 10, -1, -10, .min, .max] { writer.value(number) }
            writer.value(UInt64.max)
            writer.value(Int32.min)
            writer.value(UInt8(255))
            writer.value(nil as Int?)
        }
        let text = "[0,9,10,-1,-10,-9223372036854775808,9223372036854775807,18446744073709551615,-2147483648,255,null]"
        expectEqual(String(decoding: writer.bytes, as: UTF8.self), text)
    }

    @Test func `other text is written unchanged`() {
        var writer = JSONWriter()
        writer.array { $0.value("é 漢 😀 \u{a0}") }
        expectEqual(String(decoding: writer.bytes, as: UTF8.self), "[\"é 漢 😀 \u{a0}\"]")
    }

    @Test func `a long URL keeps its host and the name of its file`() {
        let url = "https://files.example.com/" + String(repeating: "directory/", count: 20) + "big.iso"
        let text = ShortURL.text(url)
        #expect(text.count == ShortURL.limit && text.hasPrefix("https://files.example.com/") && text.hasSuffix("/big.iso"))
        expectEqual(ShortURL.text(String(url.prefix(100))), String(url.prefix(100)))
    }
}

@Suite struct PlainLinesTests {
    @Test func `every record is one plain line`() {
        var lines = PlainLines(header: Samples.header, style: TextStyle())
        let text = Samples.oneOfEach.map { lines.line(Record(event: $0)) }
        expectEqual(
            text,
            [
                "2026-08-02T12:00:00.000Z hello  netwatch 0.1.0: path satisfied via eth0 (wired), IPv4 IPv6, "
                    + "gateway 192.0.2.1 fe80::1%eth0, DNS server 192.0.2.53",
                "2026-08-02T12:00:01.000Z path   unsatisfied link/no-carrier: eth0 has no carrier "
                    + "(eth0 routable -> no-carrier, -192.0.2.7/24, -fe80::7/64)",
                "2026-08-02T12:00:01.000Z target 192.0.2.9:22 up 1.25 ms from 192.0.2.9 via eth0 (wired)",
                "2026-08-02T12:00:01.000Z probe  192.0.2.9:22 ok 1.25 ms from 192.0.2.9",
                "2026-08-02T12:00:01.000Z incident interface eth0 open 1 target (192.0.2.0:22), "
                    + "link/no-carrier: eth0 has no carrier",
                "2026-08-02T12:00:02.000Z resync the kernel's state was read again: overrun",
                "2026-08-02T12:01:00.000Z gap    suspended from 2026-08-02T12:00:03.000Z to 2026-08-02T12:01:00.000Z",
            ])
    }

    @Test func `an incident's line has the subject, the number and the first targets, and the duration`() {
        var lines = PlainLines(header: Samples.header, style: TextStyle())
        func text(_ event: MonitorEvent) -> Substring { lines.line(Record(event: event)).dropFirst(34) }
        expectEqual(
            text(Samples.incident(1_000, over: 63.5)),
            "interface eth0 over 1000 targets (192.0.2.0:22, 192.0.2.1:22, 192.0.2.2:22, …), "
                + "link/no-carrier: eth0 has no carrier after 1m02s")
        let limit = Cause(.local, .fileLimit, detail: "no descriptor is left")
        expectEqual(
            text(Samples.incident(2, cause: limit, subject: .init(.interface, nil))),
            "this machine open 2 targets (192.0.2.0:22, 192.0.2.1:22), local/file-limit: no descriptor is left")
        let evil = Samples.incident(2, subject: .init(.hop, "e\u{1b}[2J\n"))
        #expect(!lines.line(Record(event: evil)).contains { $0 == "\u{1b}" || $0.isNewline })
    }

    @Test func `reasons appear only with -v`() {
        var lines = PlainLines(header: Samples.header, style: TextStyle(), isVerbose: true)
        #expect(lines.line(Record(event: Samples.path())).hasSuffix("eth0 has no carrier (interface-changed)"))
    }

    @Test func `dropped records are reported`() {
        var lines = PlainLines(header: Samples.header, style: TextStyle())
        let record = Record(event: Samples.server(0, "192.0.2.9:22", .down, cause: Samples.refused), superseded: 4)
        expectEqual(
            lines.line(record),
            "2026-08-02T12:00:01.000Z target 192.0.2.9:22 down tcp/refused: 192.0.2.9 refuses port 22 [4 superseded]")
    }
}

@Suite struct LiveLinesTests {
    @Test func `a stream on a terminal has one line per change with details`() {
        var live = LiveLines(header: Samples.header, style: TextStyle(isColored: false, isUnicode: true))
        let events = [
            Samples.hello, Samples.server(0, "192.0.2.9:22", .unknown, initial: true, at: 0), Samples.server(at: 0.02),
            Samples.path(Samples.unsatisfied, [.interfaceChanged, .interfacesChanged], suppressed: 2, at: 63.5),
            Samples.server(0, "192.0.2.9:22", .unreachable, cause: Samples.noCarrier, at: 63.5),
        ]
        let text = events.flatMap { live.lines(Record(event: $0)) }.joined(separator: "\n")
        expectEqual(
            text,
            """
            netwatch 0.1.0 · this machine · 2026-08-02T12:00:00.000Z
            times since then · ✓ works, ✗ fails, ? degraded, pending or not known
               +0.000s ✓ path satisfied  via eth0 (wired), IPv4 IPv6, gateway 192.0.2.1 fe80::1%eth0, DNS server 192.0.2.53
                         eth0  wired     routable  192.0.2.7/24 fe80::7/64
                         lo    loopback  carrier   127.0.0.1/8
               +0.000s ? 192.0.2.9:22  unknown
               +0.020s ✓ 192.0.2.9:22  up  1.25 ms from 192.0.2.9 via eth0 (wired)
              +1m03.5s ✗ path unsatisfied  link/no-carrier: eth0 has no carrier
                         eth0 routable → no-carrier, -192.0.2.7/24, -fe80::7/64
                         eth0  wired  no-carrier
              +1m03.5s ✗ 192.0.2.9:22  unreachable  link/no-carrier: eth0 has no carrier  (was up for 1m03s)
            """)
    }

    @Test func `a failure that does not change the status yet is pending, and not certain`() {
        var live = LiveLines(header: Samples.header, style: TextStyle(isColored: false, isUnicode: true))
        _ = live.lines(Record(event: Samples.hello))
        let events = [Samples.server(pending: Samples.refused, at: 2), Samples.server(at: 3)]
        expectEqual(
            events.flatMap { live.lines(Record(event: $0)) },
            [
                "   +2.000s ? 192.0.2.9:22  up, pending  \(Samples.refused.sentence)",
                "   +3.000s ✓ 192.0.2.9:22  up  1.25 ms from 192.0.2.9 via eth0 (wired)",
            ])
    }

    @Test func `a job that runs says so`() throws {
        var live = LiveLines(header: Samples.header, style: TextStyle(isColored: false, isUnicode: true))
        _ = live.lines(Record(event: Samples.hello))
        let lines = try [JobPhase.idle, .running].map { job in
            let update = ServerUpdate(
                endpoint: try Endpoint("heartbeat:backup"), statusName: .up, cause: nil, since: Samples.moment(2), address: nil,
                interface: nil, roundTrip: nil, job: job, isInitial: false, moment: Samples.moment(2))
            return live.lines(Record(event: .server(TargetID(0), update)))
        }
        expectEqual(lines, [["   +2.000s ✓ heartbeat:backup  up"], ["   +2.000s ✓ heartbeat:backup  up, running"]])
    }

    @Test func `a terminal shows incidents of several targets`() {
        var live = LiveLines(header: Samples.header, style: TextStyle(isColored: false, isUnicode: true))
        _ = live.lines(Record(event: Samples.hello))
        func text(_ event: MonitorEvent) -> [String] { live.lines(Record(event: event)) }
        // The records of the path and of the only target say the same.
        #expect(text(Samples.incident(0)).isEmpty && text(Samples.incident(1)).isEmpty)
        expectEqual(
            text(Samples.incident(2)),
            [
                "   +1.000s ✗ incident interface eth0  open  2 targets (192.0.2.0:22, 192.0.2.1:22), "
                    + "link/no-carrier: eth0 has no carrier"
            ])
        expectEqual(
            text(Samples.incident(2, over: 3.5)),
            [
                "   +3.500s ✓ incident interface eth0  over  2 targets (192.0.2.0:22, 192.0.2.1:22), "
                    + "link/no-carrier: eth0 has no carrier after 2.5s"
            ])
        // Nothing else says that a single target flaps.
        expectEqual(
            text(Samples.incident(1, kind: .flapping, subject: .init(.target, "192.0.2.0:22"), over: 3.5, into: "17-4")),
            [
                "   +3.500s ? incident target 192.0.2.0:22  merged into 17-4 (flapping)  1 target (192.0.2.0:22), "
                    + "link/no-carrier: eth0 has no carrier after 2.5s"
            ])
    }

    /// Returns the text of lines as words, without colors and margins.
    static func words(_ lines: [String]) -> [String] {
        lines.joined(separator: " ").replacing(/\u{1b}\[[0-9]+m/, with: "").split(separator: " ").map(String.init)
    }

    /// Returns whether a list of addresses or changes does not fit, so that its items are counted.
    static func isCounted(_ lines: [String]) -> Bool {
        words(lines).joined(separator: " ").contains(#/ and \d+ more|\d+ (address|addresses|change|changes)\b/#)
    }

    @Test(arguments: [20, 40, 60, 80, 200], [false, true])
    func `lines are wrapped at words to the width of the terminal, and lose none`(columns: Int, isColored: Bool) {
        let style = TextStyle(isColored: isColored, isUnicode: true)
        var (live, full) = (
            LiveLines(header: Samples.header, style: style, isVerbose: true, columns: columns),
            LiveLines(header: Samples.header, style: TextStyle(isUnicode: true), isVerbose: true)
        )
        for event in Samples.oneOfEach {
            let (lines, whole) = (live.lines(Record(event: event)), full.lines(Record(event: event)))
            for line in lines {
                let plain = line.replacing(/\u{1b}\[[0-9]+m/, with: "")
                let isOneWord = plain.split(separator: " ").count == 1
                #expect(DisplayWidth.columns(plain) <= columns - 1 || isOneWord, "\(line)")
                expectEqual(DisplayWidth.columns(plain), DisplayWidth.paintedColumns(line))
                #expect(isColored || !line.contains("\u{1b}"))
                let ends = line.contains("\u{1b}") ? line.contains("\u{1b}[0m") : true
                #expect(ends, "the color ends with the line")
            }
            #expect(Self.words(lines) == Self.words(whole) || Self.isCounted(lines), "\(lines)")
        }
    }

    @Test func `a wrapped line has a hanging indentation, and its color continues`() {
        let style = TextStyle(isColored: true)
        let line = "  " + style.paint("tls/certificate-untrusted: 10.77.1.9 presents a certificate", .red) + " of nobody"
        expectEqual(
            WrappedText.lines(line, columns: 40, indentation: 6),
            [
                "  \u{1b}[31mtls/certificate-untrusted: 10.77.1.9\u{1b}[0m",
                "      \u{1b}[31mpresents a certificate\u{1b}[0m of nobody",
            ])
        expectEqual(WrappedText.lines("a b", columns: 3), ["a b"])
        // A word that is too long has a line of its own, whole, and columns of aligned text keep their spaces.
        expectEqual(
            WrappedText.lines("up   https://203.0.113.9/file now", columns: 12, indentation: 2),
            ["up", "  https://203.0.113.9/file", "  now"])
        expectEqual(WrappedText.lines("ab   cd ef", columns: 8, indentation: 1), ["ab   cd", " ef"])
        // Wide characters take two columns.
        expectEqual(WrappedText.lines("日本 日本 日本", columns: 10, indentation: 0), ["日本 日本", "日本"])
        // A deep indentation would leave no room.
        #expect(
            WrappedText.lines(String(repeating: "word ", count: 12), columns: 30, indentation: 26).dropFirst().allSatisfy {
                $0.hasPrefix("    word")
            })
    }

    @Test func `wide characters are padded to the columns that they take`() {
        expectEqual(TextStyle.pad("ｗｉ", 6), "ｗｉ  ")
        expectEqual(TextStyle.pad("ｗｉｄｅ", 6), "ｗｉｄｅ")
    }

    @Test func `colors accompany symbols`() {
        var live = LiveLines(header: Samples.header, style: TextStyle(isColored: true, isUnicode: false))
        let lines = live.lines(Record(event: Samples.path()))
        #expect(lines.first?.contains("\u{1b}[31mx\u{1b}[0m") ?? false)
        #expect(lines.joined().unicodeScalars.allSatisfy { $0.isASCII })
    }
}

@Suite struct StatusTextTests {
    @Test func `path, interfaces and targets are aligned`() throws {
        let path = try RecordEncoderTests.update(Samples.hello)
        guard case .server(_, let up) = Samples.server(),
            case .server(_, let down) = Samples.server(1, "[2001:db8::9]:443", .down, cause: Samples.refused)
        else { return }
        let document = StatusDocument(moment: Samples.moment(9), path: path, targets: [up, down])
        let text = StatusText(document: document, style: TextStyle(), showsEvidence: true).lines.joined(separator: "\n")
        expectEqual(
            text,
            """
            path  + satisfied  via eth0 (wired), IPv4 IPv6, gateway 192.0.2.1 fe80::1%eth0, DNS server 192.0.2.53

            interfaces
              eth0  wired     routable  192.0.2.7/24 fe80::7/64
                  ARPHRD_ETHER
                  driver e1000e
              lo    loopback  carrier   127.0.0.1/8

            DNS servers
              192.0.2.53  via eth0
              - none of them was asked, so whether they answer is not known

            targets
              + 192.0.2.9:22       up    1.25 ms from 192.0.2.9 via eth0 (wired)
              x [2001:db8::9]:443  down  tcp/refused: 192.0.2.9 refuses port 22
            """)
        expectEqual(document.verdict, .doesNotHold)
    }

    @Test func `status says whether the last lookup failed, and never that a configured server works`() throws {
        let endpoint = Samples.endpoint("db.example:5432")
        func lines(_ report: ProbeReport?) throws -> [String] {
            let document = StatusDocument(
                moment: Samples.moment(9), path: try RecordEncoderTests.update(Samples.hello), targets: [],
                lookup: report.flatMap(LookupResult.init))
            return Array(StatusText(document: document, style: TextStyle()).lines.drop { $0 != "DNS servers" })
        }
        try expectEqual(
            lines(
                ProbeReport(
                    endpoint: endpoint, resolution: .milliseconds(12),
                    lookup: LookupAnswer(id: 1, answeredBy: .dns, server: .init(Samples.address("192.0.2.53"))),
                    moment: Samples.moment(1))),
            ["DNS servers", "  192.0.2.53  via eth0", "  + the last lookup (db.example) succeeded in 12.00 ms, by 192.0.2.53"])
        let silent = Cause(.dns, .resolverSilent, detail: "192.0.2.53 does not answer")
        try expectEqual(
            lines(ProbeReport(endpoint: endpoint, resolution: .seconds(3), cause: silent, moment: Samples.moment(1))).last,
            "  x the last lookup (db.example) failed: dns/resolver-silent: 192.0.2.53 does not answer")
        // The link fails before any server is asked.
        let cable = Cause(.link, .noCarrier, detail: "interface eth0 has no carrier")
        try expectEqual(
            lines(ProbeReport(endpoint: endpoint, resolution: .seconds(2), cause: cable, moment: Samples.moment(1))), lines(nil))
        // An authority has answered, so the server works.
        let missing = Cause(.dns, .nameNotFound, detail: "db.example does not exist")
        try expectEqual(
            lines(ProbeReport(endpoint: endpoint, resolution: .milliseconds(3), cause: missing, moment: Samples.moment(1))).last,
            "  - the last lookup (db.example) failed: dns/name-not-found: db.example does not exist")
        // The hosts file has the name.
        try expectEqual(
            lines(
                ProbeReport(
                    endpoint: endpoint, resolution: .zero, lookup: LookupAnswer(id: 1, answeredBy: .hosts),
                    moment: Samples.moment(1))
            ).last,
            "  - none of them was asked, so whether they answer is not known")
        // The target is an address, so nothing was looked up.
        try expectEqual(
            lines(ProbeReport(endpoint: Samples.endpoint("192.0.2.9:22"), moment: Samples.moment(1))).last,
            "  - none of them was asked, so whether they answer is not known")
    }

    @Test func `status and watch list the addresses of a target that are all probed below it`() throws {
        let event = Samples.server(1, "a.example:1", addresses: Samples.addresses)
        guard case .server(_, let target) = event else { return }
        let document = StatusDocument(
            moment: Samples.moment(9), path: try RecordEncoderTests.update(Samples.hello), targets: [target])
        let rows = [
            "+ 192.0.2.9    up", "x 192.0.2.10   down         \(Samples.refused.sentence)",
            "x 2001:db8::9  unreachable  this machine has no route to it", "? 192.0.2.11   unknown",
        ]
        expectEqual(
            StatusText(document: document, style: TextStyle()).lines.suffix(4).map { $0 }, rows.map { "    " + $0 })
        var live = LiveLines(
            header: Samples.header, style: TextStyle())
        _ = live.lines(Record(event: Samples.hello, seq: 0, superseded: 0))
        expectEqual(live.lines(Record(event: event, seq: 1, superseded: 0)).count, 5)
        // Later only those that have changed.
        var later = Samples.addresses
        later[1] = AddressStatus(later[1].address, .up, since: Samples.moment(3))
        let next = Samples.server(1, "a.example:1", addresses: later, at: 3)
        let lines = live.lines(Record(event: next, seq: 2, superseded: 0))
        expectEqual(lines.count, 2)
        #expect(lines.last?.hasSuffix("+ 192.0.2.10  up") == true, "\(lines)")
    }

    @Test(arguments: [20, 50, 80]) func `status fits its lines to the terminal`(columns: Int) throws {
        guard case .server(_, let down) = Samples.server(1, "[2001:db8::9]:443", .down, cause: Samples.refused) else { return }
        var text = StatusText(
            document: StatusDocument(
                moment: Samples.moment(9), path: try RecordEncoderTests.update(Samples.hello), targets: [down]),
            style: TextStyle(isUnicode: true))
        let fullLines = text.lines
        text.columns = columns
        #expect(text.lines.allSatisfy { DisplayWidth.columns($0) < columns || $0.split(separator: " ").count == 1 })
        #expect(LiveLinesTests.words(text.lines) == LiveLinesTests.words(fullLines) || LiveLinesTests.isCounted(text.lines))
    }

    @Test(arguments: [60, 80]) func `status shows the complete cause on a narrow terminal, behind the target's state`(
        columns: Int
    ) throws {
        let cause = Cause(
            .tls, .certificateUntrusted, detail: "10.77.1.9 presents a certificate that no trusted authority has issued")
        guard case .server(_, let down) = Samples.server(1, "tls://10.77.1.9", .down, cause: cause) else { return }
        let document = StatusDocument(
            moment: Samples.moment(9), path: try RecordEncoderTests.update(Samples.hello), targets: [down])
        let lines = Array(
            StatusText(document: document, style: TextStyle(), columns: columns).lines.drop { $0 != "targets" }.dropFirst())
        let margin = String(repeating: " ", count: 27)
        expectEqual(
            lines,
            columns == 60
                ? [
                    "  x tls://10.77.1.9  down  tls/certificate-untrusted:", margin + "10.77.1.9 presents a certificate",
                    margin + "that no trusted authority has", margin + "issued",
                ]
                : [
                    "  x tls://10.77.1.9  down  tls/certificate-untrusted: 10.77.1.9 presents a",
                    margin + "certificate that no trusted authority has issued",
                ])
    }

    @Test func `if there are targets, they decide`() throws {
        guard case .path(let broken) = Samples.path(), case .server(_, let up) = Samples.server(),
            case .server(_, let unknown) = Samples.server(0, "192.0.2.9:22", .unknown)
        else { return }
        let working = try RecordEncoderTests.update(Samples.hello)
        func verdict(_ path: PathUpdate, _ targets: [ServerUpdate]) -> StatusDocument.Verdict {
            StatusDocument(moment: Samples.moment(9), path: path, targets: targets).verdict
        }
        expectEqual(verdict(broken, []), .doesNotHold)
        expectEqual(verdict(working, []), .holds)
        expectEqual(verdict(broken, [up]), .holds)
        expectEqual(verdict(working, [up, unknown]), .undetermined)
    }
}

/// The text of a path's changes.
@Suite struct PathChangesTests {
    private func path(_ addresses: [IPPrefix], gateways: [String]) -> NetworkPath {
        let eth0 = NetworkInterface(
            name: "eth0", index: 2, type: .wired, isVirtual: false, isExpensive: false, level: .routable, addresses: addresses)
        return NetworkPath(
            status: .satisfied, interface: eth0, interfaceV4: eth0, supportsDNS: true,
            gateways: gateways.map { .init(Samples.address($0)) }, interfaces: [eth0], notable: [2])
    }

    private let first = Samples.prefix("198.18.0.7", 24)

    @Test func `a new address and a changed gateway are named`() {
        let old = path([first], gateways: ["198.18.0.1"])
        let new = path([first, Samples.prefix("203.0.113.5", 24)], gateways: ["198.18.0.2"])
        expectEqual(
            PathChanges(old: old, new: new, isUnicode: true).texts,
            ["+203.0.113.5/24", "gateway 198.18.0.1 → 198.18.0.2"])
        expectEqual(
            PathChanges(old: new, new: old, isUnicode: false).texts,
            ["-203.0.113.5/24", "gateway 198.18.0.2 -> 198.18.0.1"])
        expectEqual(PathChanges(old: new, new: new, isUnicode: true).texts, [])
    }

    @Test func `changed name servers are named`() {
        func path(_ servers: String...) -> NetworkPath {
            NetworkPath(status: .satisfied, nameServers: servers.map(Samples.address))
        }
        func texts(_ old: NetworkPath, _ new: NetworkPath) -> [String] { PathChanges(old: old, new: new, isUnicode: false).texts }
        expectEqual(
            texts(path("192.0.2.53"), path("192.0.2.53", "192.0.2.54")), ["DNS server 192.0.2.53 -> 192.0.2.53 192.0.2.54"])
        expectEqual(texts(path("192.0.2.53"), path()), ["DNS server 192.0.2.53 -> none"])
        expectEqual(texts(path("192.0.2.53"), path("192.0.2.53")), [])
    }

    @Test func `more than four addresses are counted`() {
        let many = (1...7).map { Samples.prefix("203.0.113.\($0)", 24) }
        let texts = PathChanges(old: path([], gateways: []), new: path(many, gateways: []), isUnicode: true).texts
        #expect(texts.count == 5 && texts.last == "3 more addresses changed")
        let rows = InterfaceTable.rows(path(many, gateways: []).interfaces, style: TextStyle())
        #expect(rows.first?.hasSuffix("203.0.113.4/24 and 3 more") == true)
        let all = InterfaceTable.rows(path(many, gateways: []).interfaces, style: TextStyle(), listsAllAddresses: true)
        #expect(all.first?.hasSuffix("203.0.113.7/24") == true)
    }

    @Test func `more than four addresses are counted on a narrow terminal too`() throws {
        let many = (1...7).map { Samples.prefix("203.0.113.\($0)", 24) }
        let (old, new) = (path([], gateways: ["198.18.0.1"]), path(many, gateways: ["198.18.0.2"]))
        let update = PathUpdate(
            path: new, reasons: [.addressesChanged, .gatewaysChanged], isInitial: false, coalescedEventCount: 0,
            moment: Samples.moment(1))
        let first = PathUpdate(path: old, reasons: [], isInitial: true, coalescedEventCount: 0, moment: Samples.moment(0))
        for isVerbose in [false, true] {
            for columns in 60...240 {
                let status = StatusText(
                    document: StatusDocument(moment: Samples.moment(1), path: update, targets: []), style: TextStyle(),
                    showsEvidence: isVerbose, columns: columns)
                var live = LiveLines(
                    header: Samples.header, style: TextStyle(isColored: true), isVerbose: isVerbose, columns: columns)
                _ = live.lines(Record(event: .path(first)))
                let lines = status.lines + live.lines(Record(event: .path(update)))
                let rows = lines.filter { $0.contains("routable") }
                try #require(rows.count == 2)
                for row in rows {
                    expectEqual(Self.count(in: row, of: #/ and (\d+) more$/#, all: #/(\d+) addresses$/#), 7, "\(row)")
                }
                let changes = try #require(lines.first { $0.contains("+203.0.113.1/24") })
                // Seven addresses and the gateway. If everything else fits, the remaining addresses are counted as addresses.
                let plain = changes.replacing("\u{1b}[2m", with: "").replacing("\u{1b}[0m", with: "")
                let count = Self.count(in: plain, of: #/ and (\d+) more$/#, all: #/(\d+) changes$/#)
                #expect(count == 8 || plain.contains("3 more addresses changed, gateway"))
                #expect(!plain.contains("..."))
            }
        }
    }

    /// Returns the number of addresses that a line lists and counts.
    private static func count(in line: String, of more: Regex<(Substring, Substring)>, all: Regex<(Substring, Substring)>) -> Int
    {
        if let match = line.firstMatch(of: all) { return Int(match.1) ?? 0 }
        return line.matches(of: #/203\.0\.113\.\d/#).count + (line.firstMatch(of: more).flatMap { Int($0.1) } ?? 0)
    }

    @Test func `another interface is named`() {
        #expect(
            PathChanges(old: path([first], gateways: []), new: Samples.satisfied, isUnicode: true).texts.contains("+fe80::7/64"))
    }
}

@Suite struct HookEnvironmentTests {
    @Test func `every hook variable is set`() {
        let record = Record(
            event: Samples.server(0, "192.0.2.9:22", .down, cause: Samples.refused), seq: 12, superseded: 3)
        let variables = Dictionary(HookEnvironment.variables(for: record)) { first, _ in first }
        expectEqual(
            variables,
            [
                "NETWATCH_TYPE": "target", "NETWATCH_STATUS": "down", "NETWATCH_TARGET": "192.0.2.9:22",
                "NETWATCH_ADDRESS": "192.0.2.9", "NETWATCH_INTERFACE": "eth0", "NETWATCH_INTERFACE_TYPE": "wired",
                "NETWATCH_CAUSE": "tcp/refused", "NETWATCH_DETAIL": "192.0.2.9 refuses port 22", "NETWATCH_SEQ": "12",
                "NETWATCH_TS": "2026-08-02T12:00:01.000Z", "NETWATCH_SUPERSEDED": "3",
            ])
    }

    @Test func `hooks run only on changes`() {
        let changes = Samples.oneOfEach.filter { HookEnvironment.isChange(Record(event: $0)) }
        expectEqual(changes, [Samples.path(), Samples.server()])
        #expect(!HookEnvironment.isChange(Record(event: Samples.server(0, "192.0.2.9:22", .unknown, initial: true))))
    }
}
