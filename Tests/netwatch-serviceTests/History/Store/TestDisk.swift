import CLinux
import EventLoop
import Foundation
import Glibc
import NetworkLab

/// A small disk that a test fills. Only the test's threads see it.
enum TestDisk {
    /// Runs `body` on a thread with its own mounts. Threads created in `body` share them.
    static func withOwnMounts(_ body: @escaping @Sendable () throws -> Void) throws {
        let outcome = Locked<Result<Void, any Error>?>(nil)
        let thread = try LoopThread(name: "mounts", namespace: nil) {
            {
                let result = Result<Void, any Error> {
                    try HomeThread.leave()
                    guard unshare(netwatch_CLONE_FS | netwatch_CLONE_NEWNS) == 0,
                        Glibc.mount("", "/", "none", UInt(MS_SLAVE | MS_REC), nil) == 0
                    else { throw POSIXError(.EPERM) }
                    try body()
                }
                outcome.withLock { $0 = result }
            }
        }
        thread.join()
        try outcome.withLock { $0 }?.get()
    }

    /// Fills the disk. - Returns: the files that fill it.
    static func fill(_ directory: String, leaving free: Int = 0) throws -> String {
        let path = "\(directory)/filler"
        let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        defer { Glibc.close(descriptor) }
        for size in [1 << 16, 1 << 12, 1] {
            let bytes = [UInt8](repeating: 1, count: size)
            while write(descriptor, bytes, size) == size {}
        }
        if free > 0 { ftruncate(descriptor, lseek(descriptor, 0, SEEK_END) - off_t(free)) }
        return path
    }

    /// Mounts a disk of a size like `4m`.
    static func mount(_ directory: String, size: String) throws {
        guard Glibc.mount("tmpfs", directory, "tmpfs", 0, "size=\(size)") == 0 else { throw POSIXError(.EPERM) }
    }
}
