import Expectations
import Testing

@testable import Reachability

/// Questions and answers of DNS as bytes.
@Suite struct DNSMessageTests {
    private static let query = DNSQuery(name: DNSName(labels: ["example".utf8, "com".utf8]) ?? .root, type: .a)
    private static let question = query.message(number: 0x1234, isRecursive: true)

    private func message(_ answers: [[UInt8]], authority: [[UInt8]] = [], additional: [[UInt8]] = []) throws -> DNSMessage {
        try #require(DNSMessage(DNSBytes.answer(to: Self.question, answers, authority: authority, additional: additional)))
    }

    @Test func `a question has RD by setting, AD, and an OPT record of 1,232 bytes that asks for signatures`() {
        let name = DNSBytes.name("example.com")
        var expected: [UInt8] = [0x12, 0x34, 0x01, 0x20, 0, 1, 0, 0, 0, 0, 0, 1]
        expected += name
        expected += [0, 1, 0, 1, 0, 0, 41, 0x04, 0xd0, 0, 0, 0x80, 0, 0, 0]
        expectEqual(Self.question, expected)
        expectEqual(Self.query.message(number: 0, isRecursive: false)[2], 0)
        expectEqual(Array(DNSQuery(name: .root, type: .soa).message(number: 1, isRecursive: true)[12...16]), [0, 0, 6, 0, 1])
    }

    @Test(arguments: [
        ("/example.com", "/example.com"), ("/Example.COM.?type=a", "/example.com"), ("/.?type=SOA", "/.?type=SOA"),
        ("/_25._tcp.mail.example?type=52", "/_25._tcp.mail.example?type=TLSA"), ("/a?type=TYPE65534", "/a?type=TYPE65534"),
        ("/a?type=https", "/a?type=HTTPS"), ("/müller.de?type=MX", "/xn--mller-kva.de?type=MX"),
        ("/0/25.2.0.192.in-addr.arpa?type=PTR", "/0/25.2.0.192.in-addr.arpa?type=PTR"), ("/*.example", "/*.example"),
    ])
    func `a path has one usual form`(text: String, path: String) throws { try expectEqual(DNSQuery(text[...]).path, path) }

    @Test(arguments: [
        ("", "path: the name to ask for is missing"), ("/", "path: the name to ask for is missing"),
        ("?type=A", "path: the name to ask for is missing"), ("/a..b", "path: 'a..b' has an empty label"),
        ("/..", "path: '..' has an empty label"), ("/a b", "path: 'a b' is not a DNS name"),
        ("/a#b", "path: '#' does not belong to a name"), ("/a?class=CH", "path: 'class=CH' is not known behind '?'"),
        ("/a?type", "path: 'type' is not known behind '?'"), ("/a?", "path: '' is not known behind '?'"),
        ("/a?type=", "path: type: '' is neither"), ("/a?type=65536", "path: type: '65536' is neither"),
        ("/a?type=AXFR", "path: type: 'AXFR' is neither"), ("/a?type=252", "path: type: TYPE252 is not a type that a probe can"),
        ("/a?type=A&type=A", "path: type: is given twice"),
        ("/\(String(repeating: "a", count: 64))", "path: a label is longer than 63"),
        ("/\(String(repeating: "a.", count: 127))a", "path: is longer than the 253 characters"),
    ])
    func `a path that is no question is refused in one line`(text: String, reason: String) {
        do {
            _ = try DNSQuery(text[...])
            Issue.record("accepted")
        } catch { expectEqual(error.description.hasPrefix(reason), true, "\(error)") }
    }

    @Test(
        arguments: [
            ("dns://192.0.2.1/a", 53, nil), ("dns://[2001:db8::1]:5353/a?type=MX", 5353, nil),
            ("dns+tcp://ns.example/a", 53, nil),
            ("dns+tls://ns.example/.", 853, nil), ("DNS://192.0.2.1/A.", 53, nil),
            ("dns://192.0.2.1", 0, "path: the name to ask"),
            ("dns://[fe80::1%eth0]/a", 53, nil), ("dns://user@192.0.2.1/a", 0, "host: a user name or password"),
            ("dns:///a", 0, "host: is empty"),
        ] as [(String, UInt16, String?)])
    func `a target has a server, a port and a question`(text: String, port: UInt16, reason: String?) throws {
        do {
            let endpoint = try Endpoint(text)
            #expect(endpoint.port == port && endpoint.text == text && reason == nil)
            try expectEqual(Endpoint(text.lowercased().replacing("/a.", with: "/a")), endpoint)
        } catch { expectEqual(reason.map { error.description.hasPrefix($0) }, true, "\(error)") }
    }

