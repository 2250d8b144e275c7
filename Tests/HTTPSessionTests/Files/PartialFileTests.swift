import CLinux
import EventLoop
import Expectations
import Foundation
import NetworkLab
import Testing

@testable import HTTPSession

struct PartialFileTests {
    private let folder: ScratchDirectory

    init() throws { folder = try ScratchDirectory() }

    @Test(.requiresMounts, arguments: [DownloadDestination.ExistingFile.fail, .replace])
    func `a partial file on another file system is copied to its destination`(existingFile: DownloadDestination.ExistingFile)
        throws
    {
        try FileManager.default.createDirectory(at: folder.url("other"), withIntermediateDirectories: false)
        let destination = DownloadDestination(folder.url("file"), existingFile: existingFile)
        try withOwnMounts { [folder] in
            try #require(mount("none", folder.file("other"), "tmpfs", 0, nil) == 0)
            let part = PartialFile(destination, keeping: .init(path: folder.file("other/part")))
            try part.begin(expected: 600_000)
            try part.write([UInt8](repeating: 7, count: 600_000))
            try expectEqual(part.commit(), folder.url("file"))
            #expect(access(folder.file("other/part"), F_OK) != 0)
        }
        try expectEqual(Data(contentsOf: folder.url("file")), Data(repeating: 7, count: 600_000))
        expectEqual(folder.names, ["file", "other"])
    }

    @Test(.requiresMounts) func `a disk without space for the copy leaves the partial file`() throws {
        try FileManager.default.createDirectory(at: folder.url("small"), withIntermediateDirectories: false)
        try withOwnMounts { [folder] in
            try #require(mount("none", folder.file("small"), "tmpfs", 0, "size=64k") == 0)
            let destination = DownloadDestination(folder.url("small/file"))
            let resumption = Resumption(url: folder.url("x"), validator: .entityTag("\"1\""), total: 600_000, digest: nil)
            let part = PartialFile(destination, keeping: .init(path: folder.file("part")))
            try part.begin(
                expected: nil, Sidecar(resumption: try #require(resumption), start: folder.url("x"), boot: BootIdentifier.current)
            )
            try part.write([UInt8](repeating: 7, count: 600_000))
            #expect(throws: HTTPSessionError.self) { try part.commit() }
            part.discard()
            try expectEmpty(FileManager.default.contentsOfDirectory(atPath: folder.file("small")))
        }
        expectEqual(folder.names, ["part", "part.json", "small"])
    }

    /// Whoever can read a file can lock it.
    @Test func `a partial file that other users can read becomes private before it is locked`() throws {
        try Data().write(to: folder.url("part"))
        try #require(chmod(folder.file("part"), 0o644) == 0)
        let descriptor = try LockedFile.open(folder.file("part"))
        defer { close(descriptor) }
        var found = stat()
        try #require(fstat(descriptor, &found) == 0)
        expectEqual(found.st_mode & 0o777, 0o600)
    }

    @Test func `the sidecar of a partial file records the synced bytes every 16 MiB`() throws {
        let resumption = Resumption(url: folder.url("x"), validator: .entityTag("\"1\""), total: nil, digest: nil)
        let sidecar = Sidecar(resumption: try #require(resumption), start: folder.url("x"), boot: BootIdentifier.current)
        let part = PartialFile(DownloadDestination(folder.url("file")), keeping: .init(path: folder.file("part")))
        try part.begin(expected: nil, sidecar)
        try expectEqual(SidecarFile.read(besides: folder.file("part"))?.synced, 0)
        for _ in 0..<40 { try part.write([UInt8](repeating: 7, count: 1 << 20)) }
        try expectEqual(SidecarFile.read(besides: folder.file("part"))?.synced, 32 << 20)
        part.discard()
        try expectEqual(SidecarFile.read(besides: folder.file("part"))?.synced, 40 << 20)
        let next = PartialFile(DownloadDestination(folder.url("file")), keeping: .init(path: folder.file("part")))
        try expectEqual(next.reopen()?.length, 40 << 20)
        _ = try next.commit()
        expectEqual(folder.names, ["file"])
    }

    @Test(arguments: [
        (EPERM, true), (EOPNOTSUPP, true), (ENOSYS, true), (EMLINK, true), (EXDEV, true), (EEXIST, false), (ENOENT, false),
    ])
    func `if a file system does not support links a rename is used`(_ number: Int32, _ isWithout: Bool) {
        expectEqual(FileMove.isWithoutLinks(number), isWithout)
    }

    @Test(arguments: [0o600, 0o640, 0o755] as [mode_t])
    func `a finished file of another process is moved with the mode of the file that it replaces`(mode: mode_t) throws {
        for (name, bits) in [("new", 0o600), ("file", mode)] as [(String, mode_t)] {
            try Data(name.utf8).write(to: folder.url(name))
            try #require(chmod(folder.file(name), bits) == 0)
        }
        try FileMove.move(folder.file("new"), to: DownloadDestination(folder.url("file"), existingFile: .replace))
        try expectEqual(Data(contentsOf: folder.url("file")), Data("new".utf8))
        var found = stat()
        try #require(stat(folder.file("file"), &found) == 0)
        expectEqual(found.st_mode & 0o7777, mode)
    }
}
