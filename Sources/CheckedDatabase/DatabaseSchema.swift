package import GRDB

/// The check of a database file's schema: it must be exactly what this program's migrations make.
///
/// SQLite executes what a file's schema says. A view in place of a table, a trigger, a generated column or a virtual table of a file from elsewhere
/// would run within this program's queries: a recursive view alone never ends.
package enum DatabaseSchema {
    package enum Mismatch: Error, Hashable {
        /// A later version of the program has made the file.
        case newer
        /// The schema is another one. The reason is a sentence without a full stop.
        case foreign(String)
    }

    /// One row of the table `sqlite_schema`.
    private struct Object: Hashable {
        var type: String
        var name: String
        var table: String
        /// The statement that made the object; `nil` for an index that SQLite made.
        var statement: String?

        var description: String { "\(type) '\(name)'" }
        /// Whether it belongs to the table in which GRDB notes the migrations.
        var isOfMigrations: Bool { table.lowercased() == migrations }
        /// Whether it is a table of statistics (ANALYZE), which SQLite reads only as a table.
        var isStatistics: Bool { type == "table" && name.hasPrefix("sqlite_stat") }
    }

    /// Throws ``Mismatch`` if the schema is not that of the migrations that the file has. A query of a table, also one of GRDB, must not come before.
    package static func check(_ database: Database, _ migrator: DatabaseMigrator) throws {
        let found = try objects(database)
        try checkMigrations(found, database)
        if try migrator.hasBeenSuperseded(database) { throw Mismatch.newer }
        let applied = try migrator.appliedIdentifiers(database)
        let expected = try objects(after: migrator.migrations.last { applied.contains($0) }, migrator)
        let foreign = found.filter { !$0.isOfMigrations && !$0.isStatistics && !expected.contains($0) }
        let missing = expected.filter { !$0.isOfMigrations && !found.contains($0) }
        // An object that was changed is missing and foreign.
        if let object = (foreign.isEmpty ? missing : foreign).min(by: { $0.name < $1.name }) {
            let isChanged = !foreign.isEmpty && missing.contains { $0.name == object.name && $0.type == object.type }
            throw Mismatch.foreign(
                foreign.isEmpty
                    ? "the \(object.description) is missing"
                    : "the \(object.description) is \(isChanged ? "another one" : "not one of this program")")
        }
    }

    private static let migrations = "grdb_migrations"

    /// Throws ``Mismatch`` if what GRDB reads is not a plain table of identifiers.
    private static func checkMigrations(_ found: Set<Object>, _ database: Database) throws {
        for object in found where object.name.lowercased() == migrations || object.isOfMigrations {
            let isTable = object.type == "table" && object.name == migrations && !isVirtual(object)
            guard isTable || object.type == "index" && object.statement == nil else {
                throw Mismatch.foreign("the \(object.description) is not one of this program")
            }
        }
        guard found.contains(where: { $0.name == migrations }) else { return }
        // A generated column is hidden.
        let columns = try Row.fetchAll(database, sql: "SELECT name, hidden FROM pragma_table_xinfo(?)", arguments: [migrations])
        guard columns.map({ $0[0] as String? }) == ["identifier"], columns.allSatisfy({ $0[1] == 0 }) else {
            throw Mismatch.foreign("the table '\(migrations)' is another one")
        }
    }

    private static func isVirtual(_ object: Object) -> Bool {
        object.statement?.uppercased().hasPrefix("CREATE VIRTUAL") != false
    }

    private static func objects(_ database: Database) throws -> Set<Object> {
        // Each value as text: the file may have others.
        let rows = try Row.fetchAll(
            database,
            sql:
                "SELECT CAST(type AS TEXT), CAST(name AS TEXT), CAST(tbl_name AS TEXT), CAST(sql AS TEXT) FROM main.sqlite_master"
        )
        return Set(
            rows.map { row in
                let statement = (row[3] as String?).map { $0.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
                return Object(type: row[0] ?? "", name: row[1] ?? "", table: row[2] ?? "", statement: statement)
            })
    }

    /// The schema of a new database after a migration; `nil` for an empty one.
    private static func objects(after migration: String?, _ migrator: DatabaseMigrator) throws -> Set<Object> {
        guard let migration else { return [] }
        let queue = try DatabaseQueue()
        try migrator.migrate(queue, upTo: migration)
        return try queue.read(objects)
    }
}
