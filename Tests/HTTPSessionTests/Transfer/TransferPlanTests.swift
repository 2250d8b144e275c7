import Expectations
import Foundation
import HTTPTypes
import Pacing
import Testing

@testable import HTTPSession

@Suite struct TransferPlanTests {
    private func plan(
        _ url: String = "http://a/b", _ method: HTTPRequest.Method = .get, _ fields: HTTPFields = [:], body: RequestBody = .none,
        isCrossOrigin: Bool = false, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> TransferPlan {
        var configuration = SessionConfiguration()
        change(&configuration)
        let settings = try SessionSettings(configuration, credentials: CredentialStore(), path: nil)
        let request = TransferRequest(url: try #require(URL(string: url)), method: method, headerFields: fields, body: body)
        return TransferPlan(
            request, logins: TaskLogins(), settings: settings, segments: try body.segments(),
            change: isCrossOrigin ? .init(from: nil, to: Origin(request.url)) : nil)
    }

    @Test func `users, passwords and fragments of a URL are not part of the requested URL`() throws {
        try expectEqual(plan("http://user:word@a/b?c#d").url, "http://a/b?c")
        try expectEqual(plan("http://a/b%20c?d=%26").url, "http://a/b%20c?d=%26")
        try expectEqual(plan("http://u@[::1]:81/b#c").url, "http://[::1]:81/b")
    }

    @Test func `header fields are sent as written, including empty ones`() throws {
        let lines = try plan("http://a", .get, [.accept: "x", .userAgent: ""]).headerLines
        expectEqual(lines, ["Accept: x", "User-Agent;"])
    }

    @Test func `a request's header fields override the session's`() throws {
        let lines = try plan("http://a", .get, [.accept: "own"]) {
            $0.additionalHeaderFields = [.accept: "session", .userAgent: "me"]
        }.headerLines
        #expect(lines.contains("Accept: own"))
        #expect(lines.contains("User-Agent: me"))
        #expect(!lines.contains("Accept: session"))
    }

    @Test func `the session's credentials in header fields are sent to the first origin only`() throws {
        let lines = try plan(isCrossOrigin: true) {
            $0.additionalHeaderFields = [.authorization: "Bearer x", .cookie: "a=b", .userAgent: "me"]
        }
        .headerLines
        expectEqual(lines, ["User-Agent: me"])
        #expect(
            try plan { $0.additionalHeaderFields = [.authorization: "Bearer x"] }.headerLines.contains("Authorization: Bearer x"))
    }

    @Test func `a request body is framed by its known or unknown length`() throws {
        let endless: BodyStreamFactory = { AsyncThrowingStream { $0.finish() } }
        try expectEqual(plan().body, .none)
        try expectEqual(plan("http://a", .delete).body, .none)
        for method: HTTPRequest.Method in [.post, .put, .patch] { try expectEqual(plan("http://a", method).body, .length(0)) }
        try expectEqual(plan("http://a", .post, body: .data(Data("abc".utf8))).body, .length(3))
        try expectEqual(plan("http://a", .get, body: .data(Data())).body, .length(0))
        try expectEqual(plan("http://a", .post, body: .stream(length: 7, make: endless)).body, .length(7))
        try expectEqual(plan("http://a", .post, body: .stream(length: nil, make: endless)).body, .untilEnd)
        #expect(throws: HTTPSessionError.self) { try plan("http://a", .post, body: .stream(length: -1, make: endless)) }
    }

    @Test func `a request with its own Accept-Encoding or Range is not decompressed`() throws {
        #expect(try plan().decompresses)
        #expect(try !plan("http://a", .get, [.acceptEncoding: "gzip"]).decompresses)
        #expect(try !plan("http://a", .get, [.range: "bytes=1-"]).decompresses)
        #expect(try !plan { $0.decompressesResponses = false }.decompresses)
    }

    @Test func `durations of any size are converted to integers`() {
        expectEqual(Duration.milliseconds(1_500).wholeMilliseconds, 1_500)
        expectEqual(Duration.nanoseconds(1).wholeMilliseconds, 1)
        expectEqual(Duration.seconds(-5).wholeMilliseconds, 1)
        #expect(Duration.seconds(Int64.max).wholeMilliseconds > 1 << 60)
        expectEqual(Duration.seconds(Int64.min).wholeMilliseconds, 1)
        expectEqual(Duration.nanoseconds(1_500).saturatingNanoseconds, 1_500)
        expectEqual(Duration.seconds(Int64.max).saturatingNanoseconds, .max)
        expectEqual(Duration.seconds(Int64.min).saturatingNanoseconds, .min)
        #expect(
            Duration(secondsComponent: 9_223_372_036, attosecondsComponent: 999_999_999_999_999_999).saturatingNanoseconds > 1
                << 62)
    }

    @Test func `host patterns choose the hosts that may be connected to without TLS`() throws {
        let pattern = try HostPattern("*.lan.example")
        let settings = try SessionSettings(
            {
                var configuration = SessionConfiguration()
                configuration.insecureHTTP = .allowed(for: pattern, try HostPattern("127.0.0.1"))
                return configuration
            }(), credentials: CredentialStore(), path: nil)
        for (url, isAllowed) in [
            ("http://a.lan.example/", true), ("http://A.LAN.example./", true), ("http://lan.example/", false),
            ("http://b.a.lan.example/", false),
            ("http://127.0.0.1:81/", true), ("http://127.0.0.2/", false), ("https://elsewhere.example/", true),
            ("http://evil-lan.example/", false),
        ] {
            let request = TransferRequest(url: try #require(URL(string: url)))
            if isAllowed {
                _ = try settings.check(request)
            } else {
                let error = #expect(throws: HTTPSessionError.self) { try settings.check(request) }
                expectEqual(error?.code, .insecureConnectionRefused, "\(url)")
            }
        }
    }

    @Test(arguments: [(nil, 1_000), (500, 500), (2_000, 1_000)] as [(Int64?, Int64)])
    func `the lower of a multipart form's rate and the session's rate is used`(_ session: Int64?, _ expected: Int64) throws {
        var form = MultipartForm()
        try form.appendPart(form: Data("x".utf8), name: "a")
        try expectNil(plan("http://a", .post, body: .multipart(form)) { $0.maximumSendRate = session }.maximumSendRate)
        form.throttleBandwidth(packetSize: 100, delay: .milliseconds(100))
        let throttled = try plan("http://a", .post, body: .multipart(form)) { $0.maximumSendRate = session }
        expectEqual(throttled.maximumSendRate, expected)
        expectEqual(throttled.packetSize, 100)
    }

    @Test func `an expectation is sent only with content`() throws {
        let field: HTTPFields = [.expect: "100-Continue"]
        let lines = { (plan: TransferPlan) in plan.headerLines.filter { $0.lowercased().hasPrefix("expect") } }
        for (method, body) in [(HTTPRequest.Method.get, RequestBody.none), (.post, .none), (.post, .data(Data()))] {
            let plan = try plan("http://a", method, field, body: body)
            expectEqual(lines(plan), plan.body == .none ? [] : ["Expect:"], "\(method)")
            #expect(!plan.expectsContinue)
        }
        var plan = try plan("http://a", .post, field, body: .data(Data("x".utf8)))
        expectEqual(lines(plan), ["Expect: 100-Continue"])
        #expect(plan.expectsContinue)
        plan.omitExpectation()
        expectEqual(lines(plan), ["Expect:"])
        #expect(!plan.expectsContinue)
    }
}
