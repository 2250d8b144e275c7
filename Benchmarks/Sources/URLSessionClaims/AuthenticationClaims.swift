import Foundation
import FoundationNetworking
import HTTPSessionTestKit

extension Claim {
    static let authentication: [Claim] = [
        challenge(
            "Basic", "Basic realm=\"a\"", ends: false, text: "Basic authentication works", source: "URLProtectionSpace.swift:333"),
        challenge(
            "Digest", "Digest realm=\"a\", nonce=\"b\", qop=\"auth\", algorithm=MD5", ends: true,
            text: "A credential for Digest ends the process",
            source: "URLSessionTask.swift:1427-1429; not reached: HTTPMessage.swift:216"),
        challenge(
            "NTLM", "NTLM", ends: true, text: "A credential for NTLM ends the process",
            source: "URLSessionTask.swift:1257-1258; not reached: HTTPMessage.swift:216"),
        challenge(
            "Negotiate", "Negotiate", ends: true, text: "A credential for Negotiate ends the process",
            source: "URLSessionTask.swift:1257-1258; not reached: HTTPMessage.swift:216"),
        challenge(
            "Bearer", "Bearer realm=\"a\"", ends: true, text: "A credential for Bearer ends the process",
            source: "URLSessionTask.swift:1257-1258; not reached: HTTPMessage.swift:216"),
    ]

    private static func challenge(_ scheme: String, _ challenge: String, ends: Bool, text: String, source: String) -> Claim {
        Claim(name: "challenge-\(scheme.lowercased())", text: text, source: source, endsProcess: ends) {
            let server = try TestServer { request in
                request["authorization"]?.hasPrefix(scheme) == true ? StubResponse(body: "welcome") : .unauthorized(challenge)
            }
            let exchange = Exchange.data(URLRequest(url: server.url("/")), observer: Observer(credential: ("me", "secret")))
            let authorization = server.requests.compactMap { $0["authorization"] }.last
            let seen =
                "\(exchange.response.map { "status \($0.statusCode)" } ?? exchange.errorText), "
                + "Authorization: \(authorization?.prefix(10) ?? "none"), "
                + "the delegate was asked \(exchange.observer.seen.taskChallenges.count) times"
            return Finding(!ends && exchange.response?.statusCode == 200, seen)
        }
    }
}
