import NetworkLab

/// Faults of HTTP: the connection is established, and the server's response decides.
extension Fault {
    /// The rows of HTTP.
    package static let httpFaults: [Fault] = [
        .fromStart(
            "server accepts, never answers HTTP", levelURL("http", FaultNetwork.port),
            expect: .down("http/timeout", within: ExpectedVerdict.silent)
        ) { _ in },
        answered("answers 503", "HTTP/1.1 503 No\\r\\nContent-Length: 0\\r\\n\\r\\n", .down("http/status", ["status": "503"])),
        // Half of the window of 20 results must be slow.
        .fromStart(
            "server answers after 400 ms, response limit 200 ms", levelURL("http"),
            expect: .degraded("quality/response", ["response_limit_us": "200000"], within: .seconds(14))
        ) { network in try ScriptedServer("s.recv(4096); time.sleep(0.4); \(ScriptedServer.response)").start(network) }
        .options(["--response-limit", "200ms"]).naming("the median response time is 4")
        // One probe, as that of `why`, has no median.
        .explained(.none),
        spoken(
            "sends garbage instead of HTTP", "http", "s.recv(4096); s.sendall(bytes(range(256)))", .down("http/invalid-response")),
        spoken(
            "speaks SSH instead of HTTP", "http", "s.sendall(b'SSH-2.0-OpenSSH_9.2\\r\\n')", .down("http/invalid-response")),
        answered(
            "sends a body that differs from the expectation", "HTTP/1.1 200 OK\\r\\nContent-Length: 7\\r\\n\\r\\nstopped",
            .down("http/unexpected-body", ["expectation": "^running"])
        )
        .options(["--expect-body", "^running"]),
        json("has another value in its JSON", #"{"status": "failing"}"#)
            .naming("sends failing where /status equals ok is expected"),
        json("sends no JSON", "<html>").naming("no JSON text"),
        encoded("compresses its body unasked (gzip), expectation met", "gzip", .up(within: ExpectedVerdict.answered))
            // `why` has no cause.
            .explained(.none),
        encoded(
            "compresses its body unasked (br), expectation declared", "br",
            .down("http/unexpected-body", ["content_encoding": "br", "expectation": "^running"])
        ).naming("the coding 'br'"),
        answered(
            "answers 511: the network requires a login", "HTTP/1.1 511 Login\\r\\nContent-Length: 0\\r\\n\\r\\n",
            .down("http/captive-portal", ["status": "511"])),
        // The portal answers for every host. Its own page has another address, and is no answer of the server either.
        answered(
            "is replaced by a captive portal that redirects, expectation declared",
            "HTTP/1.1 302 Found\\r\\nLocation: http://\(FaultNetwork.nameServers[1]):\(levelPort)/login\\r\\n"
                + "Content-Length: 0\\r\\n\\r\\n",
            .down("http/captive-portal"), ifOther: "HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nlogin"
        )
        .options(["--expect-body", "^running"]),
        answered(
            "redirects in a loop", "HTTP/1.1 302 Go\\r\\nLocation: /\\r\\nContent-Length: 0\\r\\n\\r\\n",
            .down("http/invalid-response")),
        spoken(
            "sends endless header fields", "http",
            "s.recv(4096); s.sendall(b'HTTP/1.1 200 OK\\r\\n'); [s.sendall(b'X: y\\r\\n' * 10000) for _ in range(1000)]",
            .down("http/invalid-response", ["limit": "512 header fields"])),
        spoken(
            "sends an endless header field", "http",
            "s.recv(4096); s.sendall(b'HTTP/1.1 200 OK\\r\\nX: '); [s.sendall(b'y' * 65536) for _ in range(16384)]",
            .down("http/invalid-response", ["limit": "64 KiB of header fields"])),
        spoken(
            "sends an endless body", "http",
            "s.recv(4096); s.sendall(b'HTTP/1.1 200 OK\\r\\n\\r\\n'); [s.sendall(bytes(65536)) for _ in range(16384)]",
            .down("http/invalid-response", ["limit": "8 MiB of body"])),
    ]

    /// A server whose body is not the JSON text that is expected.
    private static func json(_ name: String, _ body: String) -> Fault {
        let length = body.utf8.count
        return answered(
            name, "HTTP/1.1 200 OK\\r\\nContent-Length: \(length)\\r\\n\\r\\n\(body)",
            .down("http/unexpected-body", ["expectation": "/status equals ok"])
        )
        .options(["--expect-json", "/status equals ok"])
    }

    /// A server whose body is compressed by gzip, under the name of a coding.
    private static func encoded(_ name: String, _ coding: String, _ expected: ExpectedVerdict) -> Fault {
        spoken(
            name, "http",
            "s.recv(4096); s.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Encoding: \(coding)\\r\\n\\r\\n'"
                + " + __import__('gzip').compress(b'running'))", expected
        )
        .options(["--expect-body", "^running"])
    }

    /// A server that answers each request with the bytes of a Python literal, and requests for another host with others.
    private static func answered(
        _ name: String, _ response: String, _ expected: ExpectedVerdict, ifOther other: String? = nil
    ) -> Fault {
        let own = "b'Host: \(family.target(family.server, levelPort))'"
        return spoken(
            name, "http", "r = s.recv(4096); s.sendall(b'\(response)' if \(own) in r else b'\(other ?? response)')", expected)
    }
}
