import CCurl
import Expectations
import Glibc
import Testing

@testable import HTTPSession

/// The answers to Digest challenges (RFC 7616).
@Suite struct DigestChallengeTests {
    private func challenges(_ field: String) throws -> [AuthenticationChallenge] {
        let head = try #require(ResponseHead(bytes: Array("HTTP/1.1 401 No\r\nWWW-Authenticate: \(field)\r\n\r\n".utf8)))
        let url = try TransferRequest(urlString: "https://host.example/").url
        let origin = try #require(Origin(url))
        return AuthenticationChallenge.all(in: head, from: origin)
    }

    private func challenge(_ field: String) throws -> DigestChallenge {
        let first = try #require(try challenges(field).first)
        return try #require(DigestChallenge(first))
    }

    private func answer(
        _ field: String, user: String = "Mufasa", password: String = "Circle of Life", method: String = "GET",
        target: String = "/dir/index.html", body: String? = nil, nonce: String = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
        count: UInt32 = 1
    ) throws -> String? {
        let challenge = try self.challenge(field)
        let algorithm = challenge.algorithm
        return challenge.answer(
            user: user, password: password,
            to: .init(
                method: method, target: target, count: count, clientNonce: nonce, bodyHash: body.flatMap { algorithm.hash($0) })
        ) { algorithm.hash($0) }
    }

