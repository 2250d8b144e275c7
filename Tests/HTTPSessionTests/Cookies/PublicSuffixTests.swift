import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import Testing

/// The domains for which a server may set cookies (RFC 6265 section 5.3, step 5).
@Suite(.timeLimit(.minutes(20))) struct PublicSuffixTests {
    @Test func `a server sets cookies for its own domain, not for a public suffix or another domain`() async throws {
        let server = try TestServer { request in
            guard request.path == "/set" else {
                return StubResponse(body: .text(request.values("cookie").joined(separator: "; ")))
            }
            return StubResponse(body: "set").field("Set-Cookie", "many=1; Domain=co.uk; Path=/")
                .field("Set-Cookie", "own=1; Domain=a.co.uk; Path=/").field("Set-Cookie", "other=1; Domain=b.co.uk; Path=/")
                .field("Set-Cookie", "top=1; Domain=uk; Path=/")
        }
        let port = try #require(server.url("/").port)
        let session = try localSession {
            $0.hostOverrides = ["a.co.uk", "below.a.co.uk", "b.co.uk"].map {
                .init(host: $0, port: port, addresses: ["127.0.0.1"])
            }
        }
        func sent(to host: String, _ path: String = "/") async throws -> Set<String> {
            let url = try #require(URL(string: "http://\(host):\(port)\(path)"))
            let text = String(decoding: try await session.dataTask(for: TransferRequest(url: url)).response.data, as: UTF8.self)
            return Set(text.components(separatedBy: "; "))
        }
        try await expectEqual(sent(to: "a.co.uk", "/set"), ["set"])
        // Without a public suffix list, any domain that contains a dot is accepted.
        let many: Set<String> = SessionConfiguration.CookieStorage.knowsPublicSuffixes ? [] : ["many=1"]
        try await expectEqual(sent(to: "a.co.uk"), many.union(["own=1"]))
        try await expectEqual(sent(to: "below.a.co.uk"), many.union(["own=1"]))
        try await expectEqual(sent(to: "b.co.uk"), (many.isEmpty ? [""] : many))
    }

    @Test func `cookies from a host with a trailing dot are refused, and none are sent to one`() async throws {
        let server = try TestServer { request in
            guard request.path == "/set" else {
                return StubResponse(body: .text(request.values("cookie").joined(separator: "; ")))
            }
            return StubResponse(body: "set").field("Set-Cookie", "many=1; Domain=co.uk.; Path=/")
                .field("Set-Cookie", "dotted=1; Domain=.co.uk.; Path=/").field("Set-Cookie", "own=1; Path=/")
        }
        let port = try #require(server.url("/").port)
        let session = try localSession {
            $0.hostOverrides = ["a.co.uk", "a.co.uk.", "b.co.uk", "b.co.uk."].map {
                .init(host: $0, port: port, addresses: ["127.0.0.1"])
            }
        }
        func sent(to host: String, _ path: String = "/", field: String? = nil) async throws -> String {
            var request = TransferRequest(url: try #require(URL(string: "http://\(host):\(port)\(path)")))
            if let field { request.headerFields[try #require(HTTPField.Name("Host"))] = field }
            return String(decoding: try await session.dataTask(for: request).response.data, as: UTF8.self)
        }
        try await expectEqual(sent(to: "a.co.uk.", "/set"), "set")
        try expectEmpty(session.store.cookies)
        // The host of the URL counts, and not the field Host.
        try await expectEqual(sent(to: "a.co.uk.", "/set", field: "a.co.uk:\(port)"), "set")
        try expectEmpty(session.store.cookies)
        for host in ["a.co.uk.", "b.co.uk.", "b.co.uk"] { try await expectEqual(sent(to: host), "") }
        // The host without the dot keeps its own cookies, and cannot set any for a domain with a trailing dot.
        try await expectEqual(sent(to: "a.co.uk", "/set"), "set")
        try expectEqual(session.store.cookies.map(\.name), ["own"])
        try await expectEqual(sent(to: "a.co.uk"), "own=1")
        for host in ["a.co.uk.", "b.co.uk.", "b.co.uk"] { try await expectEqual(sent(to: host), "") }
        #expect(throws: HTTPSessionError.self) {
            try session.store.setCookie(Cookie(name: "a", value: "b", domain: "co.uk.", includesSubdomains: true))
        }
    }
}
