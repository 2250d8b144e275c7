import Console
import Expectations
import Foundation
import Glibc
import NetworkLab
import Testing

@testable import netwatch_transfer

/// The directory of reports that wait: names, limits, and faults of files and of the directory.
@Suite struct ReportSpoolTests {
    private let folder: ScratchDirectory
    private let service = (identity: "https://h", key: "0123456789abcdef")

    init() throws { folder = try ScratchDirectory() }

    private var path: String { folder.file("state/beat") }

    private func report(_ time: Int64, name: String = "a", body: String = "text") -> HeartbeatReport {
        HeartbeatReport(name: name, outcome: .fail, time: time, body: body)
    }

    private func mode(_ path: String) throws -> Int {
        try #require(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
    }

    private func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }

    private func failure(_ body: () throws(Failure) -> Void) -> Failure? {
        do throws(Failure) {
            try body()
            return nil
        } catch { return error }
    }

    // MARK: Names and limits

    @Test func `the name of a file has the report's heartbeat, service and time`() throws {
        let entry = SpooledReport(name: "a.b-C_9", service: service.key, time: 42, number: 0xABC)
        expectEqual(entry.file, "a.b-C_9~0123456789abcdef~00000000000000000042~0000000000000abc.json")
        expectEqual(SpooledReport(file: entry.file), entry)
        expectEqual(SpooledReport(file: entry.file + ".damaged"), entry)
    }

    @Test(arguments: [
        "", ".json", "a.json", "a~b~1~2.json", "a~b~00000000000000000042~0000000000000abc",
        "a~b~00000000000000000042~0000000000000ABC.json",
        "a~b~-0000000000000000042~0000000000000abc.json", "a~b~0000000000000000042~0000000000000abc.json",
        "~b~00000000000000000042~0000000000000abc.json", "a~b~c~00000000000000000042~0000000000000abc.json",
        "a~b~99999999999999999999~0000000000000abc.json", "a~b.lock",
    ])
    func `another name of a file is no report`(file: String) {
        expectNil(SpooledReport(file: file))
    }

    private func entry(_ time: Int64, name: String = "a", bytes: Int = 100, isDamaged: Bool = false) -> SpoolLimits.Entry {
        .init(
            report: SpooledReport(name: name, service: service.key, time: time, number: UInt64(time)), isDamaged: isDamaged,
            bytes: bytes)
    }

    @Test func `beyond 100 reports of a heartbeat the oldest are removed`() {
        let entries = (1...103).map { entry($0) } + [entry(0, name: "b")]
        let surplus = SpoolLimits.surplus(entries.shuffled(), keeping: entry(103).report)
        expectEqual(surplus.map(\.report.time), [1, 2, 3])
    }

    @Test func `beyond 1 MiB the oldest reports of all heartbeats are removed`() {
        let entries = (1...5).map { entry($0, name: $0 % 2 == 0 ? "a" : "b", bytes: 300_000, isDamaged: $0 == 2) }
        expectEqual(SpoolLimits.surplus(entries, keeping: entry(5, name: "b").report).map(\.report.time), [1, 2])
        expectEmpty(SpoolLimits.surplus(Array(entries.suffix(3)), keeping: entry(5, name: "b").report))
    }

    @Test func `the newest report is kept although a wrong clock has made it the oldest`() {
        let entries = (0...100).map { entry($0) }
        expectEqual(SpoolLimits.surplus(entries, keeping: entry(0).report).map(\.report.time), [1])
    }

    // MARK: Reports

    @Test func `reports wait in the order of their times, for their service and heartbeat alone`() throws {
        let spool = try ReportSpool(path)
        for (number, time) in [30, 10, 20].enumerated() {
            _ = try spool.store(report(Int64(time)), for: service, number: UInt64(number)) { Issue.record("\($0)") }
        }
        _ = try spool.store(report(5, name: "b"), for: service, number: 8) { Issue.record("\($0)") }
        _ = try spool.store(report(6), for: ("other", "fedcba9876543210"), number: 9) { Issue.record("\($0)") }
        let waiting = spool.waiting("a", service.key)
        expectEqual(waiting.map(\.time), [10, 20, 30])
        expectEqual(spool.read(waiting[0]) { Issue.record("\($0)") }, report(10))
        expectEqual(spool.remove(waiting[0]), 0)
        expectEqual(spool.remove(waiting[0]), 0)
        expectNil(spool.read(waiting[0]) { Issue.record("\($0)") })
        expectEqual(spool.waiting("a", service.key).map(\.time), [20, 30])
        expectEqual(spool.waiting("b", service.key).count, 1)
    }

    @Test func `only the owner can read the directory and its files`() throws {
        let spool = try ReportSpool(path)
        let entry = try spool.store(report(1), for: service, number: 1) { Issue.record("\($0)") }
        let lock = try spool.lock("a", service.key)
        try expectEqual(mode(path), 0o700)
        try expectEqual(mode("\(path)/\(entry.file)"), 0o600)
        try expectEqual(names(), ["a~\(service.key).lock", entry.file].sorted())
        try expectEqual(mode("\(path)/a~\(service.key).lock"), 0o600)
        withExtendedLifetime(lock) {}
    }

    @Test func `the 101st report replaces the oldest one with a line`() throws {
        let spool = try ReportSpool(path)
        var lines: [String] = []
        for time in 1...101 { _ = try spool.store(report(Int64(time)), for: service, number: 1) { lines.append($0) } }
        expectEqual(spool.waiting("a", service.key).map(\.time), (2...101).map { $0 })
        expectEqual(
            lines, ["the oldest waiting report was removed: at most 100 of a heartbeat, and 1 MiB of all, wait in \(path)"])
    }

    @Test func `a text with control characters is stored within the limits`() throws {
        let spool = try ReportSpool(path)
        let body = String(repeating: "\u{1}", count: OutputTail.limit)
        let entry = try spool.store(report(1, body: body), for: service, number: 1) { Issue.record("\($0)") }
        expectEqual(spool.read(entry) { Issue.record("\($0)") }?.body, body)
    }

    // MARK: Faults of files

    @Test(arguments: [
        "", "{", "null", #"{"v":2,"service":"s","report":{"name":"a","time":7,"body":""}}"#,
        #"{"v":1,"service":"s","report":{"name":"b","time":7,"body":""}}"#,
        #"{"v":1,"service":"s","report":{"name":"a","time":8,"body":""}}"#, String(repeating: "x", count: 200_000),
    ])
    func `a damaged file is set aside with one line, and the others are still read`(content: String) throws {
        let spool = try ReportSpool(path)
        let entry = SpooledReport(name: "a", service: service.key, time: 7, number: 7)
        try Data(content.utf8).write(to: URL(fileURLWithPath: "\(path)/\(entry.file)"))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: "\(path)/\(entry.file)")
        let good = try spool.store(report(9), for: service, number: 9) { Issue.record("\($0)") }
        var lines: [String] = []
        expectEqual(spool.waiting("a", service.key), [entry, good])
        expectNil(spool.read(entry) { lines.append($0) })
        expectEqual(
            lines, ["'\(path)/\(entry.file)' is damaged, and set aside as \(entry.file).damaged: it has no report"])
        expectEqual(spool.waiting("a", service.key), [good])
        try expectEqual(names(), ["\(entry.file).damaged", good.file].sorted())
    }

    enum Plant: CaseIterable { case hardLink, symbolicLink, othersWritable, fifo }

    @Test(arguments: Plant.allCases) func `a planted file is neither read nor followed`(_ plant: Plant) throws {
        let spool = try ReportSpool(path)
        let entry = try spool.store(report(1), for: service, number: 1) { Issue.record("\($0)") }
        let file = "\(path)/\(entry.file)"
        let files = FileManager.default
        switch plant {
        case .hardLink: try files.linkItem(atPath: file, toPath: folder.file("link"))
        case .symbolicLink:
            try files.moveItem(atPath: file, toPath: folder.file("victim"))
            try files.createSymbolicLink(atPath: file, withDestinationPath: folder.file("victim"))
        case .othersWritable: try files.setAttributes([.posixPermissions: 0o606], ofItemAtPath: file)
        case .fifo:
            try files.removeItem(atPath: file)
            try #require(mkfifo(file, 0o600) == 0)
        }
        var lines: [String] = []
        expectNil(spool.read(entry) { lines.append($0) })
        #expect(lines.count == 1 && lines[0].contains("set aside"), "\(lines)")
        expectEmpty(spool.waiting("a", service.key))
        if plant == .symbolicLink { #expect(files.fileExists(atPath: folder.file("victim"))) }
    }

    @Test func `a file that a killed run has not finished is removed after an hour`() throws {
        let spool = try ReportSpool(path)
        for name in [".new-1", ".new-2"] { try Data("{".utf8).write(to: URL(fileURLWithPath: "\(path)/\(name)")) }
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -4_000)], ofItemAtPath: "\(path)/.new-1")
        expectEmpty(spool.waiting("a", service.key))
        try expectEqual(names(), [".new-2"])
    }

    // MARK: Faults of the directory

    @Test(arguments: ["", "/"]) func `a symbolic link as the directory is refused`(suffix: String) throws {
        try FileManager.default.createDirectory(atPath: folder.file("target"), withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(atPath: folder.file("link"), withDestinationPath: folder.file("target"))
        let failure = failure { () throws(Failure) in _ = try ReportSpool(folder.file("link") + suffix) }
        expectEqual(
            failure?.message, "'\(folder.file("link"))' is not used: it is a symbolic link; name the directory itself")
        expectEqual(failure?.code, ExitCode.notPermitted)
    }

    @Test func `a symbolic link above the directory is followed`() throws {
        try FileManager.default.createDirectory(atPath: folder.file("home"), withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(atPath: folder.file("link"), withDestinationPath: folder.file("home"))
        let spool = try ReportSpool(folder.file("link/a/beat"))
        _ = try spool.store(report(1), for: service, number: 1) { Issue.record("\($0)") }
        #expect(FileManager.default.fileExists(atPath: folder.file("home/a/beat")))
    }

    @Test func `a directory that others can write to is refused`() throws {
        try FileManager.default.createDirectory(atPath: folder.file("open"), withIntermediateDirectories: false)
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder.file("open"))
        let failure = failure { () throws(Failure) in _ = try ReportSpool(folder.file("open")) }
        #expect(failure?.code == ExitCode.notPermitted && failure?.message.contains("other users may write to it") == true)
    }

    @Test(.requiresOtherUsers) func `a directory of another user is refused`() throws {
        try FileManager.default.createDirectory(atPath: folder.file("foreign"), withIntermediateDirectories: false)
        try #require(chown(folder.file("foreign"), 1, 1) == 0)
        let failure = failure { () throws(Failure) in _ = try ReportSpool(folder.file("foreign")) }
        #expect(failure?.code == ExitCode.notPermitted && failure?.message.contains("it belongs to user 1") == true)
    }

    @Test func `a file in the place of the directory is an error`() throws {
        try Data().write(to: URL(fileURLWithPath: folder.file("file")))
        for path in [folder.file("file"), folder.file("file/beat")] {
            let failure = failure { () throws(Failure) in _ = try ReportSpool(path) }
            #expect(failure?.code == ExitCode.cannotCreate && failure?.message.hasPrefix("'\(path)' cannot be") == true)
        }
    }

    // MARK: The lock

    @Test func `one run at a time has the lock of a heartbeat and a service`() throws {
        let (one, other) = (try ReportSpool(path), try ReportSpool(path))
        var lock = try one.lock("a", service.key)
        #expect(lock != nil)
        try #expect(other.lock("a", service.key) == nil)
        try #expect(other.lock("b", service.key) != nil)
        try #expect(other.lock("a", "fedcba9876543210") != nil)
        lock = nil
        try #expect(other.lock("a", service.key) != nil)
    }

    @Test func `a planted lock file is not used`() throws {
        let spool = try ReportSpool(path)
        try FileManager.default.createSymbolicLink(
            atPath: "\(path)/a~\(service.key).lock", withDestinationPath: folder.file("victim"))
        #expect(failure { () throws(Failure) in _ = try spool.lock("a", service.key) } != nil)
        #expect(!FileManager.default.fileExists(atPath: folder.file("victim")))
    }
}
