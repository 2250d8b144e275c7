import Foundation
import FoundationNetworking
import HTTPSessionTestKit

extension Claim {
    static let trust: [Claim] = [
        untrusted("untrusted", "an unknown root", .init()),
        untrusted("expired", "an expired certificate", .init(from: -7200, until: -3600)),
        untrusted("name", "a certificate for another name", .init(names: ["other.test"])),
    ]

    /// What the server's certificate is made of.
    private struct Recipe {
        var names = ["localhost", "127.0.0.1"]
        var from = -86400
        var until = 86400
    }

    private static func untrusted(_ name: String, _ what: String, _ recipe: Recipe) -> Claim {
        let (names, from, until) = (recipe.names, recipe.from, recipe.until)
        return Claim(
            name: "trust-\(name)", text: "For \(what) the error is `unknown` (-1), and no delegate is asked",
            source: "MultiHandle.swift:365-393; URLProtectionSpace.swift:108"
        ) {
            let identity = try SelfSignedCertificate(names: names, validFrom: from, validUntil: until)
            let server = try TestServer(tls: identity.serverTLS) { _ in StubResponse(body: "x") }
            let exchange = Exchange.data(URLRequest(url: server.url("/")))
            let seen = exchange.observer.seen
            let asked = seen.sessionChallenges + seen.taskChallenges
            return Finding(
                (exchange.error as? URLError)?.code == .unknown && asked.isEmpty,
                "\(exchange.errorText); asked about \(asked.isEmpty ? "nothing" : asked.joined(separator: ", "))")
        }
    }
}
