import CheckedDatabase
import GRDB

// If an interrupt or an error of the disk also fails the COMMIT or the ROLLBACK that ends a transaction, the transaction stays open. GRDB
// then stops the program, unless unsafe transactions are allowed. Here they are, and each access first ends what the one before it left.
extension GRDB.Configuration {
    /// The configuration of all connections to the history. `limit`: the time limit of its queries.
    static func history(_ limit: QueryTimeLimit) -> GRDB.Configuration {
        var configuration = GRDB.Configuration()
        configuration.busyMode = .timeout(2)
        configuration.allowsUnsafeTransactions = true
        configuration.distrustSchema(limit)
        configuration.prepareDatabase { $0.add(function: HistorySchema.containsFunction) }
        return configuration
    }
}

extension Database {
    /// Ends a transaction that an earlier access could not end.
    func endRemainingTransaction() throws {
        if isInsideTransaction { try rollback() }
    }
}

extension DatabaseQueue {
    /// Reads in one transaction, so that all queries see the same state.
    func readSnapshot<Value>(_ body: (Database) throws -> Value) throws -> Value {
        try unsafeRead { database in
            try database.endRemainingTransaction()
            try database.beginTransaction(.deferred)
            defer { try? database.endRemainingTransaction() }
            return try body(database)
        }
    }
}
