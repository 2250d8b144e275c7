import EventLoop
import Expectations
import Foundation
import Glibc
import HTTPSessionTestKit
import NetworkLab
import Testing

/// The failures of the built program `get`, and their messages.
@Suite(.serialized, .timeLimit(.minutes(20))) struct GetProblemTests {
    private let folder: ProgramFolder

    init() throws { folder = try ProgramFolder() }

    @Test(
        arguments: [
            (["404"], 1, "the server answered 404 Not Found"), (["403"], 1, "the server answered 403 Forbidden"),
            (["--timeout", "4s", "never"], 1, "timed out after 4s"),
            (["--timeout", "4s", "503"], 1, "the server answered 503 Service Unavailable"),
            (["loop"], 1, "more than 20 redirects"),
        ] as [([String], Int32, String)])
    func `each permanent error has its exit code and message`(arguments: [String], code: Int32, message: String) throws {
        let server = try TestServer { request in
            switch request.path.dropFirst() {
            case "never": .never
            case "loop": .redirect(to: "/loop")
            case let status: StubResponse(Int(status) ?? 500, body: "no")
            }
        }
        let address = "\(server.origin)/\(arguments.last ?? "")"
        let program = try folder.run(["get", "-q"] + arguments.dropLast() + [address])
        try expectEqual(program.wait(), code, "\(program.ending)")
        #expect(program.standardError.hasPrefix("netwatch: \(address): "))
        #expect(program.standardError.hasSuffix(message + "\n") && program.standardError.split(separator: "\n").count == 1)
        expectEqual(folder.names, [])
    }

    @Test func `a response that is not HTTP is retried`() throws {
        let count = Locked(0)
        let server = try TestServer { _ in
            count.withLock {
                $0 += 1; return $0
            } <= 2 ? .raw("SSH-2.0-nonsense\r\n") : StubResponse(body: "well")
        }
        let program = try folder.get("--json", server.origin + "/a")
        let records = try program.remainingLines().map(TransferLine.init)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        #expect(records.contains { $0.cause?.code == "invalid-response" })
        expectEqual(folder.content("a"), Data("well".utf8))
    }

    @Test func `a wrong digest leaves no file`() throws {
        let source = try FileSource(size: 1_000)
        let program = try folder.get("-q", "--sha256", String(repeating: "0", count: 64), source.url)
        try expectEqual(program.wait(), 1, "\(program.ending)")
        expectEqual(program.standardError, "netwatch: \(source.url): the file does not have the expected digest\n")
        expectEqual(folder.names, [])
    }

    @Test func `an untrusted certificate fails at once`() throws {
        let server = try TestServer(tls: try SelfSignedCertificate().serverTLS) { _ in StubResponse(body: "x") }
        let program = try folder.get("-q", server.origin + "/x")
        try expectEqual(program.wait(), 1, "\(program.ending)")
        #expect(program.standardError.hasPrefix("netwatch: \(server.origin)/x: "))
        expectEmpty(server.requests)
    }

    @Test func `the text for a server that does not speak TLS is the cause of its records`() throws {
        var configuration = TestServer.Configuration()
        configuration.arrival = { _ in .respond(.raw("SSH-2.0-OpenSSH_9.2\r\n")) }
        let server = try TestServer(configuration: configuration) { _ in .never }
        let address = "https://127.0.0.1:\(server.port)/x"
        let program = try folder.run(["get", "--json", "--timeout", "4s", address])
        let records = try program.remainingLines().map(TransferLine.init)
        try expectEqual(program.wait(), 1, "\(program.ending)")
        let cause = try #require(records.last?.cause)
        #expect(cause.code == "protocol-mismatch" && cause.detail.contains(" speaks SSH instead of TLS: "), "\(cause)")
        #expect(program.standardError.hasPrefix("netwatch: \(address): "))
        #expect(program.standardError.hasSuffix(" 4s: \(cause.detail)\n"), "\(program.standardError)")
        // The lines for people have it too, for each attempt.
        let lines = try folder.run(["get", "--timeout", "4s", address])
        try expectEqual(lines.wait(), 1)
        #expect(lines.standardError.contains("trying again in ") || lines.standardError.contains("trying again: "))
        #expect(!lines.standardError.contains("handshake failed"), "\(lines.standardError)")
    }

    @Test func `a TLS or connection failure behind a redirect names the redirect`() throws {
        let secure = try TestServer(tls: try SelfSignedCertificate().serverTLS) { _ in .never }
        let closed = try TestServer { _ in .never }
        let (securePort, closedPort) = (secure.port, closed.port)
        closed.stop()
        let server = try TestServer { request in
            let location =
                switch request.path {
                case "/tls": "https://127.0.0.1:\(securePort)/x?token=secret"
                case "/first": "/closed"
                default: "http://127.0.0.1:\(closedPort)/x"
                }
            return StubResponse(302, fields: ["Location": location])
        }
        let (tls, tcp) = ("https://127.0.0.1:\(securePort)/x", "http://127.0.0.1:\(closedPort)/x")
        // All programs run in parallel, because each takes its timeout.
        let programs = try [
            ("tls", [tls], "tls"), ("closed", [tcp], "tcp"), ("first", ["\(server.origin)/closed", tcp], "tcp"),
        ].map { path, locations, layer in
            (try folder.run(["get", "--json", "--timeout", "4s", "\(server.origin)/\(path)"]), locations, layer)
        }
        for (program, locations, layer) in programs {
            let records = try program.remainingLines().map(TransferLine.init)
            try expectEqual(program.wait(), 1, "\(program.ending)")
            let beginning = "127.0.0.1 redirects to \(locations[locations.count - 1]): "
            #expect(program.standardError.contains(beginning), "\(program.standardError)")
            expectEqual(program.standardError.components(separatedBy: "redirects to").count, 2)
            #expect(!program.standardError.contains("secret"))
            let cause = try #require(records.last?.cause)
            #expect(cause.layer == layer && cause.detail.hasPrefix(beginning), "\(cause)")
            expectEqual(cause.evidence.redirects, locations)
        }
    }

    @Test func `a redirect from http to http is followed`() throws {
        let plain = try TestServer { _ in StubResponse(body: "plain") }
        let redirecting = try TestServer { _ in .redirect(to: plain.url("/y").absoluteString) }
        try expectEqual(folder.get("-q", redirecting.origin + "/x").wait(), 0, "a redirect from http to http is followed")
        expectEqual(folder.content("x"), Data("plain".utf8))
    }

    @Test func `an unwritable destination is reported before the first request`() throws {
        let source = try FileSource(size: 1_000)
        try FileManager.default.createDirectory(atPath: folder.file("inner"), withIntermediateDirectories: true)
        try "x".write(toFile: folder.file("file"), atomically: true, encoding: .utf8)
        for (arguments, line) in [
            (["-o", "inner"], "inner: cannot create: Is a directory"),
            (["-o", "inner/"], "inner/: cannot create: Is a directory"),
            (["-o", "none/x"], "none/x: cannot create: No such file or directory"),
            (["-o", "file/x"], "file/x: cannot create: Not a directory"),
            (["-d", "file"], "file: cannot create: Not a directory"),
            (["-o", "/dev/null"], "/dev/null: cannot create: it exists and is not a file"),
        ] {
            let program = try folder.run(["get"] + arguments + [source.url])
            try expectEqual(program.wait(), 73, "\(program.ending)")
            expectEqual(program.standardError, "netwatch: \(line)\n")
        }
        expectEmpty(source.server.requests)
        expectEqual(folder.names, ["file", "inner"])
    }

    @Test func `a symbolic link as destination replaces its target file`() throws {
        let source = try FileSource(size: 1_000)
        try "old".write(toFile: folder.file("real"), atomically: true, encoding: .utf8)
        try FileManager.default.createSymbolicLink(atPath: folder.file("link"), withDestinationPath: "real")
        try expectEqual(folder.get("-q", "-o", "link", source.url).wait(), 0)
        expectEqual(folder.content("real"), source.content)
        try expectEqual(FileManager.default.destinationOfSymbolicLink(atPath: folder.file("link")), "real")
    }

    @Test func `a second download of the same file is refused`() async throws {
        let source = try FileSource(size: 1_000_000)
        source.change { $0.stopsAt = 500_000 }
        let first = try folder.get("-q", source.url)
        try await source.server.awaitSeen { $0.sentBodyBytes >= 500_000 }
        let second = try folder.get("-q", source.url)
        try expectEqual(second.wait(), 73, "\(second.ending)")
        #expect(second.standardError.contains("is already being downloaded"))
        try first.signal(SIGINT)
        try expectEqual(first.wait(), 128 + SIGINT, "\(first.ending)")
    }
}
