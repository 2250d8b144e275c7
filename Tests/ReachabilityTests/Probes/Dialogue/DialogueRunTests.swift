import Expectations
import Foundation
import Pacing
import Testing

@testable import Reachability

/// Dialogues without a network: what the client says to a server that the test plays.
@Suite struct DialogueRunTests {
    private static let server = "192.0.2.1"

    private static func settings(_ steps: [[String: String]]) throws -> ProbeSettings {
        var settings = Transcript.unscheduled()
        for step in steps {
            if let expression = step["expect"] { try settings.dialogue.expect(expression) }
            if let text = step["send"] { try settings.dialogue.send(text) }
            if step["starttls"] != nil { try settings.dialogue.startTLS() }
        }
        return settings
    }

    private static func preset(_ preset: DialogueSettings.Preset) -> ProbeSettings {
        var settings = Transcript.unscheduled()
        settings.dialogue.use(preset)
        return settings
    }

    /// A dialogue on a connection that is established.
    private static func begun(_ settings: ProbeSettings, _ text: String = "dialogue://mail.example:25") throws -> any StreamRun {
        let plan = DialoguePlan(try Endpoint(text), settings)
        let run = plan.makeRun(deadline: 3_000_000_000)
        run.connected(1_000_000)
        return run
    }

    /// Plays a server's texts in turn, a millisecond after each other. - Returns: what the client says to each, the first before the server.
    private static func played(_ run: any StreamRun, _ texts: [String]) -> [String] {
        var said = [text(run.takeOutput())]
        for (index, text) in texts.enumerated() {
            Array(text.utf8).withUnsafeBytes { run.receive($0, now: Int64(index + 2) * 1_000_000) }
            said.append(Self.text(run.takeOutput()))
        }
        return said
    }

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    /// The cause that the kind finds; `nil` for a dialogue that is complete.
    private static func cause(_ run: any StreamRun, _ settings: ProbeSettings = ProbeSettings()) throws -> Cause? {
        let moment = Moment(Date())
        let address = try #require(IPAddress(server))
        let connection = ProbedConnection(
            levels: run.result, address: address, route: ChosenRoute(interface: 2),
            endpoint: try Endpoint("dialogue://mail.example:25"),
            settings: settings, continuation: nil, started: moment, now: moment)
        return DialogueKind().judge(connection).failure?.cause
    }

    @Test func `the client speaks in turn, and lines that do not match are read past`() throws {
        let settings = try Self.settings([
            ["expect": "^220 (?P<host>[a-z.]+) (ESMTP)", "send": "EHLO $${host} ${host} ${2} ${missing}"],
            ["expect": "^250 "], ["send": "QUIT\n"],
        ])
        let run = try Self.begun(settings)
        let said = Self.played(run, ["220-hel", "lo\r\n22", "0 mx.example ESMTP\r\n250-one\r\n", "250 two\r\nlater"])
        expectEqual(said, ["", "", "", "EHLO ${host} mail.example ESMTP \r\n", "QUIT\n"])
        #expect(run.hasEnded && run.endsGracefully)
        try expectNil(Self.cause(run))
        let facts = run.result.facts[DialogueFacts.self]
        #expect(facts.done == 4 && facts.captures == ["host": "mx.example"] && facts.answer == "250 two")
        #expect(run.result.processingNanoseconds == 1_000_000 && run.result.transferNanoseconds == 3_000_000)
        expectEqual(try JSONDecoder().decode(LevelResult.self, from: JSONEncoder().encode(run.result)), run.result)
    }

