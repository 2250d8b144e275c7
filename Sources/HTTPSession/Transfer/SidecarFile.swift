internal import CLinux
internal import Foundation
internal import Glibc

/// Puts a ``Sidecar`` beside its part, and reads it there.
package enum SidecarFile {
    package static func path(of part: String) -> String { part + ".json" }

    /// This run of the system; empty, and so equal to no other, where the kernel does not tell.
    static let boot: String = {
        guard let text = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8) else { return "" }
        return text.trimmingCharacters(in: .whitespacesAndNewlines)
    }()

    /// `nil` where there is none, or one that says nothing.
    static func read(besides part: String) throws(HTTPSessionError) -> Sidecar? {
        let path = path(of: part)
        guard let data = try SmallFile.read(path) else { return nil }
        do throws(Sidecar.ReadingError) { return try Sidecar(decoding: data) } catch {
            switch error {
            case .damaged: return nil
            case .newer(let version):
                throw HTTPSessionError(.cannotReadFile, "'\(path)' has format \(version), which is newer than this program")
            }
        }
    }

    static func write(_ sidecar: Sidecar, besides part: String) throws(HTTPSessionError) {
        let path = path(of: part)
        guard let data = try? sidecar.encoded() else { throw FileFailure.writing(path, EINVAL) }
        try SmallFile.replace(path, with: data)
    }

    static func remove(besides part: String) { unlink(path(of: part)) }
}

/// A file that is written in one step and survives a power loss either as it was or as it is.
package enum SmallFile {
    /// What is longer is none of ours.
    static let maximumSize = 1 << 20

    /// `nil` where there is none.
    static func read(_ path: String) throws(HTTPSessionError) -> Data? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw FileFailure.reading(path, errno)
        }
        defer { close(descriptor) }
        var found = stat()
        guard fstat(descriptor, &found) == 0, found.st_mode & S_IFMT == S_IFREG, found.st_size <= maximumSize else {
            return Data()
        }
        var data = Data(count: Int(found.st_size))
        var done = 0
        while done < data.count {
            let count = data.withUnsafeMutableBytes { buffer in
                Glibc.read(descriptor, buffer.baseAddress?.advanced(by: done), buffer.count - done)
            }
            guard count > 0 else {
                if count < 0, errno == EINTR { continue }
                if count < 0 { throw FileFailure.reading(path, errno) }
                break
            }
            done += count
        }
        return data.prefix(done)
    }

    /// Only its owner may read it: addresses may be secrets.
    static func replace(_ path: String, with data: Data) throws(HTTPSessionError) {
        let file = PartialFile(DownloadDestination(URL(fileURLWithPath: path), existingFile: .replace), mode: 0o600)
        do throws(HTTPSessionError) {
            try file.begin(expected: nil)
            try file.write([UInt8](data))
            _ = try file.commit()
        } catch {
            file.discard()
            throw error
        }
        syncDirectory(of: path)
    }

    /// So that a new name outlives a power loss; a file system that cannot do it has nothing better.
    package static func syncDirectory(of path: String) {
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}
