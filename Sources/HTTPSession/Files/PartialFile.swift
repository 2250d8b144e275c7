internal import CLinux
internal import EventLoop
internal import FoundationEssentials
internal import Glibc

/// A file of a download that gets the name of its destination when it is complete.
// @unchecked: its fields are used only by jobs of one worker, which run one after another.
final class PartialFile: @unchecked Sendable {
    /// The rule for the bytes of a download that does not complete.
    struct Retention: Hashable, Sendable {
        /// The path of the partial file; `nil` for a temporary file, which has a random name beside the destination.
        var path: String?
        /// Whether an existing partial file is continued.
        var continues = true
        /// The directory for resume data of the partial file; `nil` if none is requested.
        var resumes: ResumeDirectory?
        /// The record of the resume data from which the download continues.
        var record: ResumeDirectory.Record?

        static let nothing = Retention()
        /// Whether the partial file has a fixed name. Then its sidecar exists during the download, so that it can be continued after a kill.
        var isNamed: Bool { path != nil }
    }

    /// The number of bytes between two syncs, each recorded in the sidecar: at most this many are requested again after a power loss.
    static let syncedEvery: Int64 = 16 << 20

    private let destination: DownloadDestination
    /// The destination of the finished file, with the name that its response suggests if one is requested.
    private var finalDestination: DownloadDestination
    private let mode: mode_t?
    private let report: @Sendable (String) -> Void
    private let keeping: Retention
    private var descriptor: Int32 = -1
    private var path = ""
    private var offset: Int64 = 0
    /// The description of the bytes; `nil` if a later download cannot continue them.
    private var sidecar: Sidecar?
    /// Whether a body has started, which replaces the bytes of an earlier download.
    private var hasBegun = false

    /// Whether other users may write to the file at the fixed path, so that the bytes are written to a temporary file.
    private var isRefused = false
    /// Whether this process has created the inode. Another process may have an open descriptor of any other inode.
    private var isOwn = false

    /// Prepares a file, which ``reopen()`` or ``begin(expected:_:)`` creates.
    ///
    /// `mode` is the mode of the finished file; `nil` for the one of ``FileAttributes``. Until then only the owner can open the file. `report` is
    /// called, on the worker's thread, with the reason why a partial file is not continued.
    init(
        _ destination: DownloadDestination, mode: mode_t? = nil, keeping: Retention = .nothing,
        report: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.report = report
        self.destination = destination
        finalDestination = destination
        self.mode = mode
        self.keeping = keeping
    }

    private var isNamed: Bool { keeping.isNamed && !isRefused }

    // MARK: Beginning

    /// Opens the partial file of an earlier download. - Returns: its sidecar and the number of its valid bytes; `nil` if it cannot be continued.
    func reopen() throws(HTTPSessionError) -> (Sidecar, length: Int64)? {
        if descriptor < 0 { try create() }
        guard isNamed, keeping.continues, let found = try SidecarFile.read(besides: path) else { return nil }
        let length = found.validBytes(of: Int64(lseek(descriptor, 0, SEEK_END)), boot: BootIdentifier.current)
        guard length > 0 else { return nil }
        if !isOwn {
            do throws(HTTPSessionError) { try renew(keeping: length) } catch {
                // Without space for a copy the download restarts, which frees the space of the old bytes.
                guard [ENOSPC, EDQUOT].contains(error.context.systemError) else { throw error }
                return nil
            }
        }
        guard ftruncate(descriptor, off_t(length)) == 0, lseek(descriptor, off_t(length), SEEK_SET) >= 0 else {
            throw FileFailure.writing(path, errno)
        }
        (sidecar, offset) = (found, length)
        suggest(found.suggestedName)
        // The sidecar is of an earlier boot. After a sync, the length of the file is valid again.
        if found.boot != BootIdentifier.current { try checkpoint() }
        return (found, length)
    }

