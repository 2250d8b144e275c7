internal import CLinux
internal import EventLoop
internal import FoundationEssentials
internal import Glibc

/// A file that is not there until it is whole.
// @unchecked: its fields are touched only by jobs of one worker, which run one after another.
final class PartialFile: @unchecked Sendable {
    /// What becomes of its bytes when it does not become whole.
    struct Keeping: Hashable, Sendable {
        /// Where they lie; `nil`: under a hidden name beside the destination, made at random.
        var path: String?
        /// Whether what an earlier download left there is asked for.
        var continues = true
        /// Where resume data is kept of it; `nil`: nobody asks for some.
        var resumes: ResumeDirectory?
        /// The record that the download goes on from.
        var record: ResumeDirectory.Record?

        static let nothing = Keeping()
        /// Whether the sidecar is there while bytes come: others may look for them, also after a kill.
        var isNamed: Bool { path != nil }
    }

    /// How much may come until it is synced and said so in the sidecar: this much is asked for again after a power loss.
    static let syncedEvery: Int64 = 16 << 20

    private let destination: DownloadDestination
    /// Where the finished file goes: the destination, or the name that its response suggests.
    private var place: DownloadDestination
    private let mode: mode_t?
    private let report: @Sendable (String) -> Void
    private let keeping: Keeping
    private var descriptor: Int32 = -1
    private var path = ""
    private var offset: Int64 = 0
    /// Says what the bytes are; `nil`: nothing by which they could be continued.
    private var sidecar: Sidecar?
    /// Whether a body has begun here: what was there before is gone then.
    private var hasBegun = false

    /// Whether the file at the kept path is not the user's alone, so that the bytes go to a hidden name.
    private var isRefused = false
    /// Whether this process has created the inode: of any other one somebody may have a descriptor.
    private var isOwn = false

    /// `mode`: of the finished file; `nil`: as ``FileAttributes`` has it. Until then only its owner can open it. `report` is called, on the
    /// worker's thread, with the reason why a kept file is not continued.
    init(
        _ destination: DownloadDestination, mode: mode_t? = nil, keeping: Keeping = .nothing,
        report: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.report = report
        self.destination = destination
        place = destination
        self.mode = mode
        self.keeping = keeping
    }

    private var isNamed: Bool { keeping.isNamed && !isRefused }

    // MARK: Beginning

    /// Looks for what an earlier download left. - Returns: what it is, and how much of it is valid.
    func reopen() throws(HTTPSessionError) -> (Sidecar, length: Int64)? {
        if descriptor < 0 { try create() }
        guard isNamed, keeping.continues, let found = try SidecarFile.read(besides: path) else { return nil }
        let length = found.validBytes(of: Int64(lseek(descriptor, 0, SEEK_END)), boot: BootIdentifier.current)
        guard length > 0 else { return nil }
        if !isOwn {
            do throws(HTTPSessionError) { try renew(keeping: length) } catch {
                // Without room for a copy the download restarts, which frees what is here.
                guard [ENOSPC, EDQUOT].contains(error.context.systemError) else { throw error }
                return nil
            }
        }
        guard ftruncate(descriptor, off_t(length)) == 0, lseek(descriptor, off_t(length), SEEK_SET) >= 0 else {
            throw FileFailure.writing(path, errno)
        }
        (sidecar, offset) = (found, length)
        suggest(found.suggestedName)
        // In this run of the system it is the length that counts from now on.
        if found.boot != BootIdentifier.current { try checkpoint() }
        return (found, length)
    }

    /// A body begins: makes the file, or empties it. `sidecar`: by what it may be continued. Reserves the space where the length is
    /// known, so that a full disk shows at once.
    func begin(expected: Int64?, _ sidecar: Sidecar? = nil) throws(HTTPSessionError) {
        if descriptor < 0 { try create() }
        if !isOwn { try renew(keeping: 0) }
        guard lseek(descriptor, 0, SEEK_SET) == 0, ftruncate(descriptor, 0) == 0 else { throw FileFailure.writing(path, errno) }
        (self.sidecar, offset, hasBegun) = (sidecar, 0, true)
        // Before the first byte: what is said of the file is never said of another version's bytes.
        if isNamed {
            if let sidecar { try SidecarFile.write(sidecar, besides: path) } else { SidecarFile.revoke(besides: path) }
        }
        if let expected, expected > 0 {
            // Not every file system can; one that is full says so.
            let number = netwatch_reserve_space(descriptor, expected)
            if number == ENOSPC || number == EFBIG || number == EDQUOT {
                throw FileFailure.writing(destination.file.path, number)
            }
        }
    }

    /// Names the finished file as its response suggests, or as a response that said nothing. Throws if the name is taken.
    func name(_ suggested: String?) throws(HTTPSessionError) {
        suggest(suggested)
        try place.check()
    }

