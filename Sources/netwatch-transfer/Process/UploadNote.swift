import ByteComparison
import CLinux
import Console
import EventLoop
import FoundationEssentials
import Glibc
import HTTPSession
import Reachability

/// The stored URL of a file's upload, for the next run of the same command: a small file in `$XDG_STATE_HOME/netwatch/uploads`,
/// locked by one run. An upload's URL may be a secret, so only the owner can read the file.
final class UploadNote: Sendable {
    /// The content of the file.
    struct Content: Codable, Hashable {
        var file: String
        var version: FileVersion
        /// The URL of the command as the user wrote it, without user and password.
        var url: String
        var dialect: PutPlan.Dialect
        /// The URL that the server gave the upload.
        var place: URL
    }

    private struct State: Sendable {
        /// The version of the file that is being sent.
        var version: FileVersion
        var content: Content?
        var isForgotten = false
    }

    /// The time in seconds after which a note is removed.
    static let lifetime = 30 * 86_400

    private let path: String
    private let descriptor: Int32
    /// The path as the user wrote it, which may be a symbolic link, and the path to which it led at the start of this run.
    private let source: String
    private let file: String
    private let url: String
    private let state: Locked<State>
    private let writer: Worker

    /// Opens the note of this file and URL. `nil` if there can be none, for example without a home directory: the upload is not
    /// continued then.
    ///
    /// - Throws: ``Failure`` if another run has this upload.
    init?(_ plan: PutPlan, environment: [String: String]) throws(Failure) {
        guard let directory = UploadNote.directory(environment), let resolved = realpath(plan.file, nil) else { return nil }
        defer { free(resolved) }
        (source, file) = (plan.file, String(cString: resolved))
        url = plan.address
        guard let version = try? FileVersion(source), let digest = ContentDigest.sha256(of: Data("\(file)\0\(url)".utf8)),
            (try? FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])) != nil,
            let writer = try? Worker(name: "netwatch-note")
        else { return nil }
        self.writer = writer
        UploadNote.sweep(directory)
        path = "\(directory)/\(digest.hexadecimal).json"
        do throws(HTTPSessionError) {
            descriptor = try UploadNote.lockedNote(path)
        } catch {
            guard error.context.systemError == EWOULDBLOCK else { return nil }
            throw Failure(ExitCode.cannotCreate, "put: \(plan.file) is already being sent to \(url)")
        }
        guard descriptor >= 0 else { return nil }
        state = Locked(State(version: version))
        guard !plan.restarts, let data = try? DescriptorContents.read(descriptor, atMost: 1 << 20),
            let found = try? JSONDecoder().decode(Content.self, from: Data(data)), found.file.isExactly(file),
            found.version == version, found.url.isExactly(url), plan.dialect == .auto || plan.dialect == found.dialect
        else { return }
        state.withLock { $0.content = found }
        // The note is in use: its lifetime restarts.
        futimens(descriptor, nil)
    }

    /// - Returns: -1 if the note does not belong to the user alone. It stays unchanged, and a message reports that.
    private static func lockedNote(_ path: String) throws(HTTPSessionError) -> Int32 {
        switch try LockedFile.attempt(path) {
        case .opened(let descriptor, _): return descriptor
        case .refused(let reason):
            StandardError.note("put: '\(path)' is not used: \(reason)")
            return -1
        }
    }

    deinit { if descriptor >= 0 { Glibc.close(descriptor) } }

    /// The upload that an earlier run, or this one, has created.
    var known: (dialect: PutPlan.Dialect, place: URL)? { state.withLock { $0.content.map { ($0.dialect, $0.place) } } }
    var hasPlace: Bool { known != nil }

    /// Returns the URL of the upload to continue; `nil` if there is none or the file has changed, so that a new upload is
    /// created.
    func placeOfCurrentFile() -> URL? {
        let present = try? FileVersion(source)
        return state.withLock { state in
            if let present, present != state.version { (state.version, state.content) = (present, nil) }
            return state.content?.place
        }
    }

    /// Stores the upload's URL asynchronously. It may be called on any thread.
    func note(_ place: URL, _ dialect: PutPlan.Dialect) {
        let new = state.withLock { state -> Content? in
            let new = Content(file: file, version: state.version, url: url, dialect: dialect, place: place)
            guard state.content != new else { return nil }
            state.content = new
            return new
        }
        if let new { writer.run { [self] in write(new) } }
    }

    /// Whether the file has changed since ``placeOfCurrentFile()``.
    var hasChanged: Bool {
        let present = try? FileVersion(source)
        return state.withLock { $0.version != present }
    }

    /// Waits until everything that was noted before is written.
    func waitUntilWritten() async {
        await withCheckedContinuation { done in writer.run { done.resume() } }
    }

    /// Removes the note: the upload is not continued by a later run.
    func forget() {
        state.withLock { ($0.content, $0.isForgotten) = (nil, true) }
        unlink(path)
    }

    /// Ends the run. A note without an upload is removed.
    func close() {
        let isEmpty = state.withLock { $0.content == nil && !$0.isForgotten }
        if isEmpty { unlink(path) }
    }

    /// Writes the content. If a power loss truncates it, it is not valid JSON, and the upload restarts.
    private func write(_ content: Content) {
        guard let data = try? JSONEncoder().encode(content), ftruncate(descriptor, 0) == 0 else { return }
        _ = data.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
        fdatasync(descriptor)
    }

    // MARK: Places

    /// Returns the directory by the XDG base directory specification; `nil` if the environment names no home directory.
    static func directory(_ environment: [String: String]) -> String? {
        if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") { return "\(state)/netwatch/uploads" }
        if let home = environment["HOME"], home.hasPrefix("/") { return "\(home)/.local/state/netwatch/uploads" }
        return nil
    }

    /// Removes notes that are too old, unless a run has locked them.
    private static func sweep(_ directory: String) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        let oldest = time(nil) - lifetime
        for name in names where name.hasSuffix(".json") {
            let path = "\(directory)/\(name)"
            var found = stat()
            guard lstat(path, &found) == 0, found.st_mtim.tv_sec < oldest else { continue }
            let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
            guard descriptor >= 0 else { continue }
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { unlink(path) }
            Glibc.close(descriptor)
        }
    }
}
