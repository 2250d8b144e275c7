import EventLoop

/// The lock of a state directory, which one process has: its file `lock`, which names that process.
///
/// The directory itself is not locked: whoever can read a directory can lock it, and would stop the service. Another program may therefore
/// remove the file, and with it the protection; ``loss()`` notices that.
final class StateLock: Sendable {
    private struct State: Sendable {
        var file: LockFile
        /// The reason why the directory is not this process's any more.
        var loss: StoreError?
    }

    private let directory: String
    private let path: String
    private let state: Locked<State>

    /// Locks a state directory.
    ///
    /// - Throws: ``StoreError`` with ``StoreError/Code/inUse`` if another process has the lock.
    init(_ directory: StateDirectory) throws(StoreError) {
        (self.directory, path) = (directory.path, "\(directory.path)/lock")
        do throws(LockFile.Failure) { state = Locked(State(file: try StateLock.lock(path))) } catch {
            switch error {
            case .system(let number): throw StoreError(.refused, "\(path): \(SystemText.of(number))")
            case .refused(let reason): throw StoreError(.refused, "\(path): \(reason)")
            case .inUse(let process):
                throw StoreError(
                    .inUse, "\(directory.path): \(Self.owner(process)) keeps its history here; stop it, or choose another --state"
                )
            }
        }
    }

    private static func lock(_ path: String) throws(LockFile.Failure) -> LockFile {
        try LockFile(path) { StateFile.isRegular($0) ? nil : "not a file; remove it, or choose another --state" }
    }

    private static func owner(_ process: Int32?) -> String { process.map { "process \($0)" } ?? "another process" }

    /// Checks that the path still leads to the locked file. A missing file is created and locked again. After another process could have locked
    /// the directory, nothing may be written any more: it may have changed the history.
    ///
    /// - Returns: the reason why nothing may be written; `nil` while the directory is locked.
    func loss() -> StoreError? {
        state.withLock { state in
            if let loss = state.loss { return loss }
            switch state.file.presence {
            case .present: return nil
            case .replaced: state.loss = StoreError(.inputOutput, "\(path): the file was replaced; restart the service")
            case .missing:
                do throws(LockFile.Failure) { state.file = try Self.lock(path) } catch {
                    switch error {
                    // For example a full disk: the next check tries again.
                    case .system: return nil
                    case .refused: state.loss = StoreError(.inputOutput, "\(path): the file was replaced; restart the service")
                    case .inUse(let process):
                        state.loss = StoreError(
                            .inputOutput,
                            "\(directory): \(Self.owner(process)) keeps its history here too; stop one, and restart the other")
                    }
                }
            }
            return state.loss
        }
    }

    /// Releases the lock.
    func unlock() { state.withLock { $0.file.unlock() } }
}
