import Expectations
import Expressions
import FoundationEssentials
import Testing

@testable import Reachability

/// The cause of an HTTP probe, as a function of the bytes that its servers send.
@Suite struct CauseOfHTTPTests {
    private struct Row {
        /// The responses of the target and of the servers to which it redirects.
        let responses: [String]
        var expectation = HTTPExpectation()
        var ending = HTTPEnding.exchange
        var isFollowing = true
        var isCanary = false
        var url = "http://a.example/"
        var isInsecure = false
        /// Whether the last server closes the connection.
        var isClosed = true
    }

    private func cause(_ row: Row) throws -> Cause? {
        var probe = HTTPProbe(
            try HTTPProbeRequest(url: HTTPURL(row.url)), expecting: row.expectation, isFollowing: row.isFollowing,
            isCanary: row.isCanary, verifiesCertificates: !row.isInsecure)
        for response in row.responses {
            probe.receive(Array(response.utf8))
            _ = probe.next()
        }
        if row.isClosed, row.ending == .exchange { probe.endOfInput() }
        // A recording has the facts.
        let facts = try JSONDecoder().decode(HTTPProbeFacts.self, from: JSONEncoder().encode(probe.facts))
        expectEqual(facts, probe.facts)
        return CauseOfHTTP(facts: facts, ending: row.ending, host: "a.example", elapsedNanoseconds: 7_000_000).cause
    }

    private func text(_ row: Row) throws -> String? {
        try cause(row).map { "\($0.layer.rawValue)/\($0.code.rawValue): \($0.detail)" }
    }

    private static let found = "HTTP/1.1 302 Found\r\nLocation: http://portal.lan/login\r\n\r\n"
    private static let page = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nlogin"

    @Test func `an accepted response has no cause, also after an undeclared redirect`() throws {
        try expectNil(text(Row(responses: [Self.page])))
        try expectNil(text(Row(responses: [Self.found, Self.page])))
        try expectNil(text(Row(responses: [Self.page], expectation: HTTPExpectation(body: Expression("login")))))
    }

    @Test func `a status that is not accepted is named`() throws {
        let cause = try cause(Row(responses: ["HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\nno"]))
        #expect(cause?.layer == .http && cause?.code == .status)
        expectEqual(cause?.detail, "a.example answers 503 Service Unavailable, not 200-299")
        expectEqual(
            cause?.evidence,
            [
                "elapsed_ms": .number(7), "status": .number(503), "http_version": .text("1.1"), "body_bytes": .number(2),
                "expectation": .text("200-299"),
            ])
        try expectEqual(
            text(Row(responses: [Self.found, "HTTP/1.1 404 \r\n\r\n"])),
            "http/status: a.example redirects to http://portal.lan/login, which answers 404, not 200-299")
        // The status is known before the deadline and before the limit.
        try expectEqual(
            text(Row(responses: ["HTTP/1.1 503 Busy\r\n\r\n"], ending: .deadline)),
            "http/status: a.example answers 503 Busy, not 200-299")
    }

    @Test func `a deadline is a timeout`() throws {
        try expectEqual(
            text(Row(responses: [], ending: .deadline)), "http/timeout: a.example does not answer the request in time")
        try expectEqual(
            text(Row(responses: ["HTTP/1.1 2"], ending: .deadline)),
            "http/timeout: a.example does not send a complete head in time")
        try expectEqual(
            text(Row(responses: ["HTTP/1.1 200 OK\r\n\r\nslo"], ending: .deadline)),
            "http/timeout: a.example does not send the complete response in time")
        try expectEqual(
            text(Row(responses: ["SSH-2"], ending: .deadline)),
            "http/invalid-response: a.example does not speak HTTP: it answers 'SSH-2'")
    }

