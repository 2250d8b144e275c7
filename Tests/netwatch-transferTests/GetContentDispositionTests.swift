import Expectations
import Foundation
import Glibc
import HTTPSessionTestKit
import NetworkLab
import Testing

@testable import netwatch_transfer

/// The built program: `get --content-disposition`.
@Suite(.serialized, .timeLimit(.minutes(20))) struct GetContentDispositionTests {
    private let folder: ProgramFolder

    init() throws { folder = try ProgramFolder() }

    private func get(_ arguments: String...) throws -> Program { try folder.run(["get", "--content-disposition"] + arguments) }

    /// Suggests the name in the URL's query, percent-encoded, and sends the path as the body.
    private func server(_ field: @escaping @Sendable (String) -> String = { "attachment; filename*=UTF-8''\($0)" }) throws
        -> TestServer
    {
        try TestServer { request in
            let parts = request.target.split(separator: "?", maxSplits: 1).map(String.init)
            let reply = StubResponse(fields: ["ETag": "\"1\""], body: StubBody(stringLiteral: parts[0]))
            return parts.count > 1 ? reply.field("Content-Disposition", field(parts[1])) : reply
        }
    }

    private func text(_ name: String) -> String? { folder.content(name).map { String(decoding: $0, as: UTF8.self) } }

    @Test func `a file is named as its response suggests`() throws {
        let server = try server()
        let program = try get("\(server.origin)/download?report%20%E2%82%AC.pdf")
        try expectEqual(program.wait(), 0, "\(program.ending)")
        let lines = program.standardError.split(separator: "\n")
        expectEqual(lines.dropFirst().first, "download: saved as report €.pdf")
        #expect(lines.last?.hasPrefix("report €.pdf: 9 B in ") == true)
        #expect(folder.names == ["report €.pdf"] && text("report €.pdf") == "/download")
    }

    @Test func `without the option Content-Disposition is ignored`() throws {
        let server = try server()
        try expectEqual(folder.get("-q", "\(server.origin)/download?report.pdf").wait(), 0)
        expectEqual(folder.names, ["download"])
    }

    @Test func `a response without a suggested name keeps the name from the URL`() throws {
        let server = try server()
        try expectEqual(get("-q", "\(server.origin)/download").wait(), 0)
        expectEqual(folder.names, ["download"])
    }

    @Test(arguments: [
        ("-rf", "_rf"), ("x.netwatch-part", "x_netwatch-part"), ("..%2F..%2Fetc%2Fpasswd", "passwd"), (".bashrc", "_bashrc"),
        ("a%0a%1b[2J%C2%9B%E2%80%AE", "a__[2J__"), ("..", "download"), ("", "download"), ("C%3A%5Ctemp%5Ca.txt", "a.txt"),
        (String(repeating: "a", count: 10_000) + ".txt", String(repeating: "a", count: 196) + ".txt"),
    ])
    func `an unsafe name in Content-Disposition is made safe`(_ suggested: String, _ name: String) throws {
        // The name is in the field and not in the query, which cannot have control bytes.
        let server = try TestServer { _ in
            StubResponse(
                fields: ["Content-Disposition": "attachment; filename*=UTF-8''\(suggested.replacing("[", with: "%5B"))"],
                body: "x")
        }
        try FileManager.default.createDirectory(atPath: folder.file("inner"), withIntermediateDirectories: true)
        let program = try get("--json", "-d", "inner", "\(server.origin)/download")
        let last = try #require(try program.remainingLines().last)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(folder.names, ["inner"])
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.file("inner"))
        expectEqual(names, [name])
        try expectEqual(TransferLine(last).file?.hasSuffix("/inner/\(name)"), true)
        // A safe name stays unchanged.
        expectEqual(FileName.safe(name), name)
    }

    @Test func `Content-Disposition never replaces an existing file`() async throws {
        try Data("mine".utf8).write(to: URL(fileURLWithPath: folder.file("report.pdf")))
        let gate = try Gate()
        let server = try TestServer { _ in
            // The download must fail at the first byte.
            var body = StubBody.pattern(1_000_000)
            body.segments = [.pattern(from: 0, count: 10), .wait(.gate(gate)), .pattern(from: 10, count: 999_990)]
            return StubResponse(fields: ["Content-Disposition": "attachment; filename=report.pdf", "ETag": "\"1\""], body: body)
        }
        let program = try get("-q", "\(server.origin)/download")
        try expectEqual(program.wait(), 73, "\(program.ending)")
        #expect(program.standardError.hasPrefix("netwatch: get: cannot put the file at '"))
        #expect(program.standardError.hasSuffix("/report.pdf': File exists; remove it, or name the file with -o\n"))
        #expect(text("report.pdf") == "mine" && folder.names == ["report.pdf"])
        gate.open()
    }

    @Test func `two URLs with the same Content-Disposition do not overwrite each other`() async throws {
        let gate = try Gate()
        let server = try TestServer { request in
            var body = StubBody(stringLiteral: "")
            body.segments = [.wait(.gate(gate)), .bytes(Array(request.target.utf8))]
            return StubResponse(fields: ["Content-Disposition": "attachment; filename=x"], body: body)
        }
        let program = try get("-q", "\(server.origin)/download?id=1", "\(server.origin)/download?id=2")
        // Both are requested before either name is used.
        _ = try await server.awaitRequests(2)
        gate.open()
        try expectEqual(program.wait(), 1, "\(program.ending)")
        #expect(program.standardError.contains("/x': File exists; remove it"))
        #expect(["/download?id=1", "/download?id=2"].contains(text("x")))
    }

    @Test func `a killed download with a server-suggested name is continued under that name`() async throws {
        let gate = try Gate()
        let server = try TestServer { request in
            let start = request["range"].flatMap { Int64($0.dropFirst("bytes=".count).dropLast()) }
            var body = StubBody.pattern(1_000_000)
            body.segments = [.pattern(from: start ?? 0, count: 1_000_000 - (start ?? 0))]
            if start == nil {
                body.segments = [.pattern(from: 0, count: 600_000), .wait(.gate(gate)), .pattern(from: 600_000, count: 400_000)]
            }
            let reply = StubResponse(start == nil ? 200 : 206, fields: ["ETag": "\"1\""], body: body)
            // Only the first response has the name.
            guard let start else { return reply.field("Content-Disposition", "attachment; filename=report.pdf") }
            return reply.field("Content-Range", "bytes \(start)-999999/1000000")
        }
        let first = try get("-q", "\(server.origin)/download")
        while folder.names.allSatisfy({ (folder.content($0)?.count ?? 0) < 400_000 }) { await Task.yield() }
        #expect(folder.names.allSatisfy { $0.wholeMatch(of: /download\.[0-9a-f]{8}\.netwatch-part(\.json)?/) != nil })
        try first.signal(SIGKILL)
        try expectEqual(first.wait(), 128 + SIGKILL)
        gate.open()
        let again = try get("\(server.origin)/download")
        try expectEqual(again.wait(), 0, "\(again.ending)")
        #expect(again.standardError.contains("download: continued at "))
        expectEqual(folder.names, ["report.pdf"])
        expectEqual(folder.content("report.pdf"), Data(StubBody.patternBytes(from: 0, count: 1_000_000)))
    }

    @Test func `only the final response of redirects names the file by Content-Disposition`() throws {
        let server = try TestServer { request in
            let isFirst = request.path == "/first"
            let reply = isFirst ? StubResponse(302, fields: ["Location": "/second"]) : StubResponse(body: "x")
            return reply.field("Content-Disposition", "attachment; filename=\(isFirst ? "wrong" : "right")")
        }
        try expectEqual(get("-q", "\(server.origin)/first").wait(), 0)
        expectEqual(folder.names, ["right"])
    }

    @Test func `--content-disposition and an output name exclude each other`() throws {
        let program = try get("-o", "x", "http://127.0.0.1:1/a")
        try expectEqual(program.wait(), 64, "\(program.ending)")
        expectEqual(
            program.standardError,
            "netwatch: -o --content-disposition: they exclude each other: either you name the file, or its server does\n")
    }
}