    private func suggest(_ name: String?) {
        guard let naming = destination.naming else { return }
        let directory = destination.file.deletingLastPathComponent()
        place.file = directory.appendingPathComponent(naming.name(name), isDirectory: false)
    }

    private func create() throws(HTTPSessionError) {
        let target = destination.file
        if destination.createsDirectories {
            do {
                try FileManager.default.createDirectory(at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
            } catch {
                throw HTTPSessionError(.cannotWriteFile, "cannot make the directory of '\(target.path)'", underlying: error)
            }
        }
        try destination.check()
        if let named = keeping.path {
            guard let reason = try openKept(named) else { return }
            isRefused = true
            report(reason)
        }
        (descriptor, path) = try PartialFile.createHidden(beside: target)
        isOwn = true
        if keeping.resumes != nil { flock(descriptor, LOCK_EX | LOCK_NB) }
    }

    /// Opens the kept file or makes it. - Returns: the reason why it, or its sidecar, is left alone; `nil`: it is open.
    private func openKept(_ named: String) throws(HTTPSessionError) -> String? {
        let sidecar = SidecarFile.path(of: named)
        if let reason = OwnFile.objection(at: sidecar) { return "'\(sidecar)' is not used: \(reason)" }
        switch try LockedFile.attempt(named) {
        case .refused(let reason): return "'\(named)' is not used: \(reason)"
        case .opened(let descriptor, let isNew): (self.descriptor, path, isOwn) = (descriptor, named, isNew)
        }
        return nil
    }

    /// Creates a file under a random name beside another one.
    private static func createHidden(beside target: URL) throws(HTTPSessionError) -> (Int32, path: String) {
        // A name of at most 255 bytes (NAME_MAX), however long the destination's is.
        let stem = String(decoding: target.lastPathComponent.utf8.prefix(200), as: UTF8.self)
        let name = ".\(stem).\(String(UInt64.random(in: 0 ... .max), radix: 36)).part"
        let path = target.deletingLastPathComponent().appendingPathComponent(name).path
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw FileFailure.writing(path, errno) }
        return (descriptor, path)
    }

    /// Puts an inode of this process in the place of one that an earlier process left, with its first `length` bytes on the disk.
    private func renew(keeping length: Int64) throws(HTTPSessionError) {
        let (fresh, temporary) = try PartialFile.createHidden(beside: URL(fileURLWithPath: path))
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
        // The sidecar says of the bytes that they are on the disk.
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

    /// The digest of what has been written; `isCancelled` is asked now and then, and ends it with `nil`.
    func digest(_ algorithm: ContentDigest.Algorithm, isCancelled: () -> Bool) throws(HTTPSessionError) -> ContentDigest? {
        try FileDigest.of(descriptor, offset, algorithm, path: path, isCancelled: isCancelled)
    }

    // MARK: The end

    /// Syncs the bytes and gives them their name.
    func commit() throws(HTTPSessionError) -> URL {
        if descriptor < 0 { try begin(expected: nil) }
        if !isOwn { try renew(keeping: offset) }
        guard ftruncate(descriptor, off_t(offset)) == 0 else { throw FileFailure.writing(path, errno) }
        // Before the mode of a replaced file, which its owner may be unable to write to.
        if destination.keepsValidator, let sidecar { ValidatorAttribute.write(sidecar, to: descriptor) }
        do throws(HTTPSessionError) {
            if let mode {
                fchmod(descriptor, mode)
            } else {
                try FileAttributes.adopt(descriptor, from: place.file.path)
            }
            guard fsync(descriptor) == 0 else { throw FileFailure.writing(path, errno) }
            try FileMove.move(path, descriptor, to: place)
        } catch {
            FileAttributes.withdraw(descriptor)
            throw error
        }
        forget()
        return place.file
    }

    /// It does not become whole: what may be continued is kept where somebody asks for it, everything else is removed.
    ///
    /// - Returns: resume data, where some is kept.
    @discardableResult
    func discard(isWorthless: Bool = false) -> Data? {
        guard descriptor >= 0 else { return nil }
        // Nothing came: what was there before is there still.
        if isNamed, !hasBegun, sidecar == nil {
            var found = stat()
            if fstat(descriptor, &found) == 0, found.st_size > 0 {
                close(descriptor)
                descriptor = -1
                return nil
            }
        }
        // Of a named one the sidecar is there already: where the disk has no room for a newer one it will do.
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

    /// Its transfer has gone without an end: of a hidden part nobody could hear any more.
    func abandon() { discard(isWorthless: !isNamed) }

    /// The part is none any more.
    private func forget() {
        if isNamed { SidecarFile.remove(besides: path) }
        if let record = keeping.record { keeping.resumes?.remove(record) }
        close(descriptor)
        (descriptor, path) = (-1, "")
    }
}
