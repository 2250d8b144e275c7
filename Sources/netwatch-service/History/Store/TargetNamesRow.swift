import Console
import FoundationEssentials
import GRDB

/// The names of a target as a row of the database.
extension HistoryStore.TargetNames {
    static let columns = "id, text, title, target_group, labels"

    /// Reads ``columns``; `nil` if they are those of no target. - Parameter first: the index of the first column.
    init?(_ row: Row, from first: Int) {
        guard let text = row.text(first + 1), let title = row.text(first + 2) else { return nil }
        let labels = row.text(first + 4).flatMap { try? JSONDecoder().decode([String: String].self, from: Data($0.utf8)) }
        self.init(id: row.text(first), text: text, title: title, group: row.text(first + 3), labels: labels ?? [:])
    }

    /// Inserts the target with a number, or replaces its names.
    func write(_ number: Int64, to database: Database) throws {
        try database.execute(
            sql: """
                INSERT INTO target (number, key, \(Self.columns)) VALUES (?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (number) DO UPDATE SET
                    id = excluded.id, text = excluded.text, title = excluded.title, target_group = excluded.target_group,
                    labels = excluded.labels
                """,
            arguments: [number, key, id, text, title, group, labelsText])
    }

    /// The labels as JSON, in the order of their names; `nil` without labels.
    private var labelsText: String? {
        guard !labels.isEmpty else { return nil }
        var writer = JSONWriter()
        writer.object { writer in
            for (name, value) in labels.sorted(by: { $0.key < $1.key }) {
                writer.key(text: name)
                writer.value(value)
            }
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
