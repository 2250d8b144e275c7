import Foundation
import HTTPSessionTestKit

/// The results of all transfers: whether a downloaded file is one version of those on the server, whether the server has an
/// upload, which events were delivered, and how many bytes were transferred.
struct ChaosTable {
    struct Row {
        var count = 0
        var right = 0
        /// Reported as successful but with wrong bytes, or reported as failed.
        var wrong = 0
        /// Never reported as ended, or a durable task that its journal has lost.
        var lost = 0
        /// Reported more than once with different identifiers, or executed more than once.
        var twice = 0
        /// Repeated deliveries of an event, which are allowed until it is acknowledged.
        var again = 0
        var size: Int64 = 0
        /// The bytes of bodies as counted by the client, including those that a killed process may have read but not written.
        var read: Int64 = 0
        /// The server's counts: bytes that the client's kernel acknowledged, and bytes that were transmitted. For uploads, bytes
        /// that were read.
        var acknowledged: Int64 = 0
        var transmitted: Int64 = 0

        static func + (one: Row, other: Row) -> Row {
            Row(
                count: one.count + other.count, right: one.right + other.right, wrong: one.wrong + other.wrong,
                lost: one.lost + other.lost, twice: one.twice + other.twice, again: one.again + other.again,
                size: one.size + other.size, read: one.read + other.read, acknowledged: one.acknowledged + other.acknowledged,
                transmitted: one.transmitted + other.transmitted)
        }
    }

    private(set) var rows: [(name: String, row: Row)] = []
    /// The results by the session that had the transfers.
    private(set) var sessions: [(name: String, row: Row)] = []
    private let history: ChaosHistory
    /// The sum for the files that can be continued and do not change.
    private let continuable: Row

    init(_ manifest: Manifest, files: [FaultyFiles.File], uploads: [Int: FaultyUploads.Outcome]) throws {
        let sizes = Dictionary(uniqueKeysWithValues: files.map { ("d\($0.number)", $0.sizes.last ?? 0) })
        let history = ChaosHistory(try ChaosLog.lines(manifest.log), sizes: sizes)
        self.history = history
        let downloads = manifest.downloads.map { download -> (FaultyFiles.Behavior, Bool, Row) in
            let file = files[download.number]
            var row = ChaosTable.row(
                download.name, download.isDurable, isRight: ChaosTable.isVersion(file, download.file), history)
            (row.size, row.read) = (file.sizes.last ?? 0, history.bytes[download.name] ?? 0)
            (row.acknowledged, row.transmitted) = (file.acknowledged, file.transmitted)
            return (file.behavior, download.isDurable, row)
        }
        let sentUploads = manifest.uploads.map { upload -> (Bool, Row) in
            let outcome = uploads[upload.number] ?? FaultyUploads.Outcome()
            var row = ChaosTable.row(upload.name, upload.isDurable, isRight: outcome.copies > 0 && outcome.isRight, history)
            (row.size, row.transmitted) = (upload.size, outcome.bytes)
            // A client without a journal that is killed before it logs a completed upload sends it again.
            if upload.isDurable, outcome.copies > 1 { row.twice += 1 }
            return (upload.isDurable, row)
        }
        for behavior in FaultyFiles.Behavior.allCases {
            rows.append(("downloads, \(behavior)", downloads.filter { $0.0 == behavior }.map(\.2).reduce(Row(), +)))
        }
        rows.append(("uploads, tus", sentUploads.map(\.1).reduce(Row(), +)))
        for isDurable in [false, true] {
            let all = downloads.filter { $0.1 == isDurable }.map(\.2) + sentUploads.filter { $0.0 == isDurable }.map(\.1)
            sessions.append((isDurable ? "of these, in a journal" : "of these, without", all.reduce(Row(), +)))
        }
        continuable = downloads.filter(\.0.isContinuable).map(\.2).reduce(Row(), +)
    }

