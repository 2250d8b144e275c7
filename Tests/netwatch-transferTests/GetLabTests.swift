import Expectations
import Foundation
import Glibc
import HTTPSessionTestKit
import NetworkLab
import Reachability
import Testing

/// The built program in a network namespace whose only uplink fails and returns. The server is at 203.0.113.9 behind the uplink.
@Suite(.serialized, .requiresNamespaces, .timeLimit(.minutes(20))) struct GetLabTests {
    private let client: LabHost
    private let site: LabHost
    private let folder: ScratchDirectory
    private let source: FileSource

    init() throws {
        let uplinks = try Uplinks("up0")
        (client, site) = (uplinks.client, uplinks.site)
        folder = try ScratchDirectory()
        try client.ip("route add default via \(uplinks.gateway())")
        source = try FileSource(size: 1_000_000, at: .ip(Uplinks.server, port: 0), namespace: NetworkNamespace(site.path))
    }

    private func get(
        _ arguments: String..., environment: [String: String?] = [:], output: Program.Output = .pipe,
        errors: Program.Errors = .file
    ) throws -> Program {
        try Program(
            [try Programs.netwatch, "get", "--netns", client.path] + arguments + [source.url], environment: environment,
            directory: folder.path, output: output, errors: errors)
    }

    private var file: Data? { try? Data(contentsOf: URL(fileURLWithPath: folder.file("big.bin"))) }

    @Test func `get reports that it waits when the carrier is lost, and continues`() async throws {
        source.change { $0.stopsAt = 500_000 }
        let program = try get(environment: ["TERM": "dumb"], output: .wideTerminal, errors: .output)
        _ = try program.nextLine { $0.contains("big.bin: from ") }
        try await source.server.awaitSeen { $0.sentBodyBytes >= 500_000 }
        try site.ip("link set up0 down")
        let line = try program.nextLine { $0.contains("waiting for the network") }
        #expect(line.contains("big.bin: "))
        #expect(line.contains(" %, waiting for the network: link: ") && line.contains("up0"))
        #expect(line.contains(/, since \d\d:\d\d\r?$/))
        source.change { $0.stopsAt = nil }
        try site.ip("link set up0 up")
        _ = try program.nextLine(within: .seconds(60)) { $0.contains("big.bin: continued at ") }
        try expectEqual(program.wait(within: .seconds(60)), 0, "\(program.ending)")
        expectEqual(file, source.content)
        source.openGate()
    }

    /// README's example: the same command before and after the carrier is lost and the process is killed. Standard error is a
    /// pipe.
    @Test func `the same command finishes a download interrupted by carrier loss and SIGKILL`() async throws {
        source.change { $0.stopsAt = 400_000 }
        let first = try get(errors: .output)
        try expectEqual(first.nextLine(), "big.bin: from \(source.url)")
        try await source.server.awaitSeen { $0.sentBodyBytes >= 400_000 }
        try site.ip("link set up0 down")
        let waiting = try first.nextLine()
        #expect(waiting?.contains(/^big.bin: \d+ %, waiting for the network: link: .*up0.*, since \d\d:\d\d$/) == true)
        source.change { $0.stopsAt = 700_000 }
        try site.ip("link set up0 up")
        let continued = try first.nextLine { !$0.contains("waiting for") }
        #expect(continued.contains(/^big.bin: continued at \d+ % \(.* of 976.5 KiB\)$/))
        try await source.server.awaitSeen { $0.sentBodyBytes >= 700_000 }
        try first.signal(SIGKILL)
        try expectEqual(first.wait(), 128 + SIGKILL, "\(first.ending)")
        expectNil(file)

        source.change { $0.stopsAt = nil }
        let second = try get(errors: .output)
        let lines = try second.remainingLines()
        try expectEqual(second.wait(), 0, "\(second.ending)")
        try #require(lines.count == 3)
        expectEqual(lines[0], "big.bin: from \(source.url)")
        #expect(lines[1].contains(/^big.bin: continued at \d+ % \(.* of 976.5 KiB\)$/))
        #expect(lines[2].contains(/^big.bin: .* of 976.5 KiB in .*s, .*\/s$/))
        expectEqual(file, source.content)
        // Each request continues after the previous one.
        let starts = source.server.requests.map { Int64($0["range"]?.filter(\.isNumber) ?? "") ?? 0 }
        #expect(starts.count == 3 && starts[0] == 0 && starts[1] > 0 && starts[2] >= starts[1], "\(starts)")
        source.openGate()
    }

    @Test func `records name the layer of the missing network`() async throws {
        source.change { $0.stopsAt = 500_000 }
        let program = try get("--json")
        // Wait until some of the sent bytes have arrived.
        _ = try program.nextLine { $0.contains(/"received":[1-9]/) }
        try client.ip("addr flush dev up0")
        // The connection may be lost before the path's change is reported. Then one more attempt finds the network missing.
        let waiting = try TransferLine(program.nextLine { $0.contains(#""state":"waiting""#) && !$0.contains(#""attempt":0"#) })
        #expect(waiting.cause != nil && ["address", "route"].contains(waiting.cause?.layer))
        source.change { $0.stopsAt = nil }
        try client.ip("addr add 10.9.1.2/24 dev up0")
        try client.ip("route add default via 10.9.1.1")
        let lines = try program.remainingLines(within: .seconds(60)).map(TransferLine.init)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(lines.last?.state, "finished")
        #expect((lines.last?.resumed_from ?? 0) > 0)
        expectEqual(file, source.content)
        source.openGate()
    }

    @Test func `a timeout names the missing network layer`() throws {
        try client.ip("route del default")
        let program = try get("-q", "--timeout", "4s")
        try expectEqual(program.wait(within: .seconds(60)), 1, "\(program.ending)")
        #expect(program.standardError.hasPrefix("netwatch: \(source.url): timed out after 4s: route: "))
    }

    @Test func `a full disk exits with 74`() throws {
        let small = try FileSource(size: 4 << 20)
        let script = "mount -t tmpfs -o size=1m none \"$1\" && cd \"$1\" && exec \"$0\" get -q \"$2\""
        let program = try Program(
            ["unshare", "--mount", "sh", "-c", script, try Programs.netwatch, folder.path, small.url])
        try expectEqual(program.wait(within: .seconds(60)), 74, "\(program.ending)")
        #expect(program.standardError.hasPrefix("netwatch: get: cannot write '"))
        #expect(program.standardError.contains(": No space left on device"))
    }

    @Test func `an unknown network namespace exits with 66`() throws {
        let program = try Program(
            [try Programs.netwatch, "get", "--netns", "netwatch-no-such", "http://h/x"], directory: folder.path)
        try expectEqual(program.wait(), 66, "\(program.ending)")
        #expect(program.standardError.hasPrefix("netwatch: --netns netwatch-no-such: "))
    }
}
