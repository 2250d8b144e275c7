import Expectations
import Foundation
import Pacing
import Testing

@testable import HTTPSession

private typealias Challenge = AuthenticateField.Challenge

@Suite struct AuthenticateFieldTests {
    private func parse(_ text: String) -> [Challenge] { AuthenticateField.challenges(in: text) }

    @Test func `the example of RFC 9110 section 11-6-1 is read`() {
        let text = #"Basic realm="simple", Newauth realm="apps", type=1, title="Login to \"apps\"""#
        expectEqual(
            parse(text),
            [
                Challenge(scheme: "Basic", parameters: ["realm": "simple"]),
                Challenge(scheme: "Newauth", parameters: ["realm": "apps", "type": "1", "title": #"Login to "apps""#]),
            ])
    }

    @Test func `the example of RFC 7616 section 3-9-1 is read`() {
        let text =
            #"Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=SHA-256, nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS""#
        let challenge = parse(text)
        expectEqual(challenge.count, 1)
        expectEqual(challenge.first?.parameters["qop"], "auth, auth-int")
        expectEqual(challenge.first?.parameters["algorithm"], "SHA-256")
        expectEqual(challenge.first?.parameters["opaque"], "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS")
    }

    @Test func `unusual spacing, names of any case and empty elements are read`() {
        expectEqual(
            parse(#" , ,Basic , ,REALM = "a"  ,, charset =UTF-8 ,"#),
            [
                Challenge(scheme: "Basic", parameters: ["realm": "a", "charset": "UTF-8"])
            ])
        expectEqual(parse("Basic\trealm=a"), [Challenge(scheme: "Basic", parameters: ["realm": "a"])])
        expectEqual(parse("Negotiate"), [Challenge(scheme: "Negotiate")])
        expectEqual(parse("Negotiate,Basic realm=x, NTLM").map(\.scheme), ["Negotiate", "Basic", "NTLM"])
        expectEqual(parse(""), [])
        expectEqual(parse(" ,\t, "), [])
    }

    @Test func `single values instead of parameters are read`() {
        expectEqual(parse("Negotiate YII/+a-b._~=="), [Challenge(scheme: "Negotiate", token68: "YII/+a-b._~==")])
        expectEqual(
            parse("NTLM TlRM=, Basic realm=\"x\""),
            [
                Challenge(scheme: "NTLM", token68: "TlRM="), Challenge(scheme: "Basic", parameters: ["realm": "x"]),
            ])
    }

    @Test func `commas, equal signs and schemes inside quotes are text`() {
        expectEqual(
            parse(#"Basic realm="a, Digest realm=\"b\", c=d""#),
            [
                Challenge(scheme: "Basic", parameters: ["realm": #"a, Digest realm="b", c=d"#])
            ])
    }

    @Test func `a malformed challenge gives its readable parts`() {
        expectEqual(parse(#"Basic realm="never closed"#), [Challenge(scheme: "Basic", parameters: ["realm": "never closed"])])
        expectEqual(parse(#"Basic realm="ends in \"#), [Challenge(scheme: "Basic", parameters: ["realm": #"ends in \"#])])
        expectEqual(parse("Basic realm=").first?.scheme, "Basic")
        expectEqual(parse("Basic realm=, x=y").first?.parameters["x"], "y")
        expectEqual(parse("@@@ Basic realm=a").last?.parameters["realm"], "a")
        expectEqual(parse("Basic realm=\"ä\"").first?.parameters["realm"], "ä")
    }

    @Test func `the strongest known scheme comes first, and unknown schemes are left out`() throws {
        let head = try #require(
            ResponseHead(
                bytes: Array(
                    """
                    HTTP/1.1 401 Unauthorized\r
                    WWW-Authenticate: Basic realm="a", Hoba max-age=1\r
                    www-authenticate: DIGEST realm="b", nonce=n\r
                    WWW-Authenticate: Bearer\r
                    Proxy-Authenticate: Basic realm="proxy"\r
                    \r

                    """.utf8)))
        let origin = try #require(URL(string: "http://a/").flatMap { Origin($0) })
        let challenges = AuthenticationChallenge.all(in: head, from: origin)
        expectEqual(challenges.map(\.scheme), [.bearer, .digest, .basic])
        expectEqual(challenges.map(\.protectionSpace.realm), ["", "b", "a"])
        #expect(challenges.allSatisfy { !$0.protectionSpace.isProxy && $0.protectionSpace.origin == origin })
    }

    @Test func `challenges of a proxy have the proxy's origin`() throws {
        let text = "HTTP/1.1 407 Proxy\r\nWWW-Authenticate: Basic realm=a\r\nProxy-Authenticate: Basic realm=p\r\n\r\n"
        let head = try #require(ResponseHead(bytes: Array(text.utf8)))
        let challenges = AuthenticationChallenge.all(
            in: head, from: try #require(URL(string: "http://a/").flatMap { Origin($0) }))
        expectEqual(challenges.map(\.protectionSpace.realm), ["p"])
        expectEqual(challenges.first?.protectionSpace.isProxy, true)
    }

    @Test func `at random, every text ends and gives at most one challenge for each word`() {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SplitMix64(seed: seed)
        let pieces = [
            "Basic", "Digest", " ", "\t", ",", "=", "\"", "\\", "realm", "a", "/", "==", "\0", "ü", "\u{FFFD}", "\r\n", "@", "(",
            "😀", "\"x\"",
        ]
        for _ in 0..<20_000 {
            let text = (0..<Int.random(in: 0...24, using: &generator)).map { _ in pieces.randomElement(using: &generator) ?? "" }
                .joined()
            let challenges = parse(text)
            #expect(challenges.count <= text.utf8.count, "seed \(seed): \(text.debugDescription)")
            #expect(challenges.allSatisfy { !$0.scheme.isEmpty }, "seed \(seed): \(text.debugDescription)")
        }
    }

    @Test func `a very long challenge field is read in time`() {
        expectEqual(parse(String(repeating: "Basic realm=\"x\", ", count: 10_000)).count, AuthenticateField.most)
        expectEqual(parse("Basic realm=\"" + String(repeating: "\\\"", count: 100_000)).count, 1)
    }

    @Test func `only the first of very many challenges are read`() throws {
        let text = (0..<39_000).map { "Basic realm=\"\($0)\"" }.joined(separator: ",")
        expectEqual(parse(text).map(\.parameters), (0..<32).map { ["realm": "\($0)"] })
        let head = "HTTP/1.1 401 x\r\nWWW-Authenticate: \(text)\r\nWWW-Authenticate: Basic realm=x\r\n\r\n"
        let response = try #require(ResponseHead(bytes: Array(head.utf8)))
        let all = AuthenticationChallenge.all(in: response, from: .unknown)
        expectEqual(all.count, 32)
    }
}
