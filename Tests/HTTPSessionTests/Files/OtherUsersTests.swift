import CLinux
import EventLoop
import Expectations
import Foundation
import NetworkLab
import Testing

@testable import HTTPSession

/// Files that belong to another user, in the user's own directories and in sticky directories such as `/tmp`.
@Suite(.requiresOtherUsers) struct OtherUsersTests {
    private let folder: ScratchDirectory
    private let other: uid_t = 1

    init() throws { folder = try ScratchDirectory() }

    private func shareFolder() throws { try #require(chmod(folder.path, 0o1777) == 0) }

    private func put(_ text: String, _ name: String, mode: mode_t = 0o600) throws {
        try Data(text.utf8).write(to: folder.url(name))
        try #require(chmod(folder.file(name), mode) == 0 && chown(folder.file(name), other, other) == 0)
    }

    private func status(_ name: String) throws -> stat {
        var found = stat()
        try #require(lstat(folder.file(name), &found) == 0)
        return found
    }

    private func sidecar() throws -> Sidecar {
        let resumption = Resumption(url: folder.url("x"), validator: .entityTag("\"1\""), total: nil, digest: nil)
        return Sidecar(resumption: try #require(resumption), start: folder.url("x"), boot: BootIdentifier.current)
    }

    private func download(_ text: String, _ reasons: Locked<[String]> = Locked([])) throws {
        let part = PartialFile(
            DownloadDestination(folder.url("file"), existingFile: .replace),
            keeping: .init(path: folder.file("file.netwatch-part"))
        ) { reason in reasons.withLock { $0.append(reason) } }
        try expectNil(part.reopen())
        try part.begin(expected: nil, sidecar())
        try part.write(Array(text.utf8))
        _ = try part.commit()
    }

    @Test(arguments: ["file.netwatch-part", "file.netwatch-part.json"])
    func `a partial file or sidecar of another user in a sticky directory is left untouched`(_ name: String) throws {
        try shareFolder()
        let reasons = Locked<[String]>([])
        try SidecarFile.write(sidecar(), besides: folder.file("file.netwatch-part"))
        try Data("planted".utf8).write(to: folder.url("file.netwatch-part"))
        for own in ["file.netwatch-part", "file.netwatch-part.json"] { try #require(chmod(folder.file(own), 0o600) == 0) }
        try #require(chown(folder.file(name), other, other) == 0)
        let before = try status(name)
        try download("true", reasons)
        #expect(reasons.withLock { $0.count == 1 && $0[0].contains("belongs to user \(other)") && $0[0].contains(name) })
        try expectEqual(Data(contentsOf: folder.url("file")), Data("true".utf8))
        try expectEqual(status("file").st_uid, geteuid())
        let after = try status(name)
        #expect(after.st_ino == before.st_ino && after.st_uid == other && after.st_size == before.st_size)
    }

    @Test func `replacing another user's file in one's own directory keeps its owner and mode`() throws {
        try put("old", "file", mode: 0o4640)
        try download("new")
        let found = try status("file")
        #expect(found.st_uid == other && found.st_gid == other && found.st_mode & 0o7777 == 0o640)
    }

    /// The other user may have created the file in order to own the result.
    @Test func `replacing another user's file in a sticky directory takes over neither owner nor write permission`() throws {
        try shareFolder()
        try put("old", "file", mode: 0o666)
        try download("new")
        let found = try status("file")
        #expect(found.st_uid == geteuid() && found.st_mode & 0o022 == 0)
        try expectEqual(Data(contentsOf: folder.url("file")), Data("new".utf8))
    }

    @Test func `a complete file of another user is neither revalidated nor recognized by its digest`() throws {
        try Data("one".utf8).write(to: folder.url("file"))
        try #require(chmod(folder.file("file"), 0o644) == 0)
        let descriptor = open(folder.file("file"), O_RDWR)
        ValidatorAttribute.write(try sidecar(), to: descriptor)
        close(descriptor)
        let digest = try #require(ContentDigest.sha256(of: Data("one".utf8)))
        #expect(ValidatorAttribute.read(folder.file("file")) != nil)
        expectEqual(FinishedFile.size(at: folder.file("file"), having: digest), 3)
        try #require(chown(folder.file("file"), other, other) == 0)
        expectNil(ValidatorAttribute.read(folder.file("file")))
        expectNil(FinishedFile.size(at: folder.file("file"), having: digest))
    }

    /// The group is the one that this test runs with; its members are unknown to the library.
    @Test func `a complete file that a foreign group can write to is not recognized by its digest`() throws {
        try Data("one".utf8).write(to: folder.url("file"))
        let digest = try #require(ContentDigest.sha256(of: Data("one".utf8)))
        try #require(chown(folder.file("file"), geteuid(), other) == 0 && chmod(folder.file("file"), 0o664) == 0)
        expectNil(FinishedFile.size(at: folder.file("file"), having: digest))
        try #require(chmod(folder.file("file"), 0o644) == 0)
        expectEqual(FinishedFile.size(at: folder.file("file"), having: digest), 3)
    }
}
