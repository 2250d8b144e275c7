import Foundation
import NetworkLab

/// Faults of TLS and HTTP: the connection is established, and the server's bytes decide.
extension Fault {
    private static let family = FaultNetwork.Family.ipv4
    private static let port: UInt16 = 8443

    private static func url(_ scheme: String, _ port: UInt16 = port) -> String {
        "\(scheme)://\(family.target(family.server, port))"
    }

    static let levelFaults: [Fault] = [
        silent("accepts, never speaks TLS", "tls", "tls/handshake-stalled"),
        silent("accepts, never answers HTTP", "http", "http/timeout"),
        spoken(
            "speaks SSH instead of TLS", "tls", "s.sendall(b'SSH-2.0-OpenSSH_9.2\\r\\n'); time.sleep(60)", "tls/protocol-mismatch"
        ),
        spoken("closes on the hello", "tls", "s.recv(1)", "tls/handshake-refused"),
        spoken("resets on the hello", "tls", "s.recv(1); \(reset)", "tls/handshake-refused"),
        spoken(
            "sends one TLS byte a second", "tls",
            "[(s.sendall(bytes([b])), time.sleep(1)) for b in b'\\x16\\x03\\x03\\x00\\x7a\\x02']",
            "tls/handshake-timeout", within: ExpectedVerdict.silent),
        spoken(
            "HTTP 503", "http", "s.recv(4096); s.sendall(b'HTTP/1.1 503 No\\r\\nContent-Length: 0\\r\\n\\r\\n')", "http/status"),
        spoken("garbage instead of HTTP", "http", "s.recv(4096); s.sendall(bytes(range(256)))", "http/invalid-response"),
        spoken("speaks SSH instead of HTTP", "http", "s.sendall(b'SSH-2.0-OpenSSH_9.2\\r\\n')", "http/invalid-response"),
        spoken(
            "511: the network requires a login", "http",
            "s.recv(4096); s.sendall(b'HTTP/1.1 511 Login\\r\\nContent-Length: 0\\r\\n\\r\\n')", "http/captive-portal"),
        spoken(
            "redirect loop", "http",
            "s.recv(4096); s.sendall(b'HTTP/1.1 302 Go\\r\\nLocation: /\\r\\nContent-Length: 0\\r\\n\\r\\n')",
            "http/invalid-response"),
        spoken(
            "endless header fields", "http",
            "s.recv(4096); s.sendall(b'HTTP/1.1 200 OK\\r\\n'); [s.sendall(b'X: y\\r\\n' * 10000) for _ in range(1000)]",
            "http/invalid-response"),
        spoken(
            "endless body", "http",
            "s.recv(4096); s.sendall(b'HTTP/1.1 200 OK\\r\\n\\r\\n'); [s.sendall(bytes(65536)) for _ in range(16384)]",
            "http/invalid-response"),
        .fromStart(
            "certificate of an unknown authority", url("tls"),
            expect: .down("tls/certificate-untrusted", within: ExpectedVerdict.answered)
        ) { try serveTLS($0) },
        .fromStart(
            "large packets vanish, without a report", url("tls"),
            expect: .unreachable(
                "network/packet-too-big", ["inferred": "TCP_MAXSEG 536"], within: ExpectedVerdict.silent)
        ) { network in
            try serveTLS(network)
            try network.router.filter(.forward, "iifname rs0 meta length > 1400 drop")
        },
    ]

    private static let reset = "s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))"

    private static func silent(_ name: String, _ scheme: String, _ cause: String) -> Fault {
        .fromStart(
            "server \(name)", url(scheme, FaultNetwork.port), expect: .down(cause, within: ExpectedVerdict.silent)
        ) { _ in }
    }

    /// A server that runs a line of Python for each connection `s`, and then closes the connection.
    private static func spoken(
        _ name: String, _ scheme: String, _ line: String, _ cause: String, within limit: Duration = ExpectedVerdict.answered
    ) -> Fault {
        .fromStart("server: \(name)", url(scheme), expect: .down(cause, within: limit)) { network in
            let program = """
                import socket, struct, threading, time
                def serve(s):
                    try:
                        \(line)
                    except OSError: pass
                    s.close()
                l = socket.create_server(('', \(port)), backlog=64)
                print('ready', flush=True)
                while True:
                    threading.Thread(target=serve, args=(l.accept()[0],), daemon=True).start()
                """
            let server = try Program(["/usr/bin/python3", "-c", program], on: network.site)
            network.hold(server)
            _ = try server.nextLine { $0 == "ready" }
        }
    }

    /// A TLS server whose certificate no authority has signed. Its 60 names make it longer than a segment.
    private static func serveTLS(_ network: FaultNetwork) throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("netwatch-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let names = (1...60).map { "DNS:host-\($0).server.example" }.joined(separator: ",")
        let request = try Program(
            [
                "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                "key.pem",
                "-out", "certificate.pem", "-days", "30", "-subj", "/CN=server", "-addext",
                "subjectAltName=\(names),IP:\(family.server)",
            ], directory: directory.path)
        guard try request.wait() == 0 else { throw LabError("openssl req fails: \(request.ending)") }
        let server = try Program(
            ["openssl", "s_server", "-accept", "\(port)", "-cert", "certificate.pem", "-key", "key.pem", "-www"],
            on: network.site,
            directory: directory.path)
        network.hold(server)
        _ = try server.nextLine { $0.hasPrefix("ACCEPT") }
    }
}
