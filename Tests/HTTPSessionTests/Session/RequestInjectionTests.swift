import EventLoop
import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing
import Wire

@testable import HTTPSession

/// Text with line-ending bytes, for every source of text in a request. `NETWATCH_INJECTION_SEED` sets the seed.
private struct HostileText {
    let seed: UInt64
    private var state: UInt64

    init() {
        let given = ProcessInfo.processInfo.environment["NETWATCH_INJECTION_SEED"].flatMap { UInt64($0) }
        seed = given ?? .random(in: 1 ... .max)
        state = seed
    }

    /// SplitMix64.
    mutating func number(below limit: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return Int((mixed ^ (mixed >> 31)) % UInt64(limit))
    }

    private static let pieces = [
        "\r\nX-Injected: 1", "\nX-Injected: 1", "\rX-Injected: 1", "\r", "\n", "\0", "\t", "\u{1}", "\u{B}", "\u{1F}", "\u{7F}",
        "\u{85}", "\u{2028}", "\"", "\\", " ", ";", ":", ",", "%0D%0AX-Injected:%201", "a", "ü", "=",
        "\r\n\r\nGET /smuggled HTTP/1.1",
    ]

    mutating func next() -> String {
        (0...number(below: 4)).reduce("a") { text, _ in text + Self.pieces[number(below: Self.pieces.count)] }
    }
}

