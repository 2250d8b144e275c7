import Foundation
import FoundationNetworking
import HTTPSessionTestKit

extension Claim {
    static let redirects: [Claim] =
        [307, 308].map { status in
            Claim(
                name: "redirect-\(status)-body", text: "A \(status) redirect keeps the method and drops the body",
                source: "HTTPURLProtocol.swift:499, 713"
            ) {
                let server = try TestServer { request in
                    request.path == "/first" ? .redirect(status, to: "/second") : StubResponse(body: "done")
                }
                var request = URLRequest(url: server.url("/first"))
                request.httpMethod = "POST"
                request.httpBody = Data("twelve bytes".utf8)
                let exchange = Exchange.data(request)
                guard let second = server.requests.first(where: { $0.path == "/second" }) else {
                    return Finding(.undecided, "not followed: \(exchange.errorText)")
                }
                return Finding(
                    second.bodyLength == 0,
                    "\(second.method) with \(second.bodyLength) of 12 bytes, Content-Length: \(second["content-length"] ?? "none")"
                )
            }
        } + [
            Claim(
                name: "redirect-cross-origin", text: "Authorization and Cookie go to another origin after a redirect",
                source: "HTTPURLProtocol.swift:563, 582-584"
            ) {
                let other = try TestServer(at: .ip("127.0.0.2", port: 0)) { _ in StubResponse(body: "done") }
                let away = other.url("/second").absoluteString
                let server = try TestServer { _ in .redirect(302, to: away) }
                var request = URLRequest(url: server.url("/first"))
                request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
                request.setValue("session=secret", forHTTPHeaderField: "Cookie")
                let exchange = Exchange.data(request)
                guard let second = other.requests.first else { return Finding(.undecided, "not followed: \(exchange.errorText)") }
                let (authorization, cookie) = (second["authorization"], second["cookie"])
                return Finding(
                    authorization != nil && cookie != nil,
                    "another host and port got Authorization: \(authorization ?? "none"), Cookie: \(cookie ?? "none")")
            },
            Claim(
                name: "redirect-relative", text: "A relative Location is resolved against `/` and not against the request's path",
                source: "HTTPURLProtocol.swift:599-604"
            ) {
                let server = try TestServer { request in
                    request.path == "/a/b" ? .redirect(302, to: "c") : StubResponse(body: "done")
                }
                let exchange = Exchange.data(URLRequest(url: server.url("/a/b")))
                guard server.requests.count > 1 else { return Finding(.undecided, "not followed: \(exchange.errorText)") }
                return Finding(
                    server.requests[1].path != "/a/c", "`/a/b` to `c` asks for `\(server.requests[1].path)`, not `/a/c`")
            },
            Claim(
                name: "redirect-dots", text: "The same with `..` (RFC 3986 section 5.2.4)",
                source: "HTTPURLProtocol.swift:599-604"
            ) {
                let server = try TestServer { request in
                    request.path == "/a/b/c" ? .redirect(302, to: "../d?e") : StubResponse(body: "done")
                }
                let exchange = Exchange.data(URLRequest(url: server.url("/a/b/c")))
                guard server.requests.count > 1 else { return Finding(.undecided, "not followed: \(exchange.errorText)") }
                return Finding(
                    server.requests[1].target != "/a/d?e",
                    "`/a/b/c` to `../d?e` asks for `\(server.requests[1].target)`, not `/a/d?e`")
            },
            Claim(
                name: "redirect-after-basic", text: "A redirect after Basic authentication is followed with the original request",
                source: "NativeProtocol.swift:404"
            ) {
                let server = try TestServer { request in
                    guard request.path == "/first" else { return StubResponse(body: "done") }
                    return request["authorization"] == nil ? .unauthorized("Basic realm=\"a\"") : .redirect(302, to: "/second")
                }
                var request = URLRequest(url: server.url("/first"))
                request.timeoutInterval = 5
                let exchange = Exchange.data(request, observer: Observer(credential: ("me", "secret")))
                let targets = server.requests.map(\.target)
                let text =
                    "asked for \(targets.prefix(5).joined(separator: ", "))\(targets.count > 5 ? " … (\(targets.count))" : "")"
                return Finding(!targets.contains("/second"), "\(text); \(exchange.errorText)")
            },
        ]
}
