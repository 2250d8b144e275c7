import Foundation
import HTTPSessionTestKit

/// What became of every transfer: of a file, whether it is one version of those that the server has had; of an upload, whether the server
/// has it; of both, how many bytes it took.
struct ChaosTable {
    struct Row {
        var count = 0
        var right = 0
        /// Called done, and of no version.
        var wrong = 0
        /// Not called done.
        var lost = 0
        /// Called done more than once.
        var twice = 0
        var size: Int64 = 0
        var bytes: Int64 = 0

        static func + (one: Row, other: Row) -> Row {
            Row(
                count: one.count + other.count, right: one.right + other.right, wrong: one.wrong + other.wrong,
                lost: one.lost + other.lost, twice: one.twice + other.twice, size: one.size + other.size,
                bytes: one.bytes + other.bytes)
        }
    }

    /// How much of a response may not be in the file yet when the client is killed: what counts as read again.
    static let unwritten: Int64 = 128 << 10

    private(set) var rows: [(name: String, row: Row)] = []
    private var done: [String: Int] = [:]
    private var bytes: [String: Int64] = [:]
    private(set) var failures: [String] = []

    init(_ manifest: Manifest, files: [FaultyFiles.File], uploads: [UploadServer.Upload]) throws {
        let sizes = Dictionary(uniqueKeysWithValues: files.map { ("d\($0.number)", $0.sizes.last ?? 0) })
        try read(manifest.log, sizes)
        for manner in FaultyFiles.Manner.allCases {
            let row = files.filter { $0.manner == manner }.map { file in
                judge(
                    "d\(file.number)", size: file.sizes.last ?? 0,
                    isRight: ChaosTable.isVersion(file, manifest.downloads[file.number].file))
            }.reduce(Row(), +)
            rows.append(("downloads, \(manner)", row))
        }
        let contents = Set(uploads.filter { $0.length == Int64($0.bytes.count) }.map(\.bytes))
        let row = manifest.uploads.map { upload in
            judge("u\(upload.number)", size: upload.size, isRight: contents.contains(Manifest.bytes(upload: upload)))
        }.reduce(Row(), +)
        rows.append(("uploads, tus", row))
    }

    private func judge(_ name: String, size: Int64, isRight: Bool) -> Row {
        let count = done[name] ?? 0
        return Row(
            count: 1, right: count > 0 && isRight ? 1 : 0, wrong: count > 0 && !isRight ? 1 : 0, lost: count == 0 ? 1 : 0,
            twice: count > 1 ? 1 : 0, size: size, bytes: bytes[name] ?? 0)
    }

    private static func isVersion(_ file: FaultyFiles.File, _ path: String) -> Bool {
        guard let data = try? Data(contentsOf: URL(fileURLWithPath: path)) else { return false }
        return file.sizes.indices.contains { version in
            data.count == Int(file.sizes[version])
                && data.elementsEqual(Manifest.bytes(file: file.number, version: version, size: file.sizes[version]))
        }
    }

    /// Adds up what was read. What a killed client had under way is what the next one found of it, and what had not been written.
    private mutating func read(_ path: String, _ sizes: [String: Int64]) throws {
        var open: [String: Int64] = [:]
        // What was open when the client was killed.
        var left: [String: Int64] = [:]
        for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count >= 2 else {
                left.merge(open) { $1 }
                open = [:]
                continue
            }
            let name = String(words[1])
            switch (words[0], words.count > 2 ? Int64(words[2]) : nil) {
            case ("done", _):
                done[name, default: 0] += 1
                // Nothing had to be read of it any more.
                if let before = left.removeValue(forKey: name) {
                    bytes[name, default: 0] += max(0, (sizes[name] ?? 0) - before) + ChaosTable.unwritten
                }
            case ("failed", _): failures.append(String(line))
            case ("open", let offset?):
                if let before = left.removeValue(forKey: name) {
                    bytes[name, default: 0] += max(0, offset - before) + ChaosTable.unwritten
                }
                open[name] = offset
            case ("read", let count?):
                bytes[name, default: 0] += count
                open[name] = nil
            default: break
            }
        }
    }

    /// Of those that the server lets go on, and that have not changed.
    var ratio: Double {
        let row = rows.prefix(FaultyFiles.Manner.slow.rawValue + 1).map(\.row).reduce(Row(), +)
        return row.size == 0 ? 1 : Double(row.bytes) / Double(row.size)
    }

    var isRight: Bool {
        let all = rows.map(\.row).reduce(Row(), +)
        return all.right == all.count && all.twice == 0
    }

    var text: String {
        var lines = ["                        files  right  wrong  lost  twice      MiB  read/size"]
        for (name, row) in rows + [("all", rows.map(\.row).reduce(Row(), +))] {
            let numbers = [row.count, row.right, row.wrong, row.lost, row.twice].map { String($0) }
            let share = row.size > 0 && row.bytes > 0 ? String(format: "%.2f", Double(row.bytes) / Double(row.size)) : "-"
            lines.append(
                name.padding(toLength: 24, withPad: " ", startingAt: 0)
                    + zip(numbers, [5, 7, 7, 6, 7]).map { padded($0, $1) }.joined()
                    + padded(String(format: "%.1f", Double(row.size) / 1_048_576), 9) + padded(share, 11))
        }
        lines.append(String(format: "of files that can be continued and have not changed, %.3f times the size was read", ratio))
        return (lines + failures).joined(separator: "\n")
    }

    private func padded(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
