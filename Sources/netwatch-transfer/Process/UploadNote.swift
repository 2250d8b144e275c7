import CLinux
import Console
import EventLoop
import FoundationEssentials
import Glibc
import HTTPSession
import Reachability

/// Where the upload of a file is, for the next run of the same command: a small file of `$XDG_STATE_HOME/netwatch/uploads` that one run has for
/// itself. A server's place for an upload may be a secret, so only its owner can read it.
final class UploadNote: Sendable {
    /// What it says.
    struct Content: Codable, Hashable {
        var file: String
        var version: FileVersion
        /// Where the upload was to go, as the user wrote it but for user and password.
        var url: String
        var dialect: PutPlan.Dialect
        /// Where its server has put it.
        var place: URL
    }

    private struct State: Sendable {
        /// Of the file as it is sent.
        var version: FileVersion
        var content: Content?
        var isForgotten = false
    }

    /// After so many seconds no server is asked any more whether it still has an upload.
    static let lifetime = 30 * 86_400

    private let path: String
    private let descriptor: Int32
    /// As the user wrote it, which may be a link, and where it led when this run began.
    private let source: String
    private let file: String
    private let url: String
    private let state: Locked<State>
    private let writer: Worker

    /// The note of this file and address. `nil` where there can be none, as without a home directory: then nothing is gone on from.
    ///
    /// - Throws: ``Failure`` where another run is at this upload.
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
            throw Failure(ExitCode.cannotCreate, "put: \(plan.file) is being sent to \(url) already")
        }
        guard descriptor >= 0 else { return nil }
        state = Locked(State(version: version))
        guard !plan.beginsAnew, let data = try? DescriptorContents.read(descriptor, atMost: 1 << 20),
            let found = try? JSONDecoder().decode(Content.self, from: Data(data)), found.file == file, found.version == version,
            found.url == url, plan.dialect == .auto || plan.dialect == found.dialect
        else { return }
        state.withLock { $0.content = found }
        // It is in use: its days begin anew.
        futimens(descriptor, nil)
    }

    /// - Returns: -1 if the note is not the user's alone: it is left untouched, and a line says so.
    private static func lockedNote(_ path: String) throws(HTTPSessionError) -> Int32 {
        switch try LockedFile.attempt(path) {
        case .opened(let descriptor, _): return descriptor
        case .refused(let reason):
            StandardError.note("put: '\(path)' is not used: \(reason)")
            return -1
        }
    }

    deinit { if descriptor >= 0 { Glibc.close(descriptor) } }

    /// What an earlier run, or this one, has begun.
    var known: (dialect: PutPlan.Dialect, place: URL)? { state.withLock { $0.content.map { ($0.dialect, $0.place) } } }
    var hasPlace: Bool { known != nil }

    /// Where to go on. `nil` where nothing has been begun, or the file is another one by now: then it is begun anew.
    func placeOfPresentFile() -> URL? {
        let present = try? FileVersion(source)
        return state.withLock { state in
            if let present, present != state.version { (state.version, state.content) = (present, nil) }
            return state.content?.place
        }
    }

    /// Writes down where it is, soon; on any thread.
    func note(_ place: URL, _ dialect: PutPlan.Dialect) {
        let new = state.withLock { state -> Content? in
            let new = Content(file: file, version: state.version, url: url, dialect: dialect, place: place)
            guard state.content != new else { return nil }
            state.content = new
            return new
        }
        if let new { writer.run { [self] in write(new) } }
    }

    /// Whether the file is another one than when its place was asked for.
    var hasChanged: Bool {
        let present = try? FileVersion(source)
        return state.withLock { $0.version != present }
    }

    /// Before a request leaves: comes back when all is written that was noted before.
    func settle() async {
        await withCheckedContinuation { done in writer.run { done.resume() } }
    }

    /// Nothing of it is to be gone on from any more.
    func forget() {
        state.withLock { ($0.content, $0.isForgotten) = (nil, true) }
        unlink(path)
    }

    /// The run is over.
    func close() {
        let isEmpty = state.withLock { $0.content == nil && !$0.isForgotten }
        if isEmpty { unlink(path) }
    }

    /// Where it is cut short by a power loss it is no JSON, and the upload begins anew.
    private func write(_ content: Content) {
        guard let data = try? JSONEncoder().encode(content), ftruncate(descriptor, 0) == 0 else { return }
        _ = data.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
        fdatasync(descriptor)
    }

    // MARK: Places

    /// Of the XDG base directories; `nil` where nothing says whose they are.
    static func directory(_ environment: [String: String]) -> String? {
        if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") { return "\(state)/netwatch/uploads" }
        if let home = environment["HOME"], home.hasPrefix("/") { return "\(home)/.local/state/netwatch/uploads" }
        return nil
    }

    /// Removes what is too old, unless a run has it.
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
