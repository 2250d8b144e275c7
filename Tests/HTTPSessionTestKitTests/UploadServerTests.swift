import Expectations
import Foundation
import HTTPSessionTestKit
import NetworkLab
import Testing
import TestServers

/// An upload with curl(1), step by step.
@Suite(.timeLimit(.minutes(20)), .requires("/usr/bin/curl"))
struct UploadServerTests {
    private let folder: ScratchDirectory

    init() throws {
        folder = try ScratchDirectory()
        try Data(StubBody.patternBytes(from: 0, count: 100_000)).write(to: URL(fileURLWithPath: folder.file("body")))
        try Data(StubBody.patternBytes(from: 40_000, count: 60_000)).write(to: URL(fileURLWithPath: folder.file("rest")))
    }

    private func curl(_ method: String, _ url: String, _ fields: [String], _ body: String? = nil) throws -> (
        output: String, code: Int32
    ) {
        try Curl().run(
            ["-i", "-X", method] + (method == "HEAD" ? ["-I"] : []) + fields.flatMap { ["-H", $0] }
                + (body.map { ["--data-binary", "@" + folder.file($0)] } ?? []) + [url])
    }

    @Test func `a tus upload is created, cut, queried and completed`() throws {
        let server = try UploadServer(.tus) { $0.number == 2 ? .cut(afterBodyBytes: 50_000, losing: 10_000) : nil }
        let (url, version, type) = (
            server.url.absoluteString, "Tus-Resumable: 1.0.0", "Content-Type: application/offset+octet-stream"
        )
        #expect(try curl("POST", url, [version, "Upload-Length: 100000"]).output.contains("Location: /uploads/1\r\n"))
        #expect(try curl("PATCH", url + "/1", [version, type, "Upload-Offset: 0"], "body").code != 0)
        #expect(try curl("HEAD", url + "/1", [version]).output.contains("Upload-Offset: 40000\r\n"))
        #expect(try curl("PATCH", url + "/1", [version, type, "Upload-Offset: 0"], "body").output.contains(" 409 "))
        #expect(
            try curl("PATCH", url + "/1", [version, type, "Upload-Offset: 40000"], "rest").output
                .contains("Upload-Offset: 100000\r\n"))
        #expect(try curl("HEAD", url + "/1", []).output.contains(" 412 "))
        #expect(try curl("HEAD", url + "/2", [version]).output.contains(" 404 "))
        expectEqual(server.uploads.map(\.bytes), [StubBody.patternBytes(from: 0, count: 100_000)])
    }

    @Test(arguments: [UploadServer.Dialect.tus, .draft])
    func `a restarted server has the uploads that the former one stored on the disk`(_ dialect: UploadServer.Dialect) throws {
        var configuration = UploadServer.Configuration()
        configuration.directory = folder.path
        let fields =
            dialect == .tus
            ? ["Tus-Resumable: 1.0.0", "Content-Type: application/offset+octet-stream"]
            : ["Content-Type: application/partial-upload", "Upload-Complete: ?1"]
        let first = try UploadServer(dialect, configuration: configuration) {
            $0.request.method == "PATCH" ? .cut(afterBodyBytes: 50_000, losing: 10_000) : nil
        }
        var url = first.url.absoluteString
        let creation = [fields[0], "Upload-Length: 100000", "Upload-Complete: ?0", "Upload-Metadata: number Nw=="]
        _ = try curl("POST", url, creation)
        #expect(try curl("PATCH", url + "/1", fields + ["Upload-Offset: 0"], "body").code != 0)
        first.stop()
        let second = try UploadServer(dialect, configuration: configuration)
        url = second.url.absoluteString
        #expect(try curl("HEAD", url + "/1", [fields[0]]).output.contains("Upload-Offset: 40000\r\n"))
        try expectEqual(curl("PATCH", url + "/1", fields + ["Upload-Offset: 40000"], "rest").code, 0)
        #expect(try curl("POST", url, creation).output.contains("/uploads/2\r\n"))
        second.stop()
        let third = try UploadServer(dialect, configuration: configuration)
        expectEqual(third.uploads.map(\.bytes), [StubBody.patternBytes(from: 0, count: 100_000), []])
        expectEqual(third.uploads.map(\.isComplete), [dialect == .draft, false])
        expectEqual(third.uploads.map(\.length), [100_000, 100_000])
        #expect(third.uploads[0].fields.contains(HeaderField("Upload-Metadata", "number Nw==")))
    }

    @Test func `a server describes its protocol`() throws {
        let tus = try UploadServer(.tus)
        #expect(try curl("OPTIONS", tus.url.absoluteString, []).output.contains("Tus-Version: 1.0.0"))
        let draft = try UploadServer(.draft)
        #expect(try curl("OPTIONS", draft.url.absoluteString, []).output.contains("Upload-Limit: min-size=0\r\n"))
    }

    @Test func `an upload by the draft is announced, cut and completed`() throws {
        let server = try UploadServer(.draft) { $0.number == 1 ? .cut(afterBodyBytes: 40_000) : nil }
        let url = server.url.absoluteString
        let first = try curl("POST", url, ["Upload-Complete: ?1", "Upload-Length: 100000"], "body")
        #expect(first.code != 0)
        let state = try curl("HEAD", url + "/1", []).output
        #expect(state.contains("Upload-Offset: 40000\r\n") && state.contains("Upload-Complete: ?0\r\n"))
        let type = "Content-Type: application/partial-upload"
        let end = try curl("PATCH", url + "/1", [type, "Upload-Offset: 40000", "Upload-Complete: ?1"], "rest").output
        #expect(end.contains("Upload-Complete: ?1\r\n"))
        expectEqual(server.uploads.map(\.isComplete), [true])
        expectEqual(server.uploads.map(\.bytes), [StubBody.patternBytes(from: 0, count: 100_000)])
        let whole = try curl("POST", url, ["Upload-Complete: ?1"], "body").output
        #expect(whole.hasPrefix("HTTP/1.1 104 ") && whole.contains("Upload-Draft-Interop-Version: 8\r\n"))
    }
}
