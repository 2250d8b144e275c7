import Testing

@testable import Reachability

/// The request of a probe, and the expectations of its response.
@Suite struct HTTPExpectationTests {
    private func facts(_ settings: HTTPProbeSettings, _ response: String) -> HTTPResponseFacts {
        var exchange = HTTPExchange(method: settings.method)
        Array(response.utf8).withUnsafeBytes { exchange.receive($0) }
        exchange.endOfInput()
        exchange.check(settings.expectation)
        return exchange.facts
    }

    private let page = "HTTP/1.1 200 OK\r\nServer: nginx\r\nX-Health: ok\r\nX-Health: fine\r\n\r\nall systems operational"

    @Test func `by default a status from 200 to 299 is expected`() {
        let settings = HTTPProbeSettings()
        #expect(facts(settings, page).mismatch == nil)
        #expect(facts(settings, "HTTP/1.1 503 No\r\n\r\n").mismatch == .status)
        #expect(facts(settings, "HTTP/1.1 301 Moved\r\nContent-Length: 0\r\n\r\n").mismatch == .status)
        #expect(!settings.expectation.isDeclared)
    }

    @Test func `bodies and fields are matched by expressions, also by those that must not match`() throws {
        var settings = HTTPProbeSettings()
        try settings.expectBody("systems (operational|degraded)")
        try settings.expectBody("error", mustMatch: false)
        try settings.expectField("x-health", "^fine$")
        try settings.expectField("X-Health", "bad", mustMatch: false)
        #expect(facts(settings, page).mismatch == nil && settings.expectation.isDeclared)
        #expect(
            facts(settings, page.replacing("operational", with: "down")).mismatch == .body("systems (operational|degraded)"))
        #expect(facts(settings, page + " error").mismatch == .body("not error"))
        #expect(
            facts(settings, page.replacing("fine", with: "bad")).mismatch == .field(name: "x-health", expectation: "^fine$"))
    }

    @Test func `a version and a list of statuses may be expected`() throws {
        var settings = HTTPProbeSettings()
        settings.statuses = try #require(StatusCodes("200-204,401"))
        #expect(facts(settings, "HTTP/1.1 401 No\r\n\r\n").mismatch == nil)
        settings.versions = ["1.1"]
        #expect(facts(settings, "HTTP/1.0 200 OK\r\n\r\n").mismatch == .version)
    }

    @Test(arguments: ["", "2", "99", "1000", "200-", "-200", "300-200", "200,,300", "200 ", "2xx", "200-300-400", "٢٠٠"])
    func `a list of statuses that is not valid is refused`(list: String) { #expect(StatusCodes(list) == nil) }

    @Test func `an expression that backtracks elsewhere takes linear time`() throws {
        var settings = HTTPProbeSettings()
        try settings.expectBody("^(a+)+$", mustMatch: false)
        let body = String(repeating: "a", count: 65_535) + "!"
        #expect(facts(settings, "HTTP/1.1 200 OK\r\n\r\n" + body).mismatch == nil)
    }

    @Test(arguments: [("(", "missing )"), ("a{2000}", "invalid repetition"), ("[z-a]", "invalid character class"), ("\\1", "invalid escape")])
    func `an expression that is not valid is refused with its reason`(pattern: String, reason: String) {
        var settings = HTTPProbeSettings()
        let error = #expect(throws: HTTPProbeSettings.InvalidValue.self) { try settings.expectBody(pattern) }
        #expect(error?.description.contains(reason) == true, "\(error?.description ?? "")")
    }

    private func request(_ settings: HTTPProbeSettings, _ url: String, isOwnOrigin: Bool = true) throws -> String {
        let plan = LevelPlan(
            try Endpoint(url), { var all = ProbeSettings(); all.http = settings; return all }(), isOwnOrigin: isOwnOrigin)
        return String(decoding: try #require(plan?.request).bytes, as: UTF8.self)
    }

    @Test func `the request has the method, the target, the host and the fields`() throws {
        #expect(
            try request(HTTPProbeSettings(), "http://db.example:8080/a?b")
                == "GET /a?b HTTP/1.1\r\nHost: db.example:8080\r\nUser-Agent: netwatch\r\nAccept: */*\r\nConnection: close\r\n\r\n")
        var settings = HTTPProbeSettings()
        try settings.setMethod("POST")
        try settings.setHost("other.example")
        try settings.addField("User-Agent", "mine")
        try settings.addField("Content-Length", "99")
        try settings.authorize(by: .basic(user: "Aladdin", password: "open sesame"))
        settings.body = Array("hello".utf8)
        #expect(
            try request(settings, "https://[2001:db8::1]/")
                == "POST / HTTP/1.1\r\nHost: other.example\r\nUser-Agent: mine\r\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"
                + "Accept: */*\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        let foreign = try request(settings, "https://evil.example/", isOwnOrigin: false)
        #expect(foreign.contains("Host: evil.example\r\n") && !foreign.contains("Authorization"))
    }

    @Test func `values that would break the request are refused`() {
        var settings = HTTPProbeSettings()
        #expect(throws: HTTPProbeSettings.InvalidValue.self) { try settings.setMethod("GET /\r\nX:") }
        #expect(throws: HTTPProbeSettings.InvalidValue.self) { try settings.setHost("a\r\nX: y") }
        #expect(throws: HTTPProbeSettings.InvalidValue.self) { try settings.addField("X", "y\r\nZ: 1") }
        #expect(throws: HTTPProbeSettings.InvalidValue.self) { try settings.addField("X:", "y") }
        #expect(throws: HTTPProbeSettings.InvalidValue.self) { try settings.authorize(by: .bearer("a b")) }
        #expect(throws: HTTPProbeSettings.InvalidValue.self) { try settings.authorize(by: .basic(user: "a:b", password: "")) }
    }

    @Test func `the TLS server name is the host, the field Host or the setting`() throws {
        func name(_ url: String, _ change: (inout ProbeSettings) throws -> Void = { _ in }) throws -> String? {
            var settings = ProbeSettings()
            try change(&settings)
            return LevelPlan(try Endpoint(url), settings)?.handshake?.name
        }
        #expect(try name("https://DB.example./") == "db.example")
        #expect(try name("tls://192.0.2.1") == "192.0.2.1")
        #expect(try name("https://192.0.2.1/") { try $0.http.setHost("db.example:8443") } == "db.example")
        #expect(try name("https://192.0.2.1/") { $0.tls.serverName = "sni.example" } == "sni.example")
        #expect(try name("http://192.0.2.1/") == nil)
        #expect(LevelPlan(try Endpoint("192.0.2.1:80"), ProbeSettings()) == nil)
    }
}
