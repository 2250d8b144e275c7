import CLinux
import EventLoop
import Expectations
import Foundation
import NetworkLab
import Testing

struct LockFileTests {
    private let folder: ScratchDirectory
    private var path: String { folder.file("lock") }

    init() throws { folder = try ScratchDirectory() }

    @Test func `a locked file refuses a second lock and names the process`() throws {
        let lock = try LockFile(path)
        #expect(throws: LockFile.Failure.inUse(process: getpid())) { _ = try LockFile(path) }
        lock.unlock()
        try LockFile(path).unlock()
    }

    @Test func `a lock file that other users can read or write becomes private`() throws {
        try Data().write(to: URL(fileURLWithPath: path))
        try #require(chmod(path, 0o666) == 0)
        let lock = try LockFile(path)
        var found = stat()
        try #require(stat(path, &found) == 0)
        expectEqual(found.st_mode & 0o777, 0o600)
        lock.unlock()
    }

    @Test func `a removed or replaced lock file is noticed`() throws {
        let lock = try LockFile(path)
        expectEqual(lock.presence, .present)
        unlink(path)
        expectEqual(lock.presence, .missing)
        let other = try LockFile(path)
        expectEqual(lock.presence, .replaced)
        expectEqual(other.presence, .present)
    }
}
