internal import Foundation
internal import HTTPSession

/// The directory and the journal of one identifier, which are open for this process alone.
struct OpenedJournal {
    let lock: DirectoryLock
    let journal: Journal
    /// The ended tasks in the order of their events, then the others in the order of their creation.
    let records: [TaskRecord]
    /// The new path of a journal that was damaged.
    let damagedJournal: String?

    /// Locks the directory and reads the journal. `checkCancellation` is called between the steps, and its error releases what is open.
    init(
        _ identifier: String, in directory: URL, checkCancellation: () throws(DurableSessionError) -> Void, didRead: () -> Void
    ) throws(DurableSessionError) {
        try checkCancellation()
        let lock = try DirectoryLock(directory.appendingPathComponent(identifier).path, identifier: identifier)
        do throws(DurableSessionError) {
            try checkCancellation()
            let path = "\(lock.path)/journal.sqlite"
            (journal, records, damagedJournal) = try Journal.open(path)
            SmallFile.syncDirectory(of: path)
            self.lock = lock
        } catch {
            lock.unlock()
            throw error
        }
        didRead()
        do throws(DurableSessionError) { try checkCancellation() } catch {
            close()
            throw error
        }
    }

    func close() {
        journal.close()
        lock.unlock()
    }
}
