import CLinux
import EventLoop
import Expectations
import Foundation
import HTTPSessionTestKit
import NetworkLab
import Testing

@testable import HTTPSession

/// Partial files, sidecars and other files that another user has created beside a destination, or can write to.
struct ForeignFileTests {
    private let folder: ScratchDirectory

    init() throws { folder = try ScratchDirectory() }

    private func status(_ name: String) throws -> stat {
        var found = stat()
        try #require(lstat(folder.file(name), &found) == 0)
        return found
    }

    private func put(_ text: String, _ name: String, mode: mode_t = 0o600) throws {
        try Data(text.utf8).write(to: folder.url(name))
        try #require(chmod(folder.file(name), mode) == 0)
    }

    private var sidecar: Sidecar {
        get throws {
            let resumption = Resumption(url: folder.url("x"), validator: .entityTag("\"1\""), total: nil, digest: nil)
            return Sidecar(resumption: try #require(resumption), start: folder.url("x"), boot: BootIdentifier.current)
        }
    }

    private func download(_ report: @escaping @Sendable (String) -> Void = { _ in }) -> PartialFile {
        PartialFile(
            DownloadDestination(folder.url("file"), existingFile: .replace),
            keeping: .init(path: folder.file("file.netwatch-part")), report: report)
    }

    @Test func `a file or directory of another user is refused`() throws {
        try put("", "file")
        let found = try status("file")
        expectNil(OwnFile.objection(to: found, .file, user: found.st_uid))
        #expect(OwnFile.objection(to: found, .file, user: found.st_uid + 1)?.contains("belongs to user") == true)
        let directory = try status(".")
        #expect(OwnFile.objection(to: directory, .directory, user: directory.st_uid + 1) != nil)
    }

    enum Plant: CaseIterable {
        case hardLink, symbolicLink, fifo, directory, groupWritable, othersWritable
    }

    private func plant(_ plant: Plant, _ name: String) throws {
        try put("victim", "victim")
        let path = folder.file(name)
        switch plant {
        case .hardLink: try #require(link(folder.file("victim"), path) == 0)
        case .symbolicLink: try #require(symlink(folder.file("victim"), path) == 0)
        case .fifo: try #require(mkfifo(path, 0o600) == 0)
        case .directory: try #require(mkdir(path, 0o700) == 0)
        case .groupWritable: try put("prefix", name, mode: 0o620)
        case .othersWritable: try put("prefix", name, mode: 0o602)
        }
    }

    @Test(arguments: Plant.allCases, ["file.netwatch-part", "file.netwatch-part.json"])
    func `a planted partial file or sidecar is left untouched`(_ kind: Plant, _ name: String) throws {
        if name.hasSuffix(".json") { try put("prefix", "file.netwatch-part") }
        try plant(kind, name)
        let before = try status(name)
        let reasons = RefusalCounter()
        let part = download { _ in reasons.increase() }
        try expectNil(part.reopen())
        try part.begin(expected: 4, sidecar)
        try part.write(Array("true".utf8))
        _ = try part.commit()
        try expectEqual(Data(contentsOf: folder.url("file")), Data("true".utf8))
        try expectEqual(Data(contentsOf: folder.url("victim")), Data("victim".utf8))
        let after = try status(name)
        #expect(after.st_ino == before.st_ino && after.st_mode == before.st_mode && after.st_size == before.st_size)
        try expectEqual(status("file").st_nlink, 1)
        expectEqual(reasons.count, 1)
        #expect(!folder.names.contains { $0.hasSuffix(".part") })
    }

    @Test func `a continued partial file is copied to another inode than an earlier process created`() throws {
        try put("abcdef", "file.netwatch-part")
        try SidecarFile.write(sidecar, besides: folder.file("file.netwatch-part"))
        let foreign = open(folder.file("file.netwatch-part"), O_RDWR)
        defer { close(foreign) }
        let part = download()
        try expectEqual(part.reopen()?.length, 6)
        expectEqual(pwrite(foreign, "???", 3, 0), 3)
        try part.write(Array("ghi".utf8))
        _ = try part.commit()
        try expectEqual(Data(contentsOf: folder.url("file")), Data("abcdefghi".utf8))
        expectEqual(folder.names, ["file"])
    }

    @Test func `partial file and sidecar are created with mode 0600`() throws {
        let part = download()
        try part.begin(expected: nil, sidecar)
        try part.write([1])
        try expectEqual(status("file.netwatch-part").st_mode & 0o7777, 0o600)
        try expectEqual(status("file.netwatch-part.json").st_mode & 0o7777, 0o600)
        part.discard()
    }

    @Test(arguments: [(0o600, 0o600), (0o640, 0o640), (0o4755, 0o755), (0o2711, 0o711)] as [(mode_t, mode_t)])
    func `replacing a file keeps its mode but not setuid and setgid`(_ old: mode_t, _ new: mode_t) throws {
        try put("old", "file", mode: old)
        let part = download()
        try part.begin(expected: nil)
        _ = try part.commit()
        try expectEqual(status("file").st_mode & 0o7777, new)
    }

    @Test func `a discarded download under a random name leaves no partial file`() throws {
        try plant(.othersWritable, "file.netwatch-part")
        let part = download()
        try part.begin(expected: nil, sidecar)
        try part.write([1])
        part.discard()
        expectEqual(folder.names, ["file.netwatch-part", "victim"])
    }

    @Test(arguments: [Plant.hardLink, .symbolicLink, .groupWritable])
    func `planted cookie and HSTS files are an error and are left unchanged`(_ kind: Plant) throws {
        try plant(kind, "jar")
        let before = try status("jar")
        #expect(throws: HTTPSessionError.self) { try CookieFile.read(folder.url("jar")) }
        #expect(throws: HTTPSessionError.self) { try CookieFile.write([], to: folder.url("jar")) }
        var configuration = SessionConfiguration()
        configuration.hstsFile = folder.url("jar")
        #expect(throws: HTTPSessionError.self) { try HTTPSessionManager(configuration: configuration) }
        try expectEqual(status("jar").st_ino, before.st_ino)
    }

    @Test func `a resume directory that others can write to is an error`() throws {
        try #require(mkdir(folder.file("resume"), 0o700) == 0 && chmod(folder.file("resume"), 0o777) == 0)
        var configuration = SessionConfiguration()
        configuration.resumeDirectory = folder.url("resume")
        #expect(throws: HTTPSessionError.self) { try HTTPSessionManager(configuration: configuration) }
    }

    @Test func `an upload's file that changed and has its old mtime is detected as another version`() throws {
        try put("aaaa", "file")
        let (before, old) = (try FileVersion(folder.file("file")), try status("file"))
        // The inode clock advances in ticks of a few milliseconds.
        let end = ContinuousClock.now + .seconds(60)
        var after = before
        while after == before, ContinuousClock.now < end {
            let descriptor = open(folder.file("file"), O_WRONLY)
            _ = pwrite(descriptor, "bbbb", 4, 0)
            futimens(descriptor, [old.st_atim, old.st_mtim])
            close(descriptor)
            after = try FileVersion(folder.file("file"))
        }
        #expect(after != before)
        try expectEqual(status("file").st_mtim.tv_nsec, old.st_mtim.tv_nsec)
    }

    @Test func `a file of /proc with size 0 and content is refused for uploads`() throws {
        let body = RequestBody.file(URL(fileURLWithPath: "/proc/version"))
        #expect(throws: HTTPSessionError.self) { try body.segments() }
        try put("", "empty")
        try expectEqual(RequestBody.file(folder.url("empty")).segments().totalLength, 0)
    }

    @Test(arguments: [204, 205]) func `a response with 204 or 205 never replaces a file`(_ status: Int) async throws {
        try put("old", "file")
        let server = try TestServer { _ in StubResponse(status) }
        let session = try HTTPSessionManager(configuration: localConfiguration { _ in })
        let task = session.downloadTask(
            for: TransferRequest(url: server.url("/")), to: DownloadDestination(folder.url("file"), existingFile: .replace))
        await #expect { try await task.response } throws: { ($0 as? HTTPSessionError)?.context.statusCode == status }
        try expectEqual(Data(contentsOf: folder.url("file")), Data("old".utf8))
    }
}

private final class RefusalCounter: Sendable {
    private let value = Locked(0)
    var count: Int { value.withLock { $0 } }
    func increase() { value.withLock { $0 += 1 } }
}