    @Test(arguments: [
        ("", "closes the connection without a response"),
        ("HTTP/1.1 200", "closes the connection before its header fields are complete"),
        ("SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP: it answers 'SSH-2.0-OpenSSH_9.2'"),
        ("PRI * HTTP/2.0\r\n", "speaks only HTTP/2, and the probe speaks HTTP/1.1"),
        ("\u{15}\u{3}\u{1}\0\u{2}", "answers with TLS instead of HTTP; use https://"),
        ("HTTP/2 200\r\n", "answers with another version of HTTP: 'HTTP/2 200'"),
        ("HTTP/1.1 OK\r\n", "answers with an invalid status line: 'HTTP/1.1 OK'"),
        ("HTTP/1.1 200 OK\r\nbad\r\n", "sends an invalid header field: 'bad'"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n", "sends an invalid Content-Length: '1, 2'"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "sends an invalid chunk: '-1'"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", "closes the connection before its body is complete"),
        ("HTTP/1.1 101 Switching\r\n\r\n", "changes the protocol (status 101), which the probe did not request"),
    ])
    func `an invalid response is named`(response: String, phrase: String) throws {
        try expectEqual(text(Row(responses: [response])), "http/invalid-response: a.example \(phrase)")
    }

    @Test func `a limit is named`() throws {
        let head = "HTTP/1.1 200 OK\r\n"
        let bomb = try cause(Row(responses: [head + "A: " + String(repeating: "a", count: 1 << 20)]))
        #expect(bomb?.code == .invalidResponse && bomb?.detail == "a.example sends more than 64 KiB of header fields")
        expectEqual(bomb?.evidence["limit"], .text("64 KiB of header fields"))
        let endless = try cause(Row(responses: [head + "\r\n" + String(repeating: "a", count: 9 << 20)]))
        #expect(endless?.code == .invalidResponse && endless?.detail == "a.example sends more than 8 MiB of body")
        let long = Row(responses: [head + "Content-Length: 9999999\r\n\r\n" + String(repeating: "a", count: 1 << 20)])
        try expectNil(cause(long))
    }

    @Test func `redirects that cannot be followed are named`() throws {
        func redirect(_ location: String) -> String { "HTTP/1.1 302 Found\r\nLocation: \(location)\r\n\r\n" }
        try expectEqual(
            text(Row(responses: [redirect("/b"), redirect("/c"), redirect("/b")])),
            "http/invalid-response: a.example redirects in a loop, back to http://a.example/b")
        let chain = try cause(Row(responses: (0..<11).map { redirect("/\($0)") }))
        expectEqual(chain?.detail, "a.example redirects more than 10 times")
        expectEqual(chain?.evidence["limit"], .text("10 redirects"))
        expectEqual(chain?.evidence["redirects"], .list((0..<10).map { "http://a.example/\($0)" }))
        expectEqual(chain?.evidence["location"], .text("/10"))
        try expectEqual(
            text(Row(responses: [redirect("ftp://b/")])),
            "http/invalid-response: a.example redirects to 'ftp://b/', which no probe can request "
                + "(scheme: 'ftp' is neither http nor https)")
    }

    @Test func `status 511 is a captive portal`() throws {
        try expectEqual(
            text(Row(responses: ["HTTP/1.1 511 Network Authentication Required\r\n\r\n"])),
            "http/captive-portal: a.example answers 511: the network requires a login")
    }

    @Test func `a declared expectation that a redirect to another host does not meet is a captive portal`() throws {
        let body = HTTPExpectation(body: try Expression("fine"))
        let cause = try cause(Row(responses: [Self.found, Self.page], expectation: body))
        expectEqual(cause?.code, .captivePortal)
        expectEqual(cause?.detail, "a login page of the network answers for a.example: it redirects to portal.lan")
        expectEqual(cause?.evidence["redirects"], .list(["http://portal.lan/login"]))
        let status = HTTPExpectation(statuses: try StatusRanges("204"))
        try expectEqual(self.cause(Row(responses: [Self.found, Self.page], expectation: status))?.code, .captivePortal)
        try expectEqual(self.cause(Row(responses: [Self.found], expectation: status, isFollowing: false))?.code, .captivePortal)
        // The redirect stays on the host; the server behind it fails; nothing is declared.
        let own = "HTTP/1.1 302 Found\r\nLocation: /b\r\n\r\n"
        try expectEqual(self.cause(Row(responses: [own, Self.page], expectation: body))?.code, .unexpectedBody)
        try expectEqual(self.cause(Row(responses: [Self.found, "HTTP/1.1 503 \r\n\r\n"], expectation: body))?.code, .status)
        try expectEqual(self.cause(Row(responses: [Self.found], isFollowing: false))?.code, .status)
        try expectEqual(self.cause(Row(responses: [Self.page], expectation: body))?.code, .unexpectedBody)
    }