    /// Starts a body: creates or empties the file. If the length is known, its space is reserved, so that a full disk is an error at once.
    ///
    /// `sidecar` describes the bytes so that a later download can continue them.
    func begin(expected: Int64?, _ sidecar: Sidecar? = nil) throws(HTTPSessionError) {
        if descriptor < 0 { try create() }
        if !isOwn { try renew(keeping: 0) }
        guard lseek(descriptor, 0, SEEK_SET) == 0, ftruncate(descriptor, 0) == 0 else { throw FileFailure.writing(path, errno) }
        (self.sidecar, offset, hasBegun) = (sidecar, 0, true)
        // Before the first byte, so that a sidecar never describes bytes of another version.
        if isNamed {
            if let sidecar { try SidecarFile.write(sidecar, besides: path) } else { SidecarFile.revoke(besides: path) }
        }
        if let expected, expected > 0 {
            // Some file systems cannot reserve space; that is no error unless they are full.
            let number = netwatch_reserve_space(descriptor, expected)
            if number == ENOSPC || number == EFBIG || number == EDQUOT {
                throw FileFailure.writing(destination.file.path, number)
            }
        }
    }

    /// Names the finished file by the name that the response suggests; `nil` if it suggests none. Throws if the destination cannot take a file.
    func name(_ suggested: String?) throws(HTTPSessionError) {
        suggest(suggested)
        try finalDestination.check()
    }

    private func suggest(_ name: String?) {
        guard let naming = destination.naming else { return }
        let directory = destination.file.deletingLastPathComponent()
        finalDestination.file = directory.appendingPathComponent(naming.name(name), isDirectory: false)
    }

    private func create() throws(HTTPSessionError) {
        let target = destination.file
        if destination.createsDirectories {
            do {
                try FileManager.default.createDirectory(at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
            } catch {
                throw HTTPSessionError(.cannotWriteFile, "cannot create the directory of '\(target.path)'", underlying: error)
            }
        }
        try destination.check()
        if let named = keeping.path {
            guard let reason = try openKept(named) else { return }
            isRefused = true
            report(reason)
        }
        (descriptor, path) = try PartialFile.createTemporary(beside: target)
        isOwn = true
        if keeping.resumes != nil { flock(descriptor, LOCK_EX | LOCK_NB) }
    }

    /// Opens or creates the partial file. - Returns: the reason why it or its sidecar is not used; `nil` if it is open.
    private func openKept(_ named: String) throws(HTTPSessionError) -> String? {
        let sidecar = SidecarFile.path(of: named)
        if let reason = OwnFile.objection(at: sidecar) { return "'\(sidecar)' is not used: \(reason)" }
        switch try LockedFile.attempt(named) {
        case .refused(let reason): return "'\(named)' is not used: \(reason)"
        case .opened(let descriptor, let isNew): (self.descriptor, path, isOwn) = (descriptor, named, isNew)
        }
        return nil
    }

    /// Creates a temporary file: a file with a random name beside another one.
    private static func createTemporary(beside target: URL) throws(HTTPSessionError) -> (Int32, path: String) {
        // A name of at most 255 bytes (NAME_MAX), however long the destination's is.
        let stem = String(decoding: target.lastPathComponent.utf8.prefix(200), as: UTF8.self)
        let name = ".\(stem).\(String(UInt64.random(in: 0 ... .max), radix: 36)).part"
        let path = target.deletingLastPathComponent().appendingPathComponent(name).path
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw FileFailure.writing(path, errno) }
        return (descriptor, path)
    }