    @Test(
        arguments: [
            (
                ["550 go away\r\n"], true, "unexpected-answer",
                "this answers \"550 go away\", and does not send a line that matches '^220' in time"
            ),
            (["22"], true, "unexpected-answer", "this answers \"22\", and does not send a line that matches '^220' in time"),
            ([], true, "timeout", "this accepts the connection and does not send a line that matches '^220' in time"),
            ([], false, "unexpected-answer", "this closes the connection instead of sending a line that matches '^220'"),
            (
                ["554 no\r\n"], false, "unexpected-answer",
                "this answers \"554 no\", and closes the connection before a line that matches '^220'"
            ),
        ] as [([String], Bool, String, String)])
    func `what does not come is the server's fault`(texts: [String], isAtDeadline: Bool, code: String, detail: String) throws {
        let settings = try Self.settings([["expect": "^220"]])
        let run = try Self.begun(settings)
        _ = Self.played(run, texts)
        expectEqual(run.hasEnded, false)
        if isAtDeadline { run.deadlineReached(nil) } else { run.inputEnded(9_000_000) }
        let cause = try #require(try Self.cause(run))
        expectEqual(cause.name, "dialogue/\(code)")
        expectEqual(cause.detail, detail.replacing("this", with: Self.server))
        expectEqual(run.result.isAtDeadline, isAtDeadline)
    }

    @Test func `the last line needs no end`() throws {
        let run = try Self.begun(try Self.settings([["expect": "^bye"]]))
        _ = Self.played(run, ["hello\nbye"])
        run.inputEnded(9_000_000)
        try expectNil(Self.cause(run))
    }

    @Test func `a server that is never done is stopped`() throws {
        for text in [String(repeating: "x", count: 8_193), String(repeating: "x\n", count: 32_769)] {
            let run = try Self.begun(try Self.settings([["expect": "^220"]]))
            _ = Self.played(run, [text])
            expectEqual(run.hasEnded, true)
            try expectEqual(Self.cause(run)?.name, "dialogue/unexpected-answer")
        }
    }

    @Test(
        arguments: [
            (
                .smtp, ["220 mx\r\n", "250-mx\r\n250 STARTTLS\r\n", "220 go\r\n"],
                ["", "EHLO netwatch.invalid\r\n", "STARTTLS\r\n"]
            ),
            (.imap, ["* OK hello\r\n", "a OK begin\r\n"], ["", "a STARTTLS\r\n"]),
            (.pop3, ["+OK hello\r\n", "+OK begin\r\n"], ["", "STLS\r\n"]),
            (.ftp, ["220-hello\r\n220 ready\r\n", "234 go\r\n"], ["", "AUTH TLS\r\n"]),
        ] as [(DialogueSettings.Preset, [String], [String])])
    func `a preset begins TLS when the server consents, and is not up if it refuses`(
        preset: DialogueSettings.Preset, texts: [String], expected: [String]
    ) throws {
        let settings = Self.preset(preset)
        let run = try Self.begun(settings)
        let said = Self.played(run, texts)
        expectEqual(Array(said.dropLast()), expected)
        // A record of a handshake (RFC 8446 section 5.1).
        #expect(said.last?.utf8.first == 0x16 && !run.hasEnded)
        // What the server answers to the request for TLS, or that it closes the connection in place of an answer.
        let refusal = preset == .imap ? "a NO not today\r\n" : preset == .pop3 ? "-ERR not today\r\n" : "454\r\n"
        for said in [refusal, ""] {
            let run = try Self.begun(settings)
            _ = Self.played(run, texts.dropLast() + [said])
            run.inputEnded(9_000_000)
            try expectEqual(Self.cause(run)?.name, "dialogue/starttls-refused")
        }
    }

    @Test(
        arguments: [
            (.smtp, ["220-wait\r\n"], true, "timeout"), (.smtp, ["220 mx\r\n", "250-mx\r\n"], true, "timeout"),
            (.smtp, ["220 mx\r\n", "421\r\n"], false, "unexpected-answer"), (.smtp, ["220 mx\r\n"], false, "unexpected-answer"),
            (.imap, ["* OK a\r\n", "* BYE down\r\n"], false, "unexpected-answer"),
            (.imap, ["* BYE\r\n"], false, "unexpected-answer"),
            (.xmpp, ["<stream:stream><stream:error><host-unknown/></stream:error>"], false, "unexpected-answer"),
            (.mysql, [], false, "unexpected-answer"), (.postgres, ["E\0\0"], false, "unexpected-answer"),
            (.postgres, ["N"], false, "starttls-refused"),
        ] as [(DialogueSettings.Preset, [String], Bool, String)])
    func `only a server that was asked for TLS, or that offers none, refuses it`(
        preset: DialogueSettings.Preset, texts: [String], isAtDeadline: Bool, code: String
    ) throws {
        let run = try Self.begun(Self.preset(preset))
        _ = Self.played(run, texts)
        if isAtDeadline { run.deadlineReached(nil) } else { run.inputEnded(9_000_000) }
        try expectEqual(Self.cause(run)?.name, "dialogue/\(code)")
    }

