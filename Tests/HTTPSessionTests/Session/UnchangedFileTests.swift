import CLinux
import EventLoop
import Expectations
import Foundation
import HTTPSessionTestKit
import NetworkLab
import Testing

@testable import HTTPSession

/// Downloads to an existing file that has the server's validator as an extended attribute.
@Suite(.timeLimit(.minutes(20))) struct UnchangedFileTests {
    private let folder: ScratchDirectory
    private let log = EventLog()
    private let session: HTTPSessionManager

    init() throws {
        folder = try ScratchDirectory()
        session = try HTTPSessionManager(configuration: localConfiguration(), eventMonitors: [log])
    }

    private final class Source: Sendable {
        /// The version of the file on the server.
        struct Version: Sendable {
            var fields = ["ETag": "\"1\""]
            var body = "one"
            /// The fields of a 304; `nil`: the fields of the 200.
            var notModified: [String: String]?
            /// A 304 is held until this gate opens.
            var gate: Gate?
        }

        let version = Locked(Version())
        let server: TestServer

        init() throws {
            server = try TestServer { [version] request in
                let present = version.withLock { $0 }
                if request.path.hasPrefix("/moved") { return StubResponse(302, fields: ["Location": "/file?signed=\(UUID())"]) }
                let isSame =
                    request["if-none-match"].map { $0 == present.fields["ETag"] }
                    ?? request["if-modified-since"].map { $0 >= present.fields["Last-Modified"] ?? "" } ?? false
                var reply = isSame ? StubResponse(304) : StubResponse(body: StubBody(stringLiteral: present.body))
                for (name, value) in isSame ? present.notModified ?? present.fields : present.fields {
                    reply = reply.field(name, value)
                }
                if isSame, let gate = present.gate { reply = reply.held(by: gate) }
                return reply
            }
        }

        func becomes(_ body: String, _ tag: String) { version.withLock { ($0.body, $0.fields) = (body, ["ETag": tag]) } }
        var conditions: [String?] { server.requests.map { $0["if-none-match"] ?? $0["if-modified-since"] } }
    }

    private func get(_ source: Source, _ path: String = "/file", to name: String = "file") async throws -> Int {
        try await task(source, path, to: name).response.statusCode
    }

    private func task(_ source: Source, _ path: String = "/file", to name: String = "file") -> TransferTask {
        var place = DownloadDestination(folder.url(name), existingFile: .replace, partialFile: .keep)
        place.keepsValidator = true
        return session.downloadTask(for: TransferRequest(url: source.server.url(path)), to: place)
    }

    private func content(_ name: String = "file") -> String? { try? String(contentsOf: folder.url(name), encoding: .utf8) }

    private func inode(_ name: String = "file") throws -> ino_t {
        var found = stat()
        try #require(lstat(folder.file(name), &found) == 0)
        return found.st_ino
    }

    @Test func `an unchanged file is revalidated with If-None-Match, and after a 304 left untouched`() async throws {
        let source = try Source()
        try await expectEqual(get(source), 200)
        let before = try inode()
        let again = task(source)
        let response = try await again.response
        expectEqual(response.statusCode, 304)
        expectEqual(response.file, folder.url("file"))
        #expect(again.currentProgress.bytesReceived == 3 && again.currentProgress.expectedToReceive == 3)
        expectEqual(source.conditions, [nil, "\"1\""])
        #expect(try inode() == before && folder.names == ["file"])

        source.becomes("two", "\"2\"")
        try await expectEqual(get(source), 200)
        expectEqual(content(), "two")
        try await expectEqual(get(source), 304)
        expectEqual(source.conditions.suffix(2), ["\"1\"", "\"2\""])
    }

    @Test func `an unchanged file without ETag is revalidated with If-Modified-Since`() async throws {
        let source = try Source()
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        source.version.withLock { $0.fields = ["Last-Modified": date, "Date": "Sun, 06 Nov 1994 08:49:39 GMT"] }
        try await expectEqual(get(source), 200)
        try await expectEqual(get(source), 304)
        expectEqual(source.conditions, [nil, date])
        // Another version with an older date replaces the file, and the server sends 304 nevertheless.
        source.version.withLock {
            $0.body = "old"
            $0.fields = ["Last-Modified": "Sun, 06 Nov 1994 08:49:36 GMT", "Date": "Sun, 06 Nov 1994 08:49:39 GMT"]
        }
        try await expectEqual(get(source), 200)
        expectEqual(content(), "old")
        expectEqual(source.conditions, [nil, date, date, nil])
    }

    @Test(arguments: [["ETag": "W/\"1\""], ["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"], [:]])
    func `a file without a strong validator is downloaded again`(_ fields: [String: String]) async throws {
        let source = try Source()
        source.version.withLock { $0.fields = fields }
        for _ in 0..<2 { try await expectEqual(get(source), 200) }
        expectEqual(source.conditions, [nil, nil])
    }

    @Test func `an unchanged file behind a redirect is revalidated at the redirect's target only`() async throws {
        let source = try Source()
        try await expectEqual(get(source, "/moved"), 200)
        try await expectEqual(get(source, "/moved"), 304)
        expectEqual(source.conditions, [nil, nil, nil, "\"1\""])
        // The same resource by another URL, and another URL with the same name.
        try await expectEqual(get(source, "/file"), 200)
        try await expectEqual(get(source, "/file?id=2"), 200)
        expectEqual(source.conditions.suffix(2), [nil, nil])
    }

    @Test func `a 304 with another version's ETag downloads the file again`() async throws {
        let source = try Source()
        try await expectEqual(get(source), 200)
        source.version.withLock { ($0.body, $0.notModified) = ("two", ["ETag": "\"other\""]) }
        try await expectEqual(get(source), 200)
        expectEqual(content(), "two")
        expectEqual(source.conditions, [nil, "\"1\"", nil])
    }

    @Test func `a file that changes while it is revalidated fails the task and is kept`() async throws {
        let (source, gate) = (try Source(), try Gate())
        try await expectEqual(get(source), 200)
        source.version.withLock { $0.gate = gate }
        let task = task(source)
        _ = try await source.server.awaitRequests(2)
        try Data("mine".utf8).write(to: folder.url("file"))
        gate.open()
        #expect(await failure(task)?.reason.contains("changed while the server was asked about it") == true)
        #expect(content() == "mine" && folder.names == ["file"])
    }

    @Test func `a partial file of the server's version is continued, regardless of the complete file`() async throws {
        let source = try Source()
        try await expectEqual(get(source), 200)
        source.becomes("two", "\"2\"")
        let resumption = Resumption(
            url: source.server.url("/file"), validator: .entityTag("\"2\""), total: 3, digest: nil)
        let sidecar = Sidecar(
            resumption: try #require(resumption), start: source.server.url("/file"), boot: BootIdentifier.current)
        try SidecarFile.write(sidecar, besides: folder.file("file.netwatch-part"))
        try Data("tw".utf8).write(to: folder.url("file.netwatch-part"))
        try #require(chmod(folder.file("file.netwatch-part"), 0o600) == 0)
        try await expectEqual(get(source), 200)
        #expect(source.server.requests.last?["range"] == "bytes=2-" && source.conditions == [nil, nil])
        expectEqual(content(), "two")
        try await expectEqual(get(source), 304)
    }

    // MARK: The extended attribute

    private func attribute() -> Data? {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = getxattr(folder.file("file"), ValidatorAttribute.name, &buffer, buffer.count)
        return count < 0 ? nil : Data(buffer.prefix(count))
    }

    enum Change: CaseIterable {
        case content, time, size, attribute, othersMayWrite, hardLink, symbolicLink
    }

    @Test(arguments: Change.allCases)
    func `the stored validator of a file that was changed is not used`(_ change: Change) async throws {
        let source = try Source()
        try await expectEqual(get(source), 200)
        #expect(attribute() != nil && ValidatorAttribute.read(folder.file("file")) != nil)
        let path = folder.file("file")
        switch change {
        // These write in place, so that the attribute stays.
        case .content, .size:
            let descriptor = open(path, O_WRONLY)
            defer { close(descriptor) }
            // Two changes within the same tick of the inode clock cannot be distinguished, so this waits for the next one.
            let end = ContinuousClock.now + .seconds(60)
            while ValidatorAttribute.read(path) != nil, ContinuousClock.now < end {
                #expect(pwrite(descriptor, "none", change == .size ? 4 : 3, 0) > 0)
            }
        case .time:
            let times = [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 1, tv_nsec: 0)]
            expectEqual(utimensat(AT_FDCWD, path, times, 0), 0)
        case .attribute: expectEqual(setxattr(path, ValidatorAttribute.name, "{}", 2, 0), 0)
        case .othersMayWrite: expectEqual(chmod(path, 0o646), 0)
        case .hardLink: expectEqual(link(path, folder.file("other")), 0)
        case .symbolicLink:
            #expect(rename(path, folder.file("other")) == 0 && symlink("other", path) == 0)
        }
        expectNil(ValidatorAttribute.read(path))
        try await expectEqual(get(source), 200)
        #expect(source.conditions == [nil, nil] && content() == "one")
        // The mode is preserved, and so is the reason not to use the validator.
        try await expectEqual(get(source), (change == .othersMayWrite ? 200 : 304))
    }

    @Test func `a validator attribute that does not fit is ignored`() throws {
        let descriptor = open(folder.file("full"), O_RDWR | O_CREAT, 0o600)
        defer { close(descriptor) }
        // Some file systems have a block for all attributes of a file, others 64 KiB for each attribute.
        let filler = [UInt8](repeating: 0, count: 3_900)
        var number = 0
        while number < 20, fsetxattr(descriptor, "user.filler\(number)", filler, filler.count, 0) == 0 { number += 1 }
        let resumption = Resumption(url: folder.url("x"), validator: .entityTag("\"1\""), total: nil, digest: nil)
        let sidecar = Sidecar(resumption: try #require(resumption), start: folder.url("x"), boot: "this")
        ValidatorAttribute.write(sidecar, to: descriptor)
        // A pipe's descriptor accepts no attributes.
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        ValidatorAttribute.write(sidecar, to: ends[1])
        for end in ends { close(end) }
        #expect(number > 0)
    }

    @Test func `a download without keepsValidator stores no validator`() async throws {
        let source = try Source()
        let place = DownloadDestination(folder.url("file"), existingFile: .replace, partialFile: .keep)
        _ = try await session.downloadTask(for: TransferRequest(url: source.server.url("/file")), to: place).response
        expectNil(attribute())
    }

    // MARK: Digests

    @Test func `a complete file is recognized by its digest unless others may write to it`() throws {
        try Data("one".utf8).write(to: folder.url("file"))
        let (path, digest) = (folder.file("file"), try #require(ContentDigest.sha256(of: Data("one".utf8))))
        try #require(chmod(path, 0o644) == 0)
        expectEqual(FinishedFile.size(at: path, having: digest), 3)
        expectNil(FinishedFile.size(at: path, having: digest, isCancelled: { true }))
        expectNil(FinishedFile.size(at: path, having: try #require(ContentDigest.sha256(of: Data("two".utf8)))))
        expectNil(FinishedFile.size(at: folder.file("missing"), having: digest))
        expectNil(FinishedFile.size(at: folder.path, having: digest))
        try #require(chmod(path, 0o646) == 0)
        expectNil(FinishedFile.size(at: path, having: digest))
    }
}