    private static func row(_ name: String, _ isDurable: Bool, isRight: Bool, _ history: ChaosHistory) -> Row {
        let (done, events) = (history.done[name] ?? 0, history.events[name] ?? [])
        let isReported = isDurable ? !events.isEmpty : done > 0
        let isWrong = history.wrong.contains(name)
        let isTwice = isDurable ? (history.identifiers[name] ?? []).count > 1 || done > 0 : done > 1 || !events.isEmpty
        return Row(
            count: 1, right: isReported && isRight && !isWrong ? 1 : 0, wrong: isReported && (!isRight || isWrong) ? 1 : 0,
            lost: isReported ? 0 : 1, twice: isTwice ? 1 : 0, again: max(0, events.count - 1))
    }

    private static func isVersion(_ file: FaultyFiles.File, _ path: String) -> Bool {
        guard let data = try? Data(contentsOf: URL(fileURLWithPath: path)) else { return false }
        return file.sizes.indices.contains { version in
            data.count == Int(file.sizes[version])
                && data == Manifest.bytes(file: file.number, version: version, size: file.sizes[version])
        }
    }

    var lives: Int { history.lives }

    /// Returns everything that is wrong. `percent`: the maximum bytes read of files that can be continued and have not changed,
    /// in percent of their size.
    func problems(percent: Int) -> [String] {
        let all = rows.map(\.row).reduce(Row(), +)
        var problems = history.failures
        if all.right != all.count || all.lost > 0 || all.wrong > 0 { problems.append("some transfers are wrong or lost") }
        if all.twice > 0 { problems.append("some transfers were reported or executed twice") }
        // Both counts cover bytes that arrived. The client's includes bytes that a killed process may have read but not
        // written; the server's lacks bytes that were not acknowledged before a connection ended. Bytes sent to a dead link are
        // only in the table.
        for (verb, bytes) in [("were read", continuable.read), ("were acknowledged", continuable.acknowledged)]
        where bytes * 100 > continuable.size * Int64(percent) {
            problems.append("\(bytes) bytes \(verb) of continuable files with \(continuable.size) bytes")
        }
        // Fewer bytes than the size would mean that the counters do not work.
        if continuable.transmitted < continuable.size || continuable.read < continuable.size {
            problems.append(
                "\(continuable.transmitted) bytes sent, \(continuable.read) read of \(continuable.size)")
        }
        if continuable.acknowledged * 10 < continuable.size * 8 {
            problems.append("only \(continuable.acknowledged) bytes acknowledged of \(continuable.size)")
        }
        return problems
    }

    var text: String {
        var lines = ["                        files  right  wrong  lost  twice  again      MiB   read  acked   sent"]
        // Bytes are counted in another way for uploads, so there is no sum of them.
        let sums = ([("all", rows.map(\.row).reduce(Row(), +))] + sessions).map { name, row in
            var sum = row
            (sum.read, sum.acknowledged, sum.transmitted) = (0, 0, 0)
            return (name, sum)
        }
        for (name, row) in rows + sums {
            let numbers = [row.count, row.right, row.wrong, row.lost, row.twice, row.again].map { String($0) }
            lines.append(
                name.padding(toLength: 24, withPad: " ", startingAt: 0)
                    + zip(numbers, [5, 7, 7, 6, 7, 7]).map { padded($0, $1) }.joined()
                    + padded(String(format: "%.1f", Double(row.size) / 1_048_576), 9)
                    + [row.read, row.acknowledged, row.transmitted].map { padded(share($0, row), 7) }.joined())
        }
        lines.append(
            "of files that can be continued and have not changed: \(share(continuable.read, continuable, 3)) times the size read, as the"
                + " client counts; \(share(continuable.acknowledged, continuable, 3)) acknowledged to the server,"
                + " \(share(continuable.transmitted, continuable, 3)) sent by it")
        return lines.joined(separator: "\n")
    }

    private func share(_ bytes: Int64, _ row: Row, _ digits: Int = 2) -> String {
        row.size > 0 && bytes > 0 ? String(format: "%.\(digits)f", Double(bytes) / Double(row.size)) : "-"
    }

    private func padded(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