    @Test func `replies of mail servers need no text, and may have several lines`() throws {
        let run = try Self.begun(Self.preset(.smtp))
        let said = Self.played(run, ["220\r\n", "250-mx\r\n250-STARTTLS\r\n250\r\n", "220-go\r\n220\r\n"])
        #expect(said.last?.utf8.first == 0x16 && !run.hasEnded)
    }

    @Test func `ten thousand empty lines cost no more than their bytes, and a captured text is cut`() throws {
        let lines = try Self.begun(try Self.settings([["expect": "^220"]]))
        _ = Self.played(lines, [String(repeating: "\n", count: 60_000)])
        lines.inputEnded(9_000_000)
        expectEqual(lines.result.facts[DialogueFacts.self].others, ["", "", "", ""])
        let text = String(repeating: "${1}", count: 1_000)
        let echo = try Self.begun(try Self.settings([["expect": "(x+)", "send": text]]))
        expectEqual(Self.played(echo, [String(repeating: "x", count: 8_000) + "\n"]).last?.utf8.count, 8_194)
    }

    @Test func `a mail server that does not offer TLS refuses it at once`() throws {
        let run = try Self.begun(Self.preset(.smtp))
        _ = Self.played(run, ["220 mx\r\n", "250-mx\r\n250 SIZE 1000\r\n"])
        expectEqual(run.hasEnded, true)
        let cause = try #require(try Self.cause(run))
        #expect(cause.name == "dialogue/starttls-refused" && cause.evidence["other_lines"] == .list(["250-mx", "250 SIZE 1000"]))
        expectEqual(cause.detail, "\(Self.server) offers no TLS: its answer ends with \"250 SIZE 1000\"")
    }

    @Test func `text between the consent and the handshake is refused`() throws {
        let run = try Self.begun(Self.preset(.smtp))
        _ = Self.played(run, ["220 mx\r\n", "250 STARTTLS\r\n", "220 go\r\n250 injected\r\n"])
        let cause = try #require(try Self.cause(run))
        #expect(cause.name == "dialogue/unexpected-answer" && cause.detail.contains("is not the handshake"))
    }

    @Test func `ssh and redis need no TLS`() throws {
        let ssh = try Self.begun(Self.preset(.ssh))
        expectEqual(Self.played(ssh, ["hello\nSSH-2.0-OpenSSH_9.2\r\n"]), ["", "SSH-2.0-netwatch\r\n"])
        try expectNil(Self.cause(ssh))
        let redis = try Self.begun(Self.preset(.redis))
        expectEqual(Self.played(redis, ["-NOAUTH Authentication required.\r\n"]), ["PING\r\n", "QUIT\r\n"])
        try expectNil(Self.cause(redis))
        let loading = try Self.begun(Self.preset(.redis))
        _ = Self.played(loading, ["-LOADING the dataset\r\n"])
        try expectEqual(Self.cause(loading)?.detail.hasPrefix("\(Self.server) answers \"-LOADING the dataset\""), true)
    }

    @Test func `xmpp names the host, and waits for the features`() throws {
        let run = try Self.begun(Self.preset(.xmpp))
        let said = Self.played(
            run,
            [
                "<stream:stream><stream:features><start", "tls xmlns='urn'/></stream:features>", "<proceed xmlns='urn'>",
                "</proceed>",
            ])
        expectEqual(said[0].contains("to='mail.example'"), true)
        expectEqual(said[2].hasPrefix("<starttls "), true)
        #expect(said[3].isEmpty && said[4].utf8.first == 0x16)
        let without = try Self.begun(Self.preset(.xmpp))
        _ = Self.played(without, ["<stream:stream><stream:features></stream:features>"])
        try expectEqual(Self.cause(without)?.name, "dialogue/starttls-refused")
    }

