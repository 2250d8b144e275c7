import Expectations
import Foundation
import NetworkLab
import Reachability
import Testing

/// The program with few file descriptors, and with few local ports.
@Suite(.requiresNamespaces, .timeLimit(.minutes(10)))
struct FileLimitTests {
    /// A host whose port 9 does not answer, with a server on another port of each loopback address.
    private func host() throws -> (host: LabHost, server: Server) {
        let host = try Lab().host(loopback: true)
        try host.run(
            "nft", "-f", "-",
            input: "table inet t { chain c { type filter hook input priority 0; tcp dport 9 drop\n }\n }\n")
        return (host, try host.serve(at: "0.0.0.0"))
    }

    private func run(_ host: LabHost, limit: Int, _ words: [String]) throws -> (program: Program, targets: [[String: Any]]) {
        let command = try ["sh", "-c", "ulimit -n \(limit); exec \"$0\" \"$@\"", Programs.netwatch, "status", "--json"]
        let program = try Program(command + words + ["--netns", host.path], output: .file)
        _ = try program.wait(within: patience)
        let document = try JSONSerialization.jsonObject(with: Data(program.output.utf8)) as? [String: Any]
        return (program, try #require(document?["targets"] as? [[String: Any]], "\(program.standardError)"))
    }

    private func line(_ record: [String: Any]) -> String {
        let cause = record["cause"] as? [String: Any]
        let words = [record["status"], cause?["layer"], cause?["code"]].compactMap { $0 as? String }
        return words.joined(separator: " ")
    }

    @Test func `with 64 descriptors, targets are probed one after the other, silent ones delay no others, and a line says so`()
        throws
    {
        let (host, server) = try host()
        // 200 silent targets and some 25 sockets for them: eight times the deadline.
        let targets = (0..<400).map { "127.1.\($0 / 200).\($0 % 200 + 1):\($0 % 2 == 0 ? server.port : 9)" }
        let (program, records) = try run(host, limit: 64, targets + ["--probe-timeout", "1s"])
        let lines = records.map(line)
        expectEqual(lines.count, 400)
        expectEqual(Set(stride(from: 0, to: lines.count, by: 2).map { lines[$0] }), ["up"])
        // The packet filter of this machine drops their port. The packets of one target a second are counted, which shows it.
        let silent = Set(stride(from: 1, to: lines.count, by: 2).map { lines[$0] })
        #expect(silent.isSubset(of: ["down tcp timeout", "unreachable firewall local-drop"]), "\(silent)")
        let notes = program.standardError.split(separator: "\n")
        #expect(notes.count == 1 && notes[0].hasPrefix("netwatch: local/file-limit: "), "\(program.standardError)")
    }

    @Test func `local ports that are all in use are the cause local port-exhausted`() throws {
        let (host, server) = try host()
        try host.set("ipv4.ip_local_port_range", "50000 50001")
        let clients = try (0..<2).map { _ in
            try Program(["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/\(server.port) && exec sleep 600"], on: host)
        }
        defer { for client in clients { client.stop() } }
        let end = ContinuousClock.now + patience
        var lines: [String] = []
        while lines != ["unreachable local port-exhausted"], ContinuousClock.now < end {
            lines = try run(host, limit: 1_024, ["127.0.0.1:\(server.port)"]).targets.map(line)
        }
        expectEqual(lines, ["unreachable local port-exhausted"])
    }
}