/// Request heads: no text of a caller, a server or a file ends a line of the head or begins another request.
@Suite(.timeLimit(.minutes(20))) struct RequestInjectionTests {
    private func server(_ reply: @escaping @Sendable (ReceivedRequest) -> StubResponse = { _ in StubResponse() }) throws
        -> TestServer
    {
        try TestServer(reply: reply)
    }

    private func check(_ server: TestServer, _ place: Comment, seed: UInt64, atLeast count: Int = 1) {
        #expect(server.requests.count >= count, place)
        for request in server.requests {
            let texts = [request.method, request.target, request.version] + request.fields.flatMap { [$0.name, $0.value] }
            let isClean = texts.allSatisfy { text in text.utf8.allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 } }
            #expect(isClean, "\(place.rawValue), seed \(seed): \(texts)")
            expectNil(request["x-injected"], "\(place.rawValue), seed \(seed): \(texts)")
            #expect(!request.target.contains("smuggled HTTP"), "\(place.rawValue), seed \(seed)")
        }
    }

    @Test func `a request head is accepted only if no line has a control byte`() throws {
        var text = HostileText()
        let seed = text.seed
        for _ in 0..<20_000 {
            var plan = TransferPlan(url: "http://host/", method: "GET")
            let value = text.next()
            let isClean = value.utf8.allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }
            switch text.number(below: 5) {
            case 0:
                plan.headerLines = ["Accept: */*", "If-Range: \(value)"]
                expectEqual(passes(plan), isClean, "seed \(seed): \(value.debugDescription)")
            case 1:
                plan.headerLines = ["\(value): 1"]
                if passes(plan) {
                    #expect(HTTPField.Name(value) != nil || value.contains(":"), "seed \(seed): \(value.debugDescription)")
                }
            case 2:
                plan.method = value
                expectEqual(passes(plan), (HTTPRequest.Method(value) != nil), "seed \(seed): \(value.debugDescription)")
            case 3:
                plan.proxyLogin = .init(user: value, password: value, schemes: [.digest])
                expectEqual(passes(plan), !value.hasControlCharacter, "seed \(seed): \(value.debugDescription)")
            default:
                let target = TransferPlan(url: "http://host/\(value)", method: "GET")
                expectEqual(
                    passes(target), value.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }, "seed \(seed): \(value.debugDescription)"
                )
            }
        }
        for line in ["", ":", "A", "A;b", " A: b", "A : b", "A: b\r", "A: b\u{0}"] {
            var plan = TransferPlan(url: "http://host/", method: "GET")
            plan.headerLines = [line]
            #expect(!passes(plan), "\(line.debugDescription)")
        }
        for line in ["A: b", "A;", "Expect:", "A: b\tc", "A: ü"] {
            var plan = TransferPlan(url: "http://host/", method: "GET")
            plan.headerLines = [line]
            #expect(passes(plan), "\(line)")
        }
    }

    private func passes(_ plan: TransferPlan) -> Bool { (try? plan.checkHead()) != nil }

    @Test func `ETags and dates with invalid bytes are not used as validators, from a server or a sidecar`() throws {
        for tag in [
            "\"a\rb\"", "\"a b\"", "\"a\"b\"", "\"", "", "a", "W/\"a\"", "\"a\u{7F}\"", "\"a\r\nX: y\"", "\"a\tb\"", "\"a\0\"",
        ] {
            expectNil(StrongValidator(entityTag: tag), "\(tag.debugDescription)")
        }
        for tag in ["\"\"", "\"a\"", "\"!#~\\\"", "\"ü\"", "\"W/\""] { #expect(StrongValidator(entityTag: tag) != nil, "\(tag)") }
        let dates = [
            "Sun, 06 Nov 1994 08:49:37 GMT\r", "Sun,  06 Nov 1994 08:49:37 GMT", "Mon, 06 Nov 1994 08:49:37 GMT", "x",
            "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Wed, 31 Feb 2024 00:00:00 GMT",
            "Sun, 06 Nov 1994 08:49:60 GMT", "Sun,\t06 Nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT",
        ]
        for date in dates { expectNil(StrongValidator(lastModified: date), "\(date.debugDescription)") }
        for date in ["Sun, 06 Nov 1994 08:49:37 GMT", "Thu, 29 Feb 2024 23:59:59 GMT", "Thu, 01 Jan 1970 00:00:00 GMT"] {
            expectEqual(StrongValidator(lastModified: date), .lastModified(date))
        }
        var text = HostileText()
        for _ in 0..<500 {
            for (key, value) in [("entity_tag", "\"\(text.next())\""), ("last_modified", text.next())] {
                let stored: [String: Any] = [
                    "version": 1, "url": "https://host/", "start": "https://host/", "boot": "x", "synced": 0, key: value,
                ]
                let data = try JSONSerialization.data(withJSONObject: stored)
                guard let sidecar = try? Sidecar(decoding: data) else { continue }
                let field = try #require(sidecar.resumption.validator?.fieldValue)
                #expect(!field.hasControlCharacter, "seed \(text.seed)")
            }
        }
    }

    @Test func `header fields, methods, URLs, user agents and multipart forms of a caller inject no request lines`() async throws
    {
        var text = HostileText()
        let server = try server()
        let agent = RequestFields.userAgent(product: text.next(), version: text.next(), system: text.next())
        let session = try localSession {
            $0.additionalHeaderFields[.userAgent] = agent
            $0.additionalHeaderFields[HTTPField.Name("X-Session")!] = text.next()
        }
        for _ in 0..<20 {
            var request = TransferRequest(url: server.url())
            for name in ["X-A", "Range", "If-Range", "Host", "Cookie", "Authorization"] where text.number(below: 2) == 0 {
                request.headerFields[try #require(HTTPField.Name(name))] = text.next()
            }
            if let fields = try? HTTPFields(checking: [text.next(): "x", "X-B": text.next()]) {
                request.headerFields.append(contentsOf: fields)
            }
            request.method = HTTPRequest.Method(text.next()) ?? .get
            _ = await failure(session.dataTask(for: request))
            // Foundation escapes the text that it parses; the final check covers what is left.
            for address in ["/\(text.next())", "/?\(text.next())", "/#\(text.next())"] {
                if let url = URL(string: address, relativeTo: server.url()) {
                    _ = await failure(session.dataTask(for: TransferRequest(url: url.absoluteURL)))
                }
            }
            var form = try MultipartForm(boundary: "b")
            try? form.appendPart(data: Data("x".utf8), name: text.next(), fileName: text.next())
            try? form.appendPart(data: Data("x".utf8), name: "a", fileName: "b", mimeType: text.next())
            form.appendPart(headers: [HTTPField.Name("X-Part")!: text.next()], body: Data("x".utf8))
            _ = await failure(
                session.dataTask(for: TransferRequest(url: server.url("/form"), method: .post, body: .multipart(form))))
        }
        check(server, "a caller", seed: text.seed, atLeast: 20)
        for request in server.requests where request.path == "/form" {
            let lines = request.text.components(separatedBy: "\r\n")
            #expect(
                lines.allSatisfy { line in line.utf8.allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 } },
                "seed \(text.seed)")
            #expect(!lines.contains { $0.hasPrefix("X-Injected") }, "seed \(text.seed)")
        }
    }

    @Test func `ETag, Location, Set-Cookie and challenges of a server inject no request lines`() async throws {
        var text = HostileText()
        for _ in 0..<25 {
            let folder = try ScratchDirectory()
            // A line feed ends the server's own line, so the text after it would not be part of the field.
            let words = (0..<5).map { _ in text.next().replacingOccurrences(of: "\n", with: "") }
            let (tag, place, cookie, realm, date) = (words[0], words[1], words[2], words[3], words[4])
            let server = try server { request in
                switch request.path {
                case "/file":
                    StubResponse(fields: ["ETag": "\"\(tag)\""], body: .pattern(200_000)).cut(afterBodyBytes: 150_000)
                case "/dated":
                    StubResponse(
                        fields: [
                            "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT\(date)", "Date": "Sun, 06 Nov 2024 08:49:37 GMT",
                        ],
                        body: .pattern(200_000)
                    ).cut(afterBodyBytes: 150_000)
                case "/away": .redirect(to: "/there\(place)")
                case "/cookie": StubResponse(fields: ["Set-Cookie": "a\(cookie)=b\(cookie)"])
                case "/locked":
                    .unauthorized(
                        "Digest realm=\"\(realm)\", nonce=\"\(realm)\", opaque=\"\(realm)\", algorithm=MD5, qop=\"auth\"")
                default: StubResponse()
                }
            }
            let session = try localSession(
                {
                    $0.retryPolicy = RetryPolicy(maximumRetries: 1, baseDelay: .milliseconds(1))
                    $0.requestTimeout = .seconds(10)
                },
                handlers: TransferHandlers(challenge: { challenge in
                    challenge.previousFailureCount < 2 ? .useCredential(Credential(user: "user", password: "word")) : .cancel
                }))
            for path in ["/file", "/dated"] {
                _ = await failure(
                    session.downloadTask(for: TransferRequest(url: server.url(path)), to: .init(folder.url("file"))))
            }
            for path in ["/away", "/cookie", "/", "/locked", "/cookie"] {
                _ = await failure(session.dataTask(for: TransferRequest(url: server.url(path))))
            }
            check(server, "a server", seed: text.seed, atLeast: 7)
        }
    }

    @Test func `cookies, sidecars, credentials and tus metadata inject no request lines`() async throws {
        var text = HostileText()
        for _ in 0..<25 {
            let folder = try ScratchDirectory()
            let server = try server { request in
                switch request.path {
                case "/locked" where request["authorization"] == nil:
                    .unauthorized("Digest realm=\"r\", nonce=\"n\", algorithm=MD5, qop=\"auth\"", "Basic realm=r")
                case "/token" where request["authorization"] == nil: .unauthorized("Bearer realm=r")
                default: StubResponse()
                }
            }
            let file = folder.url("cookies")
            let value = text.next()
            try Data("127.0.0.1\tFALSE\t/\tFALSE\t0\tn\(value)\tv\(value)\n127.0.0.1\tFALSE\t/\tFALSE\t0\tgood\tx\n".utf8).write(
                to: file)
            let (user, token) = (text.next(), text.next())
            let session = try localSession(
                { $0.cookies = .file(file) },
                handlers: TransferHandlers(challenge: { challenge in
                    .useCredential(
                        challenge.scheme == .bearer ? Credential(token: token) : Credential(user: user, password: user))
                }))
            try? session.store.setCookie(Cookie(name: text.next(), value: text.next(), domain: "127.0.0.1"))
            for path in ["/", "/locked", "/token"] {
                _ = await failure(session.dataTask(for: TransferRequest(url: server.url(path))))
            }
            #expect(server.requests.first?["cookie"]?.contains("good=x") == true)

            // A sidecar that another program wrote beside a partial file.
            let stored: [String: Any] = [
                "version": 1, "url": server.url("/file").absoluteString, "start": server.url("/file").absoluteString, "boot": "x",
                "synced": 10, "total": 1_000, "entity_tag": "\"\(text.next())\"",
            ]
            let data = try JSONSerialization.data(withJSONObject: stored)
            if let sidecar = try? Sidecar(decoding: data) {
                var plan = TransferPlan(url: server.url("/file").absoluteString, method: "GET")
                let basis = try #require(sidecar.resumption.basis(at: server.url("/file")))
                plan.headerLines = sidecar.resumption.fieldLines(after: 10, by: basis)
                #expect(passes(plan), "seed \(text.seed)")
            }
            let upload = TransferRequest(url: server.url("/up"), method: .post, body: .data(Data("x".utf8)))
            _ = await failure(
                session.uploadTask(for: upload, resumableUsing: .tus(metadata: [text.next(): text.next(), "name": text.next()])))
            check(server, "a program", seed: text.seed, atLeast: 3)
        }
    }

    @Test func `a proxy's user and the challenges of a proxy inject no request lines`() async throws {
        for user in ["a%0D%0AX-Injected%3A%201", "a%00", "a%0A", "a%7F", "plain"] {
            for realm in ["r", "r\rX-Injected: 1", "r\u{1}"] {
                let server = try server { request in
                    request["proxy-authorization"] == nil
                        ? .proxyAuthenticationRequired("Digest realm=\"\(realm)\", nonce=\"n\", algorithm=MD5, qop=\"auth\"")
                        : StubResponse()
                }
                let proxy = SessionConfiguration.Proxy.explicit("http://\(user):word@127.0.0.1:\(server.port)")
                guard user == "plain" else {
                    let error = HTTPSessionError.thrown { try localSession { $0.proxy = proxy } }
                    expectEqual(error?.code, .invalidConfiguration)
                    continue
                }
                let session = try localSession { $0.proxy = proxy }
                for address in ["http://named.example/", "https://named.example/"] {
                    _ = await failure(session.dataTask(for: TransferRequest(url: try #require(URL(string: address)))))
                }
                check(server, "a proxy", seed: 0, atLeast: 2)
            }
        }
    }
}
