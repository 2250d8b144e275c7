import Expectations
import Foundation
import HTTPSessionTestKit
import NetworkLab
import Testing
import TestServers

/// The causes that `get` reports without a connection. They must be those that `status` reports for the same targets.
@Suite(.serialized, .requiresNamespaces, .requiresMounts, .timeLimit(.minutes(20))) struct GetCauseLabTests {
    private let client: LabHost
    private let site: LabHost
    private let folder: ScratchDirectory
    private let resolver: SilentResolver

    /// Prepares the faults: 10.9.1.77 is on the link and silent, 203.0.113.10 is behind a silent gateway, port 81 of 10.9.1.1
    /// drops packets, port 82 refuses connections.
    init() throws {
        let uplinks = try Uplinks("up0")
        (client, site) = (uplinks.client, uplinks.site)
        folder = try ScratchDirectory()
        try client.ip("route add default via \(uplinks.gateway())")
        try client.ip("route add 203.0.113.10/32 via 10.9.1.78")
        resolver = try SilentResolver(at: "10.9.1.1", namespace: site.path)
        let rules = try Program(
            [
                "nft",
                "add table ip faults; add chain ip faults input { type filter hook input priority 0; };"
                    + "add rule ip faults input tcp dport 81 drop",
            ], on: site)
        try expectEqual(rules.wait(), 0, "\(rules.ending)")
        try Data("nameserver 10.9.1.1\n".utf8).write(to: URL(fileURLWithPath: folder.file("resolv.conf")))
    }

    struct Fault: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var target: String
        var cause: String
        var proxy: String?
    }

    private static let faults = [
        Fault(testDescription: "silent host", target: "10.9.1.77:80", cause: "host-silent"),
        Fault(testDescription: "silent gateway", target: "203.0.113.10:80", cause: "gateway-silent"),
        Fault(testDescription: "silent resolver", target: "files.example:80", cause: "resolver-silent"),
        Fault(testDescription: "dropped port", target: "10.9.1.1:81", cause: "timeout"),
        Fault(testDescription: "refused port", target: "10.9.1.1:82", cause: "refused"),
        Fault(testDescription: "silent proxy", target: "203.0.113.9:80", cause: "host-silent", proxy: "10.9.1.77:3128"),
        Fault(testDescription: "refusing proxy", target: "203.0.113.9:80", cause: "refused", proxy: "10.9.1.1:3128"),
    ]

    private func run(_ arguments: [String], proxy: String? = nil, errors: Program.Errors = .file) throws -> Program {
        let script = "mount --bind \"$1\" /etc/resolv.conf && shift && exec \"$@\""
        return try Program(
            ["unshare", "--mount", "sh", "-c", script, "sh", folder.file("resolv.conf"), try Programs.netwatch] + arguments,
            on: client,
            environment: ["http_proxy": proxy.map { "http://\($0)" }, "https_proxy": nil, "all_proxy": nil, "no_proxy": nil],
            directory: folder.path, errors: errors)
    }

    private struct Document: Decodable {
        struct Target: Decodable {
            var cause: TransferLine.Cause?
        }

        var targets: [Target]
    }

    private struct ProxyLine: Decodable {
        struct Cause: Decodable {
            struct Evidence: Decodable { var proxy: String? }
            var evidence: Evidence
        }

        var cause: Cause?
    }

    /// All programs run in parallel, because each takes as long as a probe.
    @Test func `get without a connection reports the same cause as status, also while it retries`() throws {
        let programs = try Self.faults.map { fault in
            (
                fault,
                try run(
                    ["get", "--json", "-o", fault.testDescription, "--timeout", "8s", "http://\(fault.target)/a"],
                    proxy: fault.proxy),
                try run(["status", "--json", fault.proxy ?? fault.target])
            )
        }
        for (fault, get, status) in programs {
            let document = try JSONDecoder().decode(
                Document.self, from: Data(status.remainingLines().joined(separator: "\n").utf8))
            let cause = try #require(document.targets.first?.cause)
            expectEqual(cause.code, fault.cause, "\(fault.testDescription): \(cause)")
            let lines = try get.remainingLines()
            let records = try lines.map(TransferLine.init)
            try expectEqual(get.wait(), 1)
            expectEqual(records.last?.state, "failed")
            let causes = Set(records.compactMap(\.cause).map { "\($0.layer)/\($0.code)" })
            expectEqual(causes, ["\(cause.layer)/\(cause.code)"], "\(fault.testDescription): \(lines)")
            for line in lines {
                let cause = try JSONDecoder().decode(ProxyLine.self, from: Data(line.utf8)).cause
                #expect(cause == nil || cause?.evidence.proxy == fault.proxy, "\(fault.testDescription): \(line)")
            }
            if let proxy = fault.proxy { #expect(get.standardError.contains("the proxy \(proxy) ")) }
            let isForeign = ["Failed to connect", "milliseconds", "curl", "Could", "timed out after 8s: timed"]
                .contains { get.standardError.contains($0) || lines.joined().contains($0) }
            #expect(!isForeign, "\(get.standardError)\n\(lines)")
        }
    }

    @Test func `a server that never answers the TLS handshake has stalled it`() throws {
        let server = try site.serve(at: "10.9.1.1")
        let get = try run(["get", "--json", "--timeout", "4s", "https://10.9.1.1:\(server.port)/a"])
        let records = try get.remainingLines().map(TransferLine.init)
        try expectEqual(get.wait(), 1)
        #expect(records.last?.cause?.layer == "tls" && records.last?.cause?.code == "handshake-stalled", "\(get.ending)")
        #expect(!get.standardError.contains("not done within"))
        #expect(get.standardError.contains("10.9.1.1 accepts the connection and does not answer the TLS handshake"))
    }

    @Test func `a server that sends a part of its TLS handshake has not finished it in time`() throws {
        let program = """
            import socket, time
            l = socket.create_server(('10.9.1.1', 8443))
            print('ready', flush=True)
            kept = []
            while True:
                s = l.accept()[0]
                s.sendall(b'\\x16\\x03\\x03')
                kept.append(s)
            """
        let server = try Program(["/usr/bin/python3", "-c", program], on: site)
        _ = try server.nextLine { $0 == "ready" }
        let get = try run(["get", "--json", "--timeout", "4s", "https://10.9.1.1:8443/a"])
        let records = try get.remainingLines().map(TransferLine.init)
        try expectEqual(get.wait(), 1)
        #expect(records.last?.cause?.layer == "tls" && records.last?.cause?.code == "handshake-timeout", "\(get.ending)")
        #expect(get.standardError.contains("10.9.1.1 does not finish the TLS handshake in time: it has sent 3 bytes"))
    }

    @Test func `a connection that is silent for three seconds is reported in a line`() throws {
        let get = try run(["get", "http://10.9.1.77/a"], errors: .output)
        let line = try get.nextLine { $0.contains("no answer for 3 s") }
        #expect(line.hasPrefix("a: no answer for 3 s"))
        _ = try get.nextLine { $0.contains(": 10.9.1.77 does not answer on its link") }
    }
}