    @Test func `a canary with a foreign answer is a captive portal`() throws {
        let empty = HTTPExpectation(statuses: try StatusRanges("204"))
        let known = HTTPExpectation(body: try Expression(literal: "success"))
        try expectEqual(
            text(Row(responses: [Self.page], expectation: empty, isCanary: true)),
            "http/captive-portal: a login page of the network answers for a.example, with 200 OK and another page")
        try expectEqual(cause(Row(responses: [Self.page], expectation: known, isCanary: true))?.code, .captivePortal)
        // A canary's redirect is not followed (`HTTPPlan`).
        let own = "HTTP/1.1 307 Go\r\nLocation: /login\r\n\r\n"
        let texts = try [Self.found, own].map {
            try text(Row(responses: [$0], expectation: empty, isFollowing: false, isCanary: true))
        }
        let start = "http/captive-portal: a login page of the network answers for a.example: it redirects to"
        expectEqual(texts, ["\(start) portal.lan", "\(start) /login"])
        try expectEqual(cause(Row(responses: [Self.found, Self.page], expectation: empty, isCanary: true))?.code, .captivePortal)
        let loop = Row(responses: [Self.found, Self.found], expectation: empty, isCanary: true)
        try expectEqual(cause(loop)?.code, .captivePortal)
        try expectEqual(cause(Row(responses: loop.responses, expectation: empty))?.code, .invalidResponse)
        try expectEqual(cause(Row(responses: ["HTTP/1.1 500 \r\n\r\n"], expectation: empty, isCanary: true))?.code, .status)
        try expectNil(cause(Row(responses: ["HTTP/1.1 204 \r\n\r\n"], expectation: empty, isCanary: true)))
        try expectEqual(cause(Row(responses: [], expectation: empty, ending: .deadline, isCanary: true))?.code, .timeout)
    }

    @Test func `a server whose certificate is verified is no captive portal`() throws {
        let body = HTTPExpectation(body: try Expression("fine"))
        let empty = HTTPExpectation(statuses: try StatusRanges("204"))
        let url = "https://a.example/"
        try expectEqual(
            text(Row(responses: [Self.found, Self.page], expectation: body, url: url)),
            "http/unexpected-body: a.example redirects to http://portal.lan/login, which sends a body that does not match "
                + "'fine'")
        try expectEqual(
            text(Row(responses: [Self.found], expectation: empty, isFollowing: false, isCanary: true, url: url)),
            "http/status: a.example answers 302 Found with a redirect to http://portal.lan/login, not 204")
        try expectEqual(
            text(Row(responses: [Self.page], expectation: empty, isCanary: true, url: url)),
            "http/status: a.example answers 200 OK, not 204")
        try expectEqual(cause(Row(responses: [Self.page], expectation: body, isCanary: true, url: url))?.code, .unexpectedBody)
        let login = "HTTP/1.1 511 Network Authentication Required\r\n\r\n"
        try expectEqual(cause(Row(responses: [login], url: url))?.code, .status)
        let loop = Row(responses: [Self.found, Self.found], expectation: empty, isCanary: true, url: url)
        try expectEqual(cause(loop)?.code, .invalidResponse)
        // The certificates of these servers are not verified.
        try expectEqual(cause(Row(responses: [Self.found, login], url: url))?.code, .captivePortal)
        try expectEqual(
            cause(Row(responses: [Self.found, Self.page], expectation: body, url: url, isInsecure: true))?.code,
            .captivePortal)
        let secureLogin = "HTTP/1.1 302 Found\r\nLocation: https://portal.lan/\r\n\r\n"
        try expectEqual(cause(Row(responses: [secureLogin, Self.page], expectation: body))?.code, .captivePortal)
        try expectEqual(cause(Row(responses: [secureLogin, login]))?.code, .captivePortal)
    }