    @Test(arguments: [
        // RFC 7616 section 3.9.1. The third is computed by Python's hashlib: the example of section 3.9.2 truncates SHA-512, which is another function.
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ("SHA-512-256", "430d05014cecc49cab6fbe03176d41a1da86cbfe24a16580e22aaad928d960d0"),
        ("sha-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ]) func `a Digest answer is that of the specification`(_ algorithm: String, _ response: String) throws {
        let field = """
            Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=\(algorithm), \
            nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
            """
        try expectEqual(
            answer(field),
            """
            Digest username="Mufasa", realm="http-auth@example.org", nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", \
            uri="/dir/index.html", response="\(response)", algorithm=\(algorithm), opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS", \
            qop=auth, nc=00000001, cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
            """)
    }

    // RFC 7616 section 3.4: the octets are those of the challenge, in the field and in the hash.
    @Test func `a challenge that is not UTF-8 is answered with its own bytes`() throws {
        let field =
            Array(#"HTTP/1.1 401 No\#r\#nWWW-Authenticate: Digest realm="caf"#.utf8) + [0xE9]
            + Array(#"", nonce="n"#.utf8) + [0xFF] + Array("\"\r\n\r\n".utf8)
        let head = try #require(ResponseHead(bytes: field))
        let origin = try #require(Origin(TransferRequest(urlString: "https://host.example/").url))
        let first = try #require(AuthenticationChallenge.all(in: head, from: origin).first)
        expectEqual(first.protectionSpace.realm, "caf\u{E9}")
        let challenge = try #require(DigestChallenge(first))
        func md5(_ parts: [UInt8]...) -> String? { parts.joined().map { $0 }.withUnsafeBytes { challenge.algorithm.hash($0) } }
        let secret = try #require(md5(Array("jörg:caf".utf8), [0xE9], Array(":word".utf8)))
        let subject = try #require(md5(Array("GET:/".utf8)))
        let response = try #require(md5(Array("\(secret):n".utf8), [0xFF], Array(":\(subject)".utf8)))
        let value = try #require(
            challenge.answer(
                user: "jörg", password: "word", to: .init(method: "GET", target: "/", count: 1, clientNonce: "c")
            ) { challenge.algorithm.hash($0, isLatin1: challenge.isLatin1) })
        let list = try LineList(["A: b"], latin1: [value])
        let line = try #require(list.raw?.pointee.next?.pointee.data)
        let sent = Array(UnsafeBufferPointer(start: line, count: strlen(line))).map { UInt8(bitPattern: $0) }
        expectEqual(
            sent,
            Array(#"Digest username="jörg", realm="caf"#.utf8) + [0xE9] + Array(#"", nonce="n"#.utf8) + [0xFF]
                + Array(#"", uri="/", response="\#(response)""#.utf8))
    }

    @Test func `a challenge without qop gets the answer of RFC 2069, and a name is hashed on request`() throws {
        // RFC 2617's credential and nonce, without qop.
        let old = try answer(
            #"Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093""#, password: "Circle Of Life")
        #expect(old?.hasSuffix(#"uri="/dir/index.html", response="670fd8c2df070c60b045671b8b24ff02""#) == true)
        let hashed = try answer(
            #"Digest realm="api@example.org", nonce="n", qop=auth, algorithm=SHA-512-256, userhash=true"#, user: "Jäsøn Doe")
        #expect(
            hashed?.hasPrefix(#"Digest username="793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b", "#) == true)
        #expect(hashed?.hasSuffix(", userhash=true") == true)
    }

    @Test(arguments: [
        // RFC 9110 section 5.6.6 has no spaces around `=`, but section 11.2 lets recipients accept them.
        #"Digest realm = "r" , nonce = "n",qop = "auth""#, "Digest\trealm=r,nonce=n,qop=auth",
        #"digest REALM="r", Nonce="n", QOP="AUTH,auth-int""#,
        #"Digest nonce="n", realm="r", stale=FALSE, domain="/a /b", qop="auth-x, auth", unknown=x"#,
    ]) func `a Digest challenge is read in each of its forms`(_ field: String) throws {
        let text = try #require(try answer(field))
        #expect(text.contains(#"realm="r", nonce="n""#) && text.contains("qop=auth,"))
    }

    @Test(arguments: [
        #"Digest realm="r", nonce="n", algorithm=SHA-3"#, #"Digest realm="r", nonce="n", qop="conf""#, #"Digest realm="r""#,
        #"Digest realm="r", nonce="""#,
        #"Digest nonce="n""#, #"Digest realm="r", nonce="n", algorithm=-sess"#, "Digest realm=\"r\", nonce=\"n\u{1}\"", "Digest",
    ]) func `nobody is asked about a Digest challenge that has no answer`(_ field: String) throws {
        try expectEqual(challenges("\(field), Basic realm=b").map(\.scheme), [.basic])
    }

    @Test func `an unknown algorithm before a known one is skipped, and the server's order is kept`() throws {
        let all = try challenges(
            #"Digest realm="r", nonce="n", algorithm=FOO, Digest realm="r", nonce="n", algorithm=SHA-256, Digest realm="r", nonce="n", algorithm=MD5"#
        )
        expectEqual(all.map { $0.parameters["algorithm"] }, ["SHA-256", "MD5"])
    }

    @Test func `auth-int covers the body, and needs its hash`() throws {
        let field = #"Digest realm="r", nonce="n", qop="auth-int""#
        try expectNil(answer(field))
        let (one, other) = (try answer(field, body: "a"), try answer(field, body: "b"))
        #expect(one?.contains("qop=auth-int") == true && one != other)
    }

    @Test func `texts of an answer are quoted, and requests are counted in hexadecimal digits`() throws {
        let text = try #require(
            try answer(#"Digest realm="a\"b\\c", nonce="n", qop=auth, opaque="\"""#, user: #"d"e"#, count: 26))
        for part in [#"username="d\"e""#, #"realm="a\"b\\c""#, #"opaque="\"""#, "nc=0000001a"] {
            #expect(text.contains(part), "\(part)")
        }
    }

    @Test(arguments: [
        ("https://h", "/"), ("https://h/", "/"), ("https://h?q", "/?q"), ("https://h/a/b?q#f", "/a/b?q"),
        ("https://h/a/./b/../c", "/a/c"),
        ("https://h/a/..", "/"), ("https://h/../a/.", "/a/"), ("https://h//a", "//a"), ("https://h/a/b/", "/a/b/"),
        ("https://h/a?x=/../y", "/a?x=/../y"),
    ]) func `an answer is for the request target as libcurl sends it`(_ url: String, _ target: String) {
        expectEqual(TransferPlan(url: url, method: "GET").target, target)
    }
}