    @Test(
        arguments: [
            (1, "c0000201", "A 192.0.2.1"),
            (1, "c00002", "A \\# 3 C00002"),
            (28, "20010db8000000000000000000000001", "AAAA 2001:db8::1"),
            (2, "026e73076578616d706c6500", "NS ns.example."),
            (5, "0161c00c", "CNAME a.example.com."),
            (15, "000a026d78076578616d706c6500", "MX 10 mx.example."),
            (15, "000a00", "MX 10 ."),
            (16, "0361225c0200ff", "TXT \"a\\\"\\\\\" \"\\000\\255\""),
            (16, "", "TXT \\# 0"),
            (16, "0461", "TXT \\# 2 0461"),
            (33, "0001000214e90173076578616d706c6500", "SRV 1 2 5353 s.example."),
            (35, "00010002017300000165076578616d706c6500", "NAPTR 1 2 \"s\" \"\" \"\" e.example."),
            (43, "12340d02abcd", "DS 4660 13 2 ABCD"),
            (48, "0101030d010203", "DNSKEY 257 3 13 AQID"),
            (52, "030101ff", "TLSA 3 1 1 FF"),
            (257, "0005697373756563612e6578616d706c65", "CAA 0 issue \"ca.example\""),
            (257, "000120", "CAA \\# 3 000120"),
            (64, "00000178076578616d706c6500", "SVCB 0 x.example."),
            (
                65, "000100000100060268320268330003000201bb00040004c00002010009000141",
                "HTTPS 1 . alpn=\"h2,h3\" port=443 ipv4hint=192.0.2.1 key9=\"A\""
            ),
            (65, "00010000010009", "HTTPS \\# 7 00010000010009"),
            (65280, "0102", "TYPE65280 \\# 2 0102"),
            (6, "0161000162000101010101010101010101010101010101010101", "SOA a. b. 16843009 16843009 16843009 16843009 16843009"),
        ] as [(UInt16, String, String)])
    func `a record is one line, and data of another form is hexadecimal`(type: UInt16, hexadecimal: String, text: String) throws {
        let digits = Array(hexadecimal)
        let data = stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0..<($0 + 2)]), radix: 16) }
        let found = try message([DNSBytes.record(type, data)])[.answer].map(\.text)
        expectEqual(found, ["example.com. 60 IN \(text)"])
    }

    @Test func `names have escapes, and other classes have hexadecimal data`() throws {
        let owner: [UInt8] = [3, 46, 7, 64, 0]
        let found = try message([DNSBytes.record(1, owner: owner, of: 3, [1, 2, 3, 4])])[.answer].map(\.text)
        expectEqual(found, ["\\.\\007\\@. 60 CLASS3 A \\# 4 01020304"])
    }

    @Test func `the sections, the codes, the serial number and the end of signatures are read`() throws {
        let options = DNSBytes.record(41, ttl: 1 << 24, owner: [0], of: 1232, [])
        let signed = DNSBytes.signature(until: 1_800_000_000)
        let found = try message(
            [DNSBytes.record(1, ttl: 4_294_967_295, [192, 0, 2, 1]), signed], authority: [DNSBytes.soa],
            additional: [options, DNSBytes.record(1, [192, 0, 2, 2])])
        #expect(found.damage == nil && found.code.description == "BADVERS")
        #expect(found.counts == [.answer: 2, .authority: 1, .additional: 1] && found[.additional].count == 1)
        let answer = DNSAnswer(found, DNSExpectation(DNSSettings()))
        #expect(answer.ttl == 60 && answer.serial == 77 && answer.signatureEnd == 1_800_000_000 && answer.flags == ["RD", "RA"])
        expectEqual(
            found[.answer][1].text, "example.com. 60 IN RRSIG A 13 2 60 20270115080000 20270114080000 4660 example.com. AQIDBA==")
    }

    @Test(
        arguments: [
            [0xc0, 12 + 17], [0xc0, 0xff], [0xff, 0xff], [0x80], [63], [],
        ] as [[UInt8]])
    func `names that lead forward, to themselves or behind the end are damage`(owner: [UInt8]) throws {
        let found = try message([DNSBytes.record(1, owner: owner, [1, 2, 3, 4])])
        #expect(found.damage != nil && found[.answer].isEmpty && found.counts[.answer] == 1)
    }

    @Test func `a chain of pointers ends, and no more than a limit of records is read`() throws {
        // Each name is a pointer to the one before it, so that the last one has as many steps as there are records.
        var (bytes, records): (Int, [[UInt8]]) = (Self.question.count - 11, [])
        for place in 0..<700 {
            let target = place == 0 ? 12 : bytes - 12
            records.append(
                DNSBytes.record(99, owner: [0xc0 | UInt8(clamping: target >> 8), UInt8(truncatingIfNeeded: target)], []))
            bytes += 12
        }
        let found = try message(records)
        #expect(found.damage == nil && found[.answer].count == DNSMessage.recordLimit && found.counts[.answer] == 700)
        expectEqual(found[.answer].last?.text, "example.com. 60 IN TYPE99 \\# 0")
    }

    @Test(arguments: [
        (0, true), (1, false), (2, false), (3, false), (4, false), (5, true), (6, false), (7, true), (8, false), (9, false),
    ])
    func `an answer has the number, QR and the question in either case`(change: Int, isAnswer: Bool) throws {
        var bytes = DNSBytes.answer(to: Self.question)
        switch change {
        case 1: bytes[1] ^= 1
        case 2: bytes[2] &= 0x7f
        case 3: bytes[2] |= 0x10
        case 4: bytes[13] = UInt8(ascii: "f")
        case 5: for place in 13..<20 { bytes[place] &= 0xdf }
        case 6: bytes[bytes.count - 3] = 28
        // An error without the question.
        case 7: bytes = Array(bytes[0..<3]) + [0x81, 0, 0, 0, 0, 0, 0, 0, 0]
        case 8: bytes = Array(bytes[0..<3]) + [0x80, 0, 0, 0, 0, 0, 0, 0, 0]
        case 9: bytes[bytes.count - 1] = 3
        default: break
        }
        expectEqual(DNSMessage(bytes)?.answers(Self.query, number: 0x1234), isAnswer)
    }

    @Test func `every prefix and every flipped byte of good answers is read without a fault`() throws {
        let records: [[UInt8]] = [
            DNSBytes.record(1, [192, 0, 2, 1]), DNSBytes.record(5, [1, 97, 0xc0, 12]), DNSBytes.soa,
            DNSBytes.record(15, [0, 10, 0xc0, 12]), DNSBytes.record(16, [3, 97, 98, 99]), DNSBytes.signature(until: 9),
            DNSBytes.record(65, [0, 1, 0, 0, 1, 0, 3, 2, 104, 50, 0, 4, 0, 4, 192, 0, 2, 1]),
            DNSBytes.record(257, [0, 5, 105, 115, 115, 117, 101, 99, 97]),
            DNSBytes.record(35, [0, 1, 0, 2, 1, 115, 0, 0, 0xc0, 12]),
            DNSBytes.record(41, owner: [0], of: 1232, []),
        ]
        let good = DNSBytes.answer(to: Self.question, records, authority: [DNSBytes.soa], additional: [DNSBytes.record(28, [1])])
        let expectation = DNSExpectation(DNSSettings())
        for length in 0..<good.count {
            let message = DNSMessage(good.prefix(length))
            #expect(message == nil ? length < 29 : length >= 29 && message?.damage != nil, "\(length)")
        }
        for place in good.indices {
            for bits: UInt8 in [0x01, 0x80, 0xc0, 0xff] {
                var bytes = good
                bytes[place] ^= bits
                guard let message = DNSMessage(bytes) else { continue }
                let answer = DNSAnswer(message, expectation)
                for section in DNSMessage.Section.allCases {
                    expectEqual(answer[section].texts.allSatisfy { $0.utf8.allSatisfy { $0 >= 0x20 } }, true)
                    #expect(message[section].count <= answer[section].count)
                }
            }
        }
    }

    @Test(
        arguments: [
            ([], [], 0, nil), ([], [], 3, "NOERROR"), (["NXDOMAIN", "0"], [], 3, nil), (["nxdomain"], [], 0, "NXDOMAIN"),
            ([], ["IN A 192\\.0\\.2\\.1$"], 0, nil), ([], ["192.0.2.9"], 0, "192.0.2.9"), ([], ["!192.0.2.9"], 0, nil),
            ([], ["!192.0.2.1"], 0, "192.0.2.1"), ([], ["A", "MX"], 0, "MX"),
        ] as [([String], [String], UInt16, String?)])
    func `the code comes first, then the sections`(codes: [String], answers: [String], code: UInt16, expectation: String?) throws
    {
        var settings = DNSSettings()
        for code in codes { try settings.allowResponseCode(code) }
        for text in answers { try settings.expect(text, in: .answer) }
        let bytes = DNSBytes.answer(to: Self.question, code: code, [DNSBytes.record(1, [192, 0, 2, 1])])
        let message = try #require(DNSMessage(bytes))
        expectEqual(DNSExpectation(settings).mismatch(of: message)?.expectation, expectation)
    }

    @Test func `settings refuse what is no code or expression, and have limits`() throws {
        var settings = DNSSettings()
        for text in ["", "NO", "4096", "-1", "+1", "1 "] {
            #expect(throws: DNSSettings.InvalidValue.self) { try settings.allowResponseCode(text) }
        }
        #expect(throws: DNSSettings.InvalidValue.self) { try settings.expect("(", in: .answer) }
        expectEqual(settings, DNSSettings())
        for number in 0..<32 { try settings.allowResponseCode("\(number)") }
        try settings.allowResponseCode("0")
        #expect(throws: DNSSettings.InvalidValue.self) { try settings.allowResponseCode("99") }
        for _ in 0..<32 { try settings.expect("a", in: .authority) }
        try settings.expect("a", in: .additional)
        #expect(throws: DNSSettings.InvalidValue.self) { try settings.expect("a", in: .authority) }
        settings = DNSSettings()
        expectEqual(settings.allowedResponseCodes, ["NOERROR"])
        try settings.allowResponseCode("BADCOOKIE")
        settings.requestsRecursion = false
        expectEqual(DNSSettings(settings.recorded), settings)
    }
}
