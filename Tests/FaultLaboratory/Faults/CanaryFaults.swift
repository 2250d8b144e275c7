import NetworkLab

/// Faults that the canary of the program shows: a URL whose answer is known. Only the canary is probed.
extension Fault {
    private static let port: UInt16 = 8084
    private static let portalPort: UInt16 = 8085
    private static let canary = "http://\(family.target(family.server, port))/generate_204"

    /// The rows of the canary.
    static let canaryFaults: [Fault] = [
        portal(
            "canary redirected by a captive portal", known: "HTTP/1.1 204 No Content\\r\\n\\r\\n",
            foreign: "HTTP/1.1 302 Found\\r\\nLocation: http://portal.example/login\\r\\nContent-Length: 0\\r\\n\\r\\n",
            ["status": "302", "location": "http://portal.example/login"]),
        portal(
            "canary answered with a captive portal's page", known: page("success"), foreign: page("log in"),
            ["status": "200", "expectation": "success"], options: ["--canary-body", "success"]),
        portal(
            "canary answered with 511", known: "HTTP/1.1 204 No Content\\r\\n\\r\\n",
            foreign: "HTTP/1.1 511 Login\\r\\nContent-Length: 0\\r\\n\\r\\n", ["status": "511"]),
        .during(
            "canary: gateway dies while REACHABLE", canary,
            prepare: { try serve("HTTP/1.1 204 No Content\\r\\n\\r\\n", on: $0.site, port, $0) },
            expect: .unreachable("neighbor/gateway-silent", within: ExpectedVerdict.silent)
        ) { try $0.router.silence("rv0") }.asCanary().explained(.status("unreachable")),
    ]

    private static func page(_ text: String) -> String {
        "HTTP/1.1 200 OK\\r\\nContent-Length: \(text.utf8.count)\\r\\n\\r\\n\(text)"
    }

    /// A portal on the router that begins to answer in the place of the canary's server.
    private static func portal(
        _ name: String, known: String, foreign: String, _ evidence: [String: String], options: [String] = []
    ) -> Fault {
        .during(
            name, canary,
            prepare: { network in
                try serve(known, on: network.site, port, network)
                try serve(foreign, on: network.router, portalPort, network)
            },
            expect: .down("http/captive-portal", evidence)
        ) { network in
            try network.router.redirectArrivals("ip daddr \(family.server) tcp dport \(port) redirect to :\(portalPort)")
        }.asCanary(options)
    }

    /// Starts a server that answers each request with the bytes of a Python literal.
    private static func serve(_ response: String, on host: LabHost, _ port: UInt16, _ network: FaultNetwork) throws {
        try ScriptedServer("s.recv(4096); s.sendall(b'\(response)')").start(network, on: host, port: port)
    }
}
