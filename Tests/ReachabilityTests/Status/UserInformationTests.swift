import Expectations
import Pacing
import Testing

@testable import Reachability

/// Passwords in URLs and targets, as users write them.
@Suite struct UserInformationTests {
    @Test(arguments: [
        ("http://bob:secret@host/", "http://bob:***@host/"),
        ("https://bob:secret@host:8443/a@b?c@d#e@f", "https://bob:***@host:8443/a@b?c@d#e@f"),
        ("tls://bob:secret@[2001:db8::1]:443", "tls://bob:***@[2001:db8::1]:443"),
        ("bob:secret@host:80", "bob:***@host:80"), ("//bob:secret@host", "//bob:***@host"),
        ("ftp://:secret@host", "ftp://:***@host"), ("http://bob:@host/", "http://bob:***@host/"),
        // Several signs and colons, and no host.
        ("http://bob:sec@ret@host/", "http://bob:***@host/"), ("http://bob:sec:ret@host", "http://bob:***@host"),
        ("http://bob:secret@", "http://bob:***@"), ("http://bob:secret@/x", "http://bob:***@/x"),
        ("http:///bob:secret@host", "http:///bob:***@host"), ("http:/bob:secret@host", "http:/bob:***@host"),
        ("http:bob:secret@host", "http:***@host"), (" http://bob:secret@host", " http://bob:***@host"),
        // Percent-encoded delimiters.
        ("http://bob%3Asecret@host/", "http://bob%3A***@host/"), ("http://bob:secret%40host/", "http://bob:***%40host/"),
        ("http://bob:sec%40ret@host/", "http://bob:***@host/"), ("http://bob%3asecret%40host", "http://bob%3a***%40host"),
        // Characters that end the authority.
        ("http://bob:sec/ret@host/", "http://bob:***@host/"), ("http://bob:sec?ret@host", "http://bob:***@host"),
        ("http://bob:sec#r/e@t@host", "http://bob:***@host"), ("http://bob:/secret@host", "http://bob:***@host"),
        ("bob:se://cret@host", "bob:***@host"), ("http://bob:sec\\ret@host/", "http://bob:***@host/"),
        // A combining character makes one character of two, and not one byte.
        ("http://bob:secret@\u{301}host/", "http://bob:***@\u{301}host/"),
        // Delimiters that a second decoding, or the preparation of a name (RFC 3491), shows.
        ("http://bob:secret%2540host/", "http://bob:***%2540host/"),
        ("http://bob%253Asecret%2540host/", "http://bob%253A***%2540host/"),
        ("http://bob:secret\u{FF20}host/", "http://bob:***\u{FF20}host/"),
        ("http://bob\u{FF1A}sec/ret\u{FF20}host", "http://bob\u{FF1A}***\u{FF20}host"),
        // A user alone may be a token.
        ("https://ghp_token@host/", "https://***@host/"),
    ])
    func `the password is replaced, also in a malformed URL`(_ text: String, _ shown: String) {
        expectEqual(UserInformation.withoutPassword(text), shown)
        expectEqual(UserInformation.withoutPassword(shown), shown)
    }

    @Test(arguments: [
        "", "@", "host:80", "user@host:80", "[::1]:80", "[fe80::1%40]:80", "[fe80::1%eth0]:22", "http://host/a:b@c",
        "http://host:80/a:b@c", "http://[::1]:80/@", "http://[fe80::1%2540]:80/x@y", "http://host?q=a:b@c", "http://host/%40",
        "%",
        "::1:80", "100%",
    ])
    func `a text without a password stays as it is`(_ text: String) {
        expectEqual(UserInformation.withoutPassword(text), text)
    }

    @Test func `the passwords in the words of a command are replaced`() {
        let command = "curl  -s \"https://bob:secret@host/?x\" | scp - bob@host:/x; URL='http://bob:secret@a' run"
        let shown = "curl  -s \"https://bob:***@host/?x\" | scp - bob@host:/x; URL='http://bob:***@a' run"
        expectEqual(UserInformation.withoutPasswords(inWordsOf: command), shown)
    }

    @Test func `no text with a password before a host shows a part of it`() {
        var generator = SplitMix64(seed: 15)
        let pieces = ["@", ":", "/", "//", "://", "?", "#", "%40", "%3A", "%", "[", "]", "\\", " ", "'", "é", "x", "0"]
        for scheme in ["http://", "https://", "tls://", "HTTP:///", ""] {
            for _ in 0..<500 {
                let password = (0..<Int.random(in: 0...6, using: &generator)).map { _ in
                    Bool.random(using: &generator) ? "secret" : pieces.randomElement(using: &generator) ?? ""
                }
                // The first authority with a sign has the user information: a later one may belong to a path.
                let joined = password.joined()
                let hasSign = joined.contains("@") || joined.contains("%40")
                let text = "\(scheme)bob:secret\(hasSign ? joined.filter { !"/?#".contains($0) } : joined)@host.example/"
                #expect(!UserInformation.withoutPassword(text).contains("secret"), "\(text)")
                guard let refusal = #expect(throws: Endpoint.ParseError.self, "\(text)", performing: { try Endpoint(text) })
                else { continue }
                #expect(!refusal.description.contains("secret"), "\(text): \(refusal)")
                let other = #expect(throws: Endpoint.ParseError.self) { try Endpoint(host: text, port: 80) }
                expectEqual(other?.description.contains("secret"), false, "\(text)")
            }
        }
    }
}
