import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import NetworkLab
import Pacing
import Testing
import TestServers

@testable import HTTPSessionJournal

/// An element of the manifest of `durable-client`.
private struct Job: Codable {
    var url: URL
    var file: String
    var isUpload: Bool
}

@Suite(.timeLimit(.minutes(20))) struct KillTests {
    private let folder: ScratchDirectory

    init() throws { folder = try ScratchDirectory() }

    private func bytes(_ number: Int, _ count: Int) -> Data {
        Data(StubBody.patternBytes(from: Int64(number) << 30, count: count))
    }

    @Test func `a program that is killed at random moments loses no task and no event`() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("durable sessions: seed \(seed)")
        var random = SplitMix64(seed: seed)
        let sizes = (0..<16).map { _ in Int.random(in: 1...600_000, using: &random) }
        let server = try TestServer { request in
            let number = Int(request.path.dropFirst()) ?? 0
            let start = request["range"].flatMap { Int64($0.dropFirst("bytes=".count).dropLast()) } ?? 0
            let count = Int64(sizes[number]) - start
            var reply = StubResponse(
                start > 0 ? 206 : 200, body: StubBody([.pattern(from: Int64(number) << 30 + start, count: count)])
            ).field("ETag", "\"\(number)\"").slow(bytesPerSecond: 400_000)
            if start > 0 { reply = reply.field("Content-Range", "bytes \(start)-\(sizes[number] - 1)/\(sizes[number])") }
            return reply
        }
        let uploads = try UploadServer(.tus) { turn in turn.number % 3 == 0 ? .cut(afterBodyBytes: 100_000) : nil }
        let jobs = sizes.indices.map { number -> Job in
            let isUpload = number % 4 == 3
            return Job(
                url: isUpload ? uploads.url : server.url("/\(number)"), file: folder.file("\(number)"), isUpload: isUpload)
        }
        for (number, job) in jobs.enumerated() where job.isUpload {
            try bytes(number, sizes[number]).write(to: URL(fileURLWithPath: job.file))
        }
        try JSONEncoder().encode(jobs).write(to: folder.url("manifest"))
        let files = ["state", "manifest", "log"].map(folder.file)
        let command = [try Programs.built("laboratory"), "durable-client"] + files
        var kills = 0
        while kills < 30 {
            // timeout(1) kills on time; this thread would be late while many tests run.
            let moment = Double(Int.random(in: 5...400, using: &random)) / 1_000
            let client = try Program(["timeout", "--signal=KILL", "\(moment)"] + command)
            // timeout(1) does not wait for the killed process, which may still hold the lock.
            if try client.wait() != 128 + SIGKILL, !"\(client.ending)".contains("in-use") { break }
            kills += 1
        }
        var last = try Program(command)
        while try last.wait(within: .seconds(300)) != 0, "\(last.ending)".contains("in-use") { last = try Program(command) }
        try expectEqual(last.wait(within: .seconds(300)), 0, "\(last.ending)")
        print("durable sessions: \(kills) kills, \(server.seen.requestCount + uploads.requests.count) requests")

        let lines = try String(contentsOfFile: folder.file("log"), encoding: .utf8).split(separator: "\n")
        var identifiers: [Substring: Set<Substring>] = [:]
        for line in lines {
            let words = line.split(separator: " ", maxSplits: 3)
            switch words[0] {
            case "event":
                identifiers[words[1], default: []].insert(words[2])
                expectEqual(words[3], "finished", "\(line)")
            case "made": identifiers[words[1], default: []].insert(words[2])
            default: #expect(["start", "finished-earlier", "end"].contains(line), "\(line)")
            }
        }
        let events = Set(lines.filter { $0.hasPrefix("event ") }.map { $0.split(separator: " ")[1] })
        expectEqual(events.count, jobs.count)
        #expect(identifiers.values.allSatisfy { $0.count == 1 }, "\(identifiers)")
        #expect(kills > 3)
        let sent = Set(uploads.uploads.filter { $0.length == Int64($0.bytes.count) }.map { Data($0.bytes) })
        for (number, job) in jobs.enumerated() {
            let expected = bytes(number, sizes[number])
            if job.isUpload {
                #expect(sent.contains(expected), "\(number)")
            } else {
                try expectEqual(Data(contentsOf: URL(fileURLWithPath: job.file)), expected, "\(number)")
            }
        }
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix(".") }, [])
    }

    @Test func `a second process fails with the identifier of the first until the first is killed`() async throws {
        let first = try Program([try Programs.built("laboratory"), "durable-client", folder.file("state")])
        try expectEqual(first.nextLine(), "open")
        let second = try Program([try Programs.built("laboratory"), "durable-client", folder.file("state")])
        let line = try #require(try second.nextLine())
        #expect(line.hasPrefix("in-use: process \(first.processID) has the durable session 'killed' open"))
        try expectEqual(second.wait(), 0, "\(second.ending)")
        try first.signal(SIGKILL)
        _ = try first.wait()
        let third = try Program([try Programs.built("laboratory"), "durable-client", folder.file("state")])
        try expectEqual(third.nextLine(), "open")
    }

    @Test(arguments: [0, 1])
    func `events that a killed process has not acknowledged are delivered to the next process`(
        _ remainder: Int
    ) async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        // A number that 3 divides has no handler: the sequence delivers its event.
        let jobs = (0..<6).map { Job(url: server.url("/\($0)"), file: folder.file("\($0)"), isUpload: false) }
        try JSONEncoder().encode(jobs).write(to: folder.url("manifest"))
        let files = ["state", "manifest", "log"].map(folder.file)
        let command = [try Programs.built("laboratory"), "durable-client"] + files
        let numbers = (0..<6).filter { ($0 % 3 == 0) == (remainder == 0) }.map { "\($0)" }
        var deliveries: [[String]] = []
        for _ in 0..<2 {
            let client = try Program(command + ["unacknowledged"])
            deliveries.append(
                try numbers.indices.map { _ in
                    try client.nextLine { line in numbers.contains { line.hasPrefix("event \($0) ") } }
                })
            try client.signal(SIGKILL)
            _ = try client.wait()
        }
        #expect(Set(deliveries[0]) == Set(deliveries[1]) && Set(deliveries[0]).count == numbers.count)
        #expect(deliveries.joined().allSatisfy { $0.hasSuffix(" finished") })
        let last = try Program(command)
        try expectEqual(last.wait(within: .seconds(300)), 0, "\(last.ending)")
    }
}
