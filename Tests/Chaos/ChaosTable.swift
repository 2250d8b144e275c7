import Foundation
import HTTPSessionTestKit

/// What became of every transfer: of a file, whether it is one version of those that the server has had; of an upload, whether the server
/// has it; of both, who was told, and how many bytes it took.
struct ChaosTable {
    struct Row {
        var count = 0
        var right = 0
        /// Told to have ended well, and of no version; or told to have ended otherwise.
        var wrong = 0
        /// Never told to have ended, or a durable task that its journal has forgotten.
        var lost = 0
        /// Told more than once, and not by one event with one identifier; or carried out more than once.
        var twice = 0
        /// Deliveries of an event that had been delivered: allowed until it is acknowledged.
        var again = 0
        var size: Int64 = 0
        /// Bytes of bodies, as the client counts them: with what a killed process may have read beyond its file.
        var read: Int64 = 0
        /// The server's own count: acknowledged to it, and more than that, put on the way by it. Of uploads, read by it.
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
    /// The same transfers, by who had them.
    private(set) var sessions: [(name: String, row: Row)] = []
    private let history: ChaosHistory
    /// Of the files that can be continued and do not change.
    private let continuable: Row

    init(_ manifest: Manifest, files: [FaultyFiles.File], uploads: [Int: FaultyUploads.Came]) throws {
        let sizes = Dictionary(uniqueKeysWithValues: files.map { ("d\($0.number)", $0.sizes.last ?? 0) })
        let history = ChaosHistory(try ChaosLog.lines(manifest.log), sizes: sizes)
        self.history = history
        let downloads = manifest.downloads.map { download -> (FaultyFiles.Manner, Bool, Row) in
            let file = files[download.number]
            var row = ChaosTable.judge(
                download.name, download.isDurable, isRight: ChaosTable.isVersion(file, download.file), history)
            (row.size, row.read) = (file.sizes.last ?? 0, history.bytes[download.name] ?? 0)
            (row.acknowledged, row.transmitted) = (file.acknowledged, file.transmitted)
            return (file.manner, download.isDurable, row)
        }
        let sentUploads = manifest.uploads.map { upload -> (Bool, Row) in
            let came = uploads[upload.number] ?? FaultyUploads.Came()
            var row = ChaosTable.judge(upload.name, upload.isDurable, isRight: came.copies > 0 && came.isRight, history)
            (row.size, row.transmitted) = (upload.size, came.bytes)
            // Who is killed before it could write down that an upload is there, and has no journal, sends it anew.
            if upload.isDurable, came.copies > 1 { row.twice += 1 }
            return (upload.isDurable, row)
        }
        for manner in FaultyFiles.Manner.allCases {
            rows.append(("downloads, \(manner)", downloads.filter { $0.0 == manner }.map(\.2).reduce(Row(), +)))
        }
        rows.append(("uploads, tus", sentUploads.map(\.1).reduce(Row(), +)))
        for isDurable in [false, true] {
            let all = downloads.filter { $0.1 == isDurable }.map(\.2) + sentUploads.filter { $0.0 == isDurable }.map(\.1)
            sessions.append((isDurable ? "of these, in a journal" : "of these, without", all.reduce(Row(), +)))
        }
        continuable = downloads.filter(\.0.isContinuable).map(\.2).reduce(Row(), +)
    }

    private static func judge(_ name: String, _ isDurable: Bool, isRight: Bool, _ history: ChaosHistory) -> Row {
        let (done, events) = (history.done[name] ?? 0, history.events[name] ?? [])
        let isTold = isDurable ? !events.isEmpty : done > 0
        let isWrong = history.wrong.contains(name)
        let isTwice = isDurable ? (history.identifiers[name] ?? []).count > 1 || done > 0 : done > 1 || !events.isEmpty
        return Row(
            count: 1, right: isTold && isRight && !isWrong ? 1 : 0, wrong: isTold && (!isRight || isWrong) ? 1 : 0,
            lost: isTold ? 0 : 1, twice: isTwice ? 1 : 0, again: max(0, events.count - 1))
    }

    private static func isVersion(_ file: FaultyFiles.File, _ path: String) -> Bool {
        guard let data = try? Data(contentsOf: URL(fileURLWithPath: path)) else { return false }
        return file.sizes.indices.contains { version in
            data.count == Int(file.sizes[version])
                && data == Manifest.bytes(file: file.number, version: version, size: file.sizes[version])
        }
    }

    var lives: Int { history.lives }

    /// What is not as it should be. `percent`: how much may be read of files that can be continued and have not changed, of their size.
    func objections(percent: Int) -> [String] {
        let all = rows.map(\.row).reduce(Row(), +)
        var objections = history.failures
        if all.right != all.count || all.lost > 0 || all.wrong > 0 { objections.append("not everything is right") }
        if all.twice > 0 { objections.append("something was told or done twice") }
        // Both counts are of what arrived: the client's has what a killed process may have read beyond its file, the server's lacks what was
        // not acknowledged before a connection ended. What the server sent to a dead link is in the table, and nobody has read it.
        for (what, bytes) in [("were read", continuable.read), ("were acknowledged", continuable.acknowledged)]
        where bytes * 100 > continuable.size * Int64(percent) {
            objections.append("\(bytes) bytes \(what) of files that have \(continuable.size), and may be continued")
        }
        // Or they count nothing: less than all of it makes no file.
        if continuable.transmitted < continuable.size || continuable.read < continuable.size {
            objections.append(
                "\(continuable.transmitted) bytes sent, \(continuable.read) read, where there are \(continuable.size)")
        }
        if continuable.acknowledged * 10 < continuable.size * 8 {
            objections.append("only \(continuable.acknowledged) bytes acknowledged, where there are \(continuable.size)")
        }
        return objections
    }

    var text: String {
        var lines = ["                        files  right  wrong  lost  twice  again      MiB   read  acked   sent"]
        // Bytes that are counted otherwise for uploads have no sum.
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