    /// Replaces the inode of an earlier process by one that this process has created, with its first `length` bytes synced.
    private func renew(keeping length: Int64) throws(HTTPSessionError) {
        let (fresh, temporary) = try PartialFile.createTemporary(beside: URL(fileURLWithPath: path))
        var number: Int32 = 0
        if flock(fresh, LOCK_EX | LOCK_NB) != 0 { number = errno }
        var buffer = [UInt8](repeating: 0, count: length > 0 ? 256 << 10 : 0)
        var done: Int64 = 0
        while number == 0, done < length {
            let count = pread(descriptor, &buffer, min(buffer.count, Int(length - done)), off_t(done))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                number = count < 0 ? errno : EIO
                break
            }
            let written = pwrite(fresh, buffer, count, off_t(done))
            if written < 0, errno == EINTR { continue }
            if written < 0 { number = errno } else { done += Int64(written) }
        }
        // The sidecar records these bytes as synced.
        if number == 0, length > 0, fdatasync(fresh) != 0 { number = errno }
        if number == 0, !OwnFile.isFile(descriptor, at: path) { number = EBUSY }
        if number == 0, rename(temporary, path) != 0 { number = errno }
        guard number == 0 else {
            unlink(temporary)
            close(fresh)
            throw FileFailure.writing(path, number)
        }
        close(descriptor)
        (descriptor, isOwn) = (fresh, true)
    }

    // MARK: Bytes

    func write(_ bytes: [UInt8]) throws(HTTPSessionError) {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress?.advanced(by: done), bytes.count - done) }
            if count > 0 {
                done += count
            } else if count < 0, errno != EINTR {
                throw FileFailure.writing(path, errno)
            }
        }
        offset += Int64(bytes.count)
        if isNamed, let sidecar, offset - sidecar.synced >= PartialFile.syncedEvery { try checkpoint() }
    }

    private func checkpoint() throws(HTTPSessionError) {
        guard var sidecar else { return }
        guard fdatasync(descriptor) == 0 else { throw FileFailure.writing(path, errno) }
        (sidecar.synced, sidecar.boot) = (offset, BootIdentifier.current)
        try SidecarFile.write(sidecar, besides: path)
        self.sidecar = sidecar
    }

    /// The digest of the written bytes; `nil` if `isCancelled` returns `true`.
    func digest(_ algorithm: ContentDigest.Algorithm, isCancelled: () -> Bool) throws(HTTPSessionError) -> ContentDigest? {
        try FileDigest.of(descriptor, offset, algorithm, path: path, isCancelled: isCancelled)
    }

    // MARK: The end

    /// Syncs the file and renames it to its destination. - Returns: the destination.
    func commit() throws(HTTPSessionError) -> URL {
        if descriptor < 0 { try begin(expected: nil) }
        if !isOwn { try renew(keeping: offset) }
        guard ftruncate(descriptor, off_t(offset)) == 0 else { throw FileFailure.writing(path, errno) }
        // Before the mode is copied from a replaced file: it may forbid writing.
        if destination.keepsValidator, let sidecar { ValidatorAttribute.write(sidecar, to: descriptor) }
        do throws(HTTPSessionError) {
            if let mode {
                fchmod(descriptor, mode)
            } else {
                try FileAttributes.adopt(descriptor, from: finalDestination.file.path)
            }
            guard fsync(descriptor) == 0 else { throw FileFailure.writing(path, errno) }
            try FileMove.move(path, descriptor, to: finalDestination)
        } catch {
            FileAttributes.withdraw(descriptor)
            throw error
        }
        forget()
        return finalDestination.file
    }

    /// Ends a download that does not complete: keeps bytes that can be continued if that is requested, and removes all others.
    ///
    /// - Returns: resume data; `nil` if none is stored.
    @discardableResult
    func discard(isWorthless: Bool = false) -> Data? {
        guard descriptor >= 0 else { return nil }
        // No byte has arrived: the bytes of an earlier download are unchanged.
        if isNamed, !hasBegun, sidecar == nil {
            var found = stat()
            if fstat(descriptor, &found) == 0, found.st_size > 0 {
                close(descriptor)
                descriptor = -1
                return nil
            }
        }
        // A named file has a sidecar already, which is sufficient if the disk has no space for a newer one.
        guard !isWorthless, sidecar != nil, offset > 0, isNamed || keeping.resumes != nil,
            (try? checkpoint()) != nil || isNamed
        else {
            if OwnFile.isFile(descriptor, at: path) { unlink(path) }
            forget()
            return nil
        }
        let kept = path
        close(descriptor)
        (descriptor, path) = (-1, "")
        return sidecar.flatMap { keeping.resumes?.keep(kept, start: $0.start, under: keeping.record) }
    }

    /// Ends a transfer whose task was deallocated. A temporary file is removed, because nobody could receive its resume data.
    func abandon() { discard(isWorthless: !isNamed) }

    /// Removes the sidecar and the record, and closes the file.
    private func forget() {
        if isNamed { SidecarFile.remove(besides: path) }
        if let record = keeping.record { keeping.resumes?.remove(record) }
        close(descriptor)
        (descriptor, path) = (-1, "")
    }
}
