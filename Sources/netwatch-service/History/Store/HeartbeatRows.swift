import FoundationEssentials
import GRDB
import Reachability

/// What is known of jobs that report in, as the history keeps it: a value for each job in the table `meta`, in JSON.
enum HeartbeatRows {
    private static let prefix = "heartbeat "

    /// Returns the rows of jobs, by their keys.
    static func rows(_ memories: [HeartbeatMemories.Job: HeartbeatMemory]) -> [String: String] {
        var rows: [String: String] = [:]
        for (job, memory) in memories {
            guard let value = try? JSONEncoder().encode(memory) else { continue }
            rows["\(prefix)\(job.token) \(job.endpoint.text)"] = String(decoding: value, as: UTF8.self)
        }
        return rows
    }

    /// Returns the jobs of rows. Damaged ones are left out.
    static func memories(_ rows: [String: String]) -> [HeartbeatMemories.Job: HeartbeatMemory] {
        var memories: [HeartbeatMemories.Job: HeartbeatMemory] = [:]
        for (key, value) in rows {
            let parts = key.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3, let endpoint = try? Endpoint(String(parts[2])), endpoint.scheme == .heartbeat,
                let memory = try? JSONDecoder().decode(HeartbeatMemory.self, from: Data(value.utf8))
            else { continue }
            memories[.init(endpoint, token: String(parts[1]))] = memory
        }
        return memories
    }

    static func read(_ database: Database) throws -> [HeartbeatMemories.Job: HeartbeatMemory] {
        let rows = try Row.fetchAll(
            database, sql: "SELECT key, CAST(value AS TEXT) AS value FROM meta WHERE key >= ? AND key < ?",
            arguments: [prefix, "heartbeat!"])
        return memories(
            Dictionary(rows.compactMap { row in (row["value"] as String?).map { (row["key"] as String, $0) } }) { $1 })
    }
}
