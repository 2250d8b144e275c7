import Expectations
import Foundation
import HTTPSession
import NetworkLab
import Testing

@testable import HTTPSessionJournal

/// Journals, lock files and directories that another user has planted, or may write to.
struct ForeignStateTests {
    private let folder: ScratchDirectory

    init() throws {
        folder = try ScratchDirectory()
        try Data("victim".utf8).write(to: folder.url("victim"))
        try FileManager.default.createDirectory(
            atPath: folder.file("state"), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    enum Plant: CaseIterable {
        case hardLink, symbolicLink, groupWritable, othersWritable, directory
    }

    private func plant(_ plant: Plant, _ path: String) throws {
        let files = FileManager.default
        switch plant {
        case .hardLink: try files.linkItem(atPath: folder.file("victim"), toPath: path)
        case .symbolicLink: try files.createSymbolicLink(atPath: path, withDestinationPath: folder.file("victim"))
        case .groupWritable, .othersWritable:
            try Data("planted".utf8).write(to: URL(fileURLWithPath: path))
            try files.setAttributes([.posixPermissions: plant == .groupWritable ? 0o660 : 0o606], ofItemAtPath: path)
        case .directory: try files.createDirectory(atPath: path, withIntermediateDirectories: false)
        }
    }

    private func fingerprint(_ path: String) throws -> [String] {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return [FileAttributeKey.systemFileNumber, .posixPermissions, .size, .type].map { "\(attributes[$0] ?? "")" }
    }

    @Test(arguments: Plant.allCases, ["journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm", "journal.sqlite-journal"])
    func `a planted journal is refused with its path and stays unchanged`(_ kind: Plant, _ name: String) throws {
        let path = folder.file(name)
        try plant(kind, path)
        let before = try fingerprint(path)
        #expect {
            _ = try Journal.open(folder.file("journal.sqlite"))
        } throws: { error in
            guard let error = error as? DurableSessionError else { return false }
            return error.code == .journalFailed && error.reason.contains("'\(path)'")
        }
        try expectEqual(fingerprint(path), before)
        try expectEqual(Data(contentsOf: folder.url("victim")), Data("victim".utf8))
    }

    @Test(arguments: Plant.allCases)
    func `a planted lock file is refused with its path and stays unchanged`(_ kind: Plant) throws {
        let path = folder.file("state/lock")
        try plant(kind, path)
        let before = try fingerprint(path)
        #expect {
            _ = try DirectoryLock(folder.file("state"), identifier: "test")
        } throws: { error in
            (error as? DurableSessionError)?.code == .journalFailed && "\(error)".contains("'\(path)'")
        }
        try expectEqual(fingerprint(path), before)
        try expectEqual(Data(contentsOf: folder.url("victim")), Data("victim".utf8))
    }

    /// Whoever can read a file can lock it.
    @Test func `a lock file that other users can read becomes private`() throws {
        try Data().write(to: folder.url("state/lock"))
        try #require(chmod(folder.file("state/lock"), 0o644) == 0)
        let lock = try DirectoryLock(folder.file("state"), identifier: "test")
        var found = stat()
        try #require(stat(folder.file("state/lock"), &found) == 0)
        expectEqual(found.st_mode & 0o777, 0o600)
        lock.unlock()
    }

    /// The sticky bit does not help: other users can create a journal there.
    @Test(arguments: [0o770, 0o707, 0o1777])
    func `a session's directory that others may write to is refused`(_ mode: Int) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: folder.file("state"))
        #expect {
            _ = try DirectoryLock(folder.file("state"), identifier: "test")
        } throws: { error in
            "\(error)".contains("other users may write to it; check it, and run chmod go-w")
        }
        try expectEmpty(FileManager.default.contentsOfDirectory(atPath: folder.file("state")))
    }
}