    @Test func `a body with a coding that is not decoded, or whose coding is damaged, is unexpected by that coding`() throws {
        func cause(_ coding: String, _ expectation: HTTPExpectation) throws -> Cause? {
            try self.cause(
                Row(responses: ["HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\n\r\nbad"], expectation: expectation))
        }
        for expectation in [HTTPExpectation(body: try Expression("fine")), HTTPExpectation(excludedBody: try Expression("fine"))]
        {
            let foreign = try #require(try cause("br", expectation))
            expectEqual(foreign.code, .unexpectedBody)
            expectEqual(
                foreign.detail, "a.example sends a body with the coding 'br', which is not decoded and not compared with 'fine'")
            expectEqual(foreign.evidence["content_encoding"], .text("br"))
        }
        let fine = HTTPExpectation(body: try Expression("fine"))
        try expectEqual(
            cause("gzip", fine)?.detail, "a.example sends a body that is not the gzip that its Content-Encoding announces")
        try expectEqual(cause("identity", fine)?.detail, "a.example sends a body that does not match 'fine'")
        try expectNil(cause("br", HTTPExpectation()))
    }

    @Test func `fields, bodies and versions that are not expected are named`() throws {
        func text(_ expectation: HTTPExpectation) throws -> String? {
            try self.text(Row(responses: ["HTTP/1.0 200 OK\r\nServer: old\r\n\r\nbad"], expectation: expectation))
        }
        try expectEqual(
            text(HTTPExpectation(body: Expression("fine"))),
            "http/unexpected-body: a.example sends a body that does not match 'fine'")
        try expectEqual(
            text(HTTPExpectation(excludedBody: Expression("bad"))),
            "http/unexpected-body: a.example sends a body that matches 'bad'")
        try expectEqual(
            text(HTTPExpectation(fields: [.init("X-Node", Expression("."))])),
            "http/unexpected-header: a.example sends no field x-node that matches '.'")
        try expectEqual(
            text(HTTPExpectation(fields: [.init("Server", Expression("old"), isExcluded: true)])),
            "http/unexpected-header: a.example sends a field server that matches 'old'")
        try expectEqual(
            text(HTTPExpectation(versions: ["1.1"])),
            "http/invalid-response: a.example answers with HTTP/1.0, not HTTP/1.1")
    }

    @Test(arguments: [
        (SystemErrorNumber.connectionReset, "", "http/invalid-response: a.example resets the connection without a response"),
        (.connectionReset, "HTTP", "http/invalid-response: a.example resets the connection before its response is complete"),
        (.brokenPipe, "", "http/invalid-response: a.example resets the connection without a response"),
        (.timedOut, "", "http/timeout: a.example does not acknowledge the request in time"),
        (.hostUnreachable, "", "network/host-unreachable: a.example became unreachable"),
        (.networkUnreachable, "", "network/net-unreachable: the network of a.example became unreachable"),
        (
            .noBufferSpace, "",
            "http/invalid-response: the connection to a.example fails before the response is complete (ENOBUFS)"
        ),
    ])
    func `a system error is named`(number: SystemErrorNumber, response: String, expected: String) throws {
        let row = Row(responses: [response], ending: .systemError(number.rawValue))
        try expectEqual(text(row), expected)
        try expectEqual(cause(row)?.evidence["errno"], .text(number.name))
    }

    @Test func `a downgrade from https to http is evidence of success and failure`() {
        let facts = HTTPProbeFacts(
            response: HTTPResponseFacts(status: 200, version: "1.1"), redirects: ["http://a.example/"], isDowngraded: true)
        let cause = CauseOfHTTP(facts: facts, ending: .exchange, host: "a.example", elapsedNanoseconds: 0)
        #expect(cause.cause == nil && cause.evidence["downgraded"] == .flag(true))
        expectEqual(cause.evidence["redirects"], .list(["http://a.example/"]))
    }
}
