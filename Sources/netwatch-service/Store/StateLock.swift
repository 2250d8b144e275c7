import EventLoop

/// The lock of a state directory, which one process has.
///
/// The file `lock` names that process. The directory itself is locked too, because another program may remove the file.
final class StateLock: Sendable {
    private let file: LockFile
    private let directory: LockFile

    /// Locks a state directory.
    ///
    /// - Throws: ``StoreError`` with ``StoreError/Code/inUse`` if another process has the lock.
    init(_ state: StateDirectory) throws(StoreError) {
        func failure(_ error: LockFile.Failure, _ path: String) -> StoreError {
            switch error {
            case .system(let number): return StoreError(.refused, "\(path): \(SystemText.of(number))")
            case .refused(let reason): return StoreError(.refused, "\(path): \(reason)")
            case .inUse(let process):
                let owner = process.map { "process \($0)" } ?? "another process"
                return StoreError(.inUse, "\(state.path): \(owner) keeps its history here; stop it, or choose another --state")
            }
        }
        let path = "\(state.path)/lock"
        do throws(LockFile.Failure) {
            file = try LockFile(path) { StateFile.isRegular($0) ? nil : "not a file; remove it, or choose another --state" }
        } catch { throw failure(error, path) }
        do throws(LockFile.Failure) { directory = try LockFile(directory: state.path) } catch { throw failure(error, state.path) }
    }

    /// Releases the lock.
    func unlock() {
        file.unlock()
        directory.unlock()
    }
}
