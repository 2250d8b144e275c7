import Foundation
import NetworkLab

/// A server of a fault's network: a Python program that runs a line for each connection `s`, and then closes the connection.
struct ScriptedServer: Sendable {
    /// The line of Python for a connection.
    var line: String
    /// The certificate and the lines of Python that change its `ssl.SSLContext`, named `context`; `nil` for a server without TLS.
    var tls: (identity: ServerIdentity, settings: String)?

    /// A line that answers a request of HTTP.
    static let answer = "s.recv(4096); \(response)"

    /// A line that sends a response of HTTP.
    static let response = "s.sendall(b'HTTP/1.1 204 No Content\\r\\n\\r\\n')"

    /// A server whose line speaks for itself.
    init(_ line: String) { self.line = line }

    /// A server that completes the TLS handshake, and then runs the line.
    init(_ identity: ServerIdentity, settings: String = "", _ line: String = "s.recv(4096)") {
        self.line = "s = context.wrap_socket(s, server_side=True, do_handshake_on_connect=False); s.do_handshake(); \(line)"
        tls = (identity, settings)
    }

    /// Starts the server on a host of the network, which keeps it. The port listens when this method returns.
    @discardableResult
    func start(_ network: FaultNetwork, on host: LabHost? = nil, port: UInt16 = Fault.levelPort) throws -> Program {
        let scratch = try ScratchDirectory()
        var context = ""
        if let tls {
            try tls.identity.chain.write(toFile: scratch.file("chain.pem"), atomically: true, encoding: .utf8)
            try tls.identity.key.write(toFile: scratch.file("key.pem"), atomically: true, encoding: .utf8)
            context = """
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain('chain.pem', 'key.pem')
                \(tls.settings)
                """
        }
        let program = """
            import socket, ssl, struct, threading, time
            \(context)
            def serve(s):
                try:
                    \(line)
                except OSError: pass
                s.close()
            l = socket.create_server(('', \(port)), backlog=1024)
            print('ready', flush=True)
            while True:
                threading.Thread(target=serve, args=(l.accept()[0],), daemon=True).start()
            """
        let server = try Program(["/usr/bin/python3", "-c", program], on: host ?? network.site, directory: scratch.path)
        network.hold(server)
        _ = try server.nextLine { $0 == "ready" }
        return server
    }
}

/// A server of a fault's network that staples an OCSP response: `openssl s_server`, since Python cannot.
struct StaplingServer: Sendable {
    let identity: ServerIdentity
    /// The response, in DER.
    let response: Data

    /// Starts the server on the site, which answers requests of HTTP. The port listens when this method returns.
    func start(_ network: FaultNetwork) throws {
        let scratch = try ScratchDirectory()
        let end = "-----END CERTIFICATE-----\n"
        let certificates = identity.chain.components(separatedBy: end).map { $0 + end }
        try certificates[0].write(toFile: scratch.file("own.pem"), atomically: true, encoding: .utf8)
        try certificates[1].write(toFile: scratch.file("issuer.pem"), atomically: true, encoding: .utf8)
        try identity.key.write(toFile: scratch.file("key.pem"), atomically: true, encoding: .utf8)
        try response.write(to: URL(fileURLWithPath: scratch.file("response.der")))
        let server = try Program(
            [
                "openssl", "s_server", "-accept", "\(Fault.levelPort)", "-cert", "own.pem", "-cert_chain", "issuer.pem", "-key",
                "key.pem",
                "-status_file", "response.der", "-www",
            ], on: network.site, directory: scratch.path)
        network.hold(server)
        network.hold(scratch)
        _ = try server.nextLine { $0 == "ACCEPT" }
    }
}