    // MARK: Messages

    @Test(arguments: [DialogueMessage.postgres, .mysql, .mysqlLogin, .ldap])
    func `a message is complete with its last byte, and no prefix or changed byte of it does harm`(message: DialogueMessage)
        throws
    {
        let bytes = Self.consent(message)
        expectEqual(message.read(bytes[...]), .accepted(bytes.count))
        expectEqual(message.read((bytes + [1, 2])[...]), .accepted(bytes.count))
        for count in 0..<bytes.count { expectEqual(message.read(bytes[..<count]), .incomplete) }
        for place in bytes.indices {
            for bit in 0..<8 {
                var changed = bytes
                changed[place] ^= 1 << UInt8(bit)
                _ = message.read(changed[...])
            }
        }
    }

    @Test func `a server without TLS says so in its message`() throws {
        expectEqual(DialogueMessage.postgres.read([UInt8(ascii: "N")][...]), .withoutTLS("its answer is N"))
        var greeting = Self.consent(.mysql)
        greeting[greeting.count - 1] = 0
        expectEqual(DialogueMessage.mysql.read(greeting[...]), .withoutTLS("its greeting does not offer it"))
        let error: [UInt8] = [9, 0, 0, 0, 0xff, 0x6a, 0x04] + Array("#08S01".utf8)
        expectEqual(DialogueMessage.mysql.read(error[...]), .refused("#08S01"))
        var response = Self.consent(.ldap)
        // Active Directory writes every length with four bytes.
        let long: [UInt8] = [
            0x30, 0x84, 0, 0, 0, 0x10, 0x02, 0x01, 0x01, 0x78, 0x84, 0, 0, 0, 0x07, 0x0a, 0x01, 0x00, 0x04, 0x00, 0x04, 0x00,
        ]
        expectEqual(DialogueMessage.ldap.read(long[...]), .accepted(long.count))
        response[9] = 51
        expectEqual(DialogueMessage.ldap.read(response[...]), .refused("the result code of its answer is 51"))
        response[9] = 2
        expectEqual(DialogueMessage.ldap.read(response[...]), .withoutTLS("the result code of its answer is 2"))
    }

    private static func consent(_ message: DialogueMessage) -> [UInt8] {
        switch message {
        case .postgres: return [UInt8(ascii: "S")]
        case .mysqlLogin: return [3, 0, 0, 3, 0xff, 0x15, 0x04]
        case .mysql:
            let content = [10] + Array("8.0.1\0".utf8) + [1, 0, 0, 0] + [UInt8](repeating: 7, count: 8) + [0, 0xff, 0x0f]
            return [UInt8(content.count), 0, 0, 0] + content
        case .ldap: return [0x30, 0x0c, 0x02, 0x01, 0x01, 0x78, 0x07, 0x0a, 0x01, 0x00, 0x04, 0x00, 0x04, 0x00]
        }
    }

    // MARK: Settings

    @Test func `a step that cannot work is refused when it is added`() throws {
        var settings = DialogueSettings()
        for text in ["(", String(repeating: "x", count: 5_000), String(repeating: "(x)", count: 17)] {
            #expect(throws: DialogueSettings.InvalidStep.self) { try settings.expect(text) }
        }
        #expect(throws: DialogueSettings.InvalidStep.self) { try settings.send(String(repeating: "x", count: 4_097)) }
        try settings.startTLS()
        #expect(throws: DialogueSettings.InvalidStep.self) { try settings.startTLS() }
        for _ in 1..<64 { try settings.send("x") }
        #expect(throws: DialogueSettings.InvalidStep.self) { try settings.send("x") }
    }

    @Test func `every preset compiles, and begins TLS once at most`() {
        for preset in DialogueSettings.Preset.allCases {
            var settings = DialogueSettings()
            settings.use(preset)
            #expect(!settings.isEmpty && settings.steps.count { $0 == .startTLS } <= 1)
        }
    }
}
