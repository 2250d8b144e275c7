import GRDB

/// An open database with the identities of its files.
///
/// SQLite keeps writing to a file after another program has removed or replaced it. No program can open that file later, so what is written
/// is lost. SQLite itself removes the write-ahead log and its index only with the last connection.
struct OpenHistory {
    let queue: DatabaseQueue
    private let files: [StateFile]
    private var identities: [StateFile.Identity?]

    init(_ queue: DatabaseQueue, _ directory: StateDirectory) {
        self.queue = queue
        files = directory.databaseFiles.filter { !$0.path.hasSuffix("-journal") }
        identities = files.map(\.identity)
    }

    /// Returns the first file that is not the one of the connection any more; `nil` if all are.
    mutating func loss() -> StoreError? {
        for (place, file) in files.enumerated() {
            let present = file.identity
            guard let opened = identities[place] else {
                // The write-ahead log comes with the first transaction.
                identities[place] = present
                continue
            }
            guard present == opened else {
                return StoreError(.inputOutput, "\(file.path): the file was removed or replaced; restart the service")
            }
            // A database has a header of 100 bytes (sqlite.org/fileformat2.html, 1.3).
            if place == 0, file.size < 100 {
                return StoreError(.inputOutput, "\(file.path): the file was truncated; restart the service")
            }
        }
        return nil
    }
}
