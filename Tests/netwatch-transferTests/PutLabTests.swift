import Expectations
import Foundation
import HTTPSessionTestKit
import NetworkLab
import Reachability
import Testing
import TestServers

/// `netwatch put` in a network namespace whose only uplink fails and returns. The server is behind the uplink.
@Suite(.serialized, .requiresNamespaces, .timeLimit(.minutes(20))) struct PutLabTests {
    private let uplinks: Uplinks
    private let folder: ProgramFolder

    init() throws {
        uplinks = try Uplinks("up0")
        try uplinks.take("up0")
        folder = try ProgramFolder()
    }

    @Test(arguments: [UploadServer.Dialect.tus, .draft])
    func `put waits after carrier loss and sends the remaining bytes`(dialect: UploadServer.Dialect) async throws {
        let gate = try Gate()
        var configuration = UploadServer.Configuration()
        (configuration.address, configuration.namespace) = (.ip(Uplinks.server, port: 0), NetworkNamespace(uplinks.site.path))
        let server = try UploadServer(dialect, configuration: configuration) { turn in
            guard ["PUT", "PATCH"].contains(turn.request.method), turn.stored ?? 0 == 0 else { return nil }
            return .hold(afterBodyBytes: 500_000, .gate(gate))
        }
        let bytes = try folder.make("film", size: 4_000_000)
        let program = try folder.run(
            ["put", "--netns", uplinks.client.path, "film", server.url.absoluteString], environment: ["TERM": "dumb"],
            output: .wideTerminal, errors: .output)
        try await server.awaitBodyBytes(500_000)
        try uplinks.site.ip("link set up0 down")
        let line = try program.nextLine { $0.contains("waiting for the network: link: ") }
        #expect(line.contains("up0"))
        try uplinks.site.ip("link set up0 up")
        _ = try program.nextLine(within: .seconds(60)) { $0.contains("film: continued at ") }
        try expectEqual(program.wait(within: .seconds(60)), 0, "\(program.ending)")
        expectEqual(server.uploads.map(\.bytes), [bytes])
        // Bytes that were not lost are read once.
        #expect(server.bodyBytes < 4_000_000 + 1_000_000)
        gate.open()
    }
}
