import Foundation
import HTTPSessionTestKit
import NetworkLab
import Pacing

/// The chaos test: a client that is repeatedly killed transfers files over links that flap. Its servers restart, change their
/// files and send wrong ranges.
///
/// `laboratory chaos [--OPTION NUMBER]…`, see ``options``. It prints the seed, and at the end a table. The exit code is 1 if a transfer is
/// wrong, or if there were fewer flaps and kills than requested.
struct Chaos {
    var seed = UInt64.random(in: 0 ... .max)
    var downloads = 22
    var uploads = 12
    var mebibytes = 4
    var kills = 8
    /// The minimum number of flaps of the link in use.
    var flaps = 10
    /// The longest time between two flaps in milliseconds.
    var pause = 600
    /// The longest life of a client before it is killed, in milliseconds.
    var life = 3_000
    /// The rate of each response and of each request's body in bytes per second.
    var rate = 1_000_000
    /// The maximum bytes that may be read of files that can be continued and do not change, in percent of their size.
    var ratio = 115

    private static let options: [String: @Sendable (inout Chaos, Int) -> Void] = [
        "--downloads": { $0.downloads = $1 },
        "--uploads": { $0.uploads = $1 },
        // The size of the largest file; the smallest has 1 MiB.
        "--mebibytes": { $0.mebibytes = max(1, min($1, 100)) },
        "--kills": { $0.kills = $1 },
        "--flaps": { $0.flaps = $1 },
        // In milliseconds.
        "--pause": { $0.pause = max(60, $1) },
        "--life": { $0.life = max(200, $1) },
        // In bytes per second.
        "--rate": { $0.rate = max(10_000, $1) },
        // In percent.
        "--ratio": { $0.ratio = $1 },
    ]

    static func main(_ words: [String]) async throws {
        if words.first == "client", words.count >= 2 {
            return try await ChaosClient.run(words[1], lastEvent: words.count > 2 ? Int(words[2]) : nil)
        }
        var chaos = Chaos()
        for index in stride(from: 0, to: words.count - 1, by: 2) {
            guard let number = UInt64(words[index + 1]) else { usage() }
            if words[index] == "--seed" {
                chaos.seed = number
            } else {
                guard let option = options[words[index]] else { usage() }
                option(&chaos, Int(clamping: number))
            }
        }
        if !words.count.isMultiple(of: 2) { usage() }
        exit(try await chaos.run() ? 0 : 1)
    }

    private static func usage() -> Never {
        print("usage: laboratory chaos [--seed|\(options.keys.sorted().joined(separator: "|")) NUMBER]…")
        exit(64)
    }

    private func run() async throws -> Bool {
        print("chaos: seed \(seed)")
        fflush(nil)
        let start = ContinuousClock.now
        var random = SplitMix64(seed: seed)
        let folder = try ScratchDirectory()
        for name in ["files", "uploads", "server", "journal"] {
            try FileManager.default.createDirectory(atPath: folder.file(name), withIntermediateDirectories: true)
        }
        let links = try FlappingUplinks()
        let files = try FaultyFiles(
            plan(&random), seed: random.next(), bytesPerSecond: rate, namespace: links.site.path)
        let uploads = try FaultyUploads(
            in: folder.file("server"), seed: random.next(), bytesPerSecond: rate, namespace: links.site.path)
        let manifest = try manifest(in: folder, files, uploads, &random)
        let seeds = (0..<4).map { _ in random.next() }
        let faults = [
            Task { await links.flap(seed: seeds[0], from: 50...pause) },
            Task { await restart("files", seed: seeds[1], files.restart) },
            Task { await restart("uploads", seed: seeds[2], uploads.restart) },
        ]
        let killed = try await transfer(folder, links, seed: seeds[3])
        let past = links.past
        for task in faults { task.cancel() }
        for task in faults { await task.value }
        files.stop()
        let table = try ChaosTable(manifest, files: files.files, uploads: uploads.result(manifest.uploads))
        print(
            "chaos: \(past.flaps) link flaps, \(past.hits) of the link in use; \(past.changes) changes of the uplink;"
                + " \(killed) kills; \(files.restarts) restarts of the file server, \(uploads.restarts.count) of the upload server,"
                + " \(uploads.restarts.duringUploads) of them during uploads; \((ContinuousClock.now - start).components.seconds) s"
        )
        print(table.text)
        var problems = table.problems(percent: ratio)
        for (name, count, requested) in [
            ("flaps of the link in use", past.hits, flaps), ("kills", killed, kills), ("lives", table.lives, kills),
            ("restarts of the file server", files.restarts, 1),
            ("restarts during uploads", uploads.restarts.duringUploads, self.uploads > 0 ? 1 : 0),
        ] where count < requested {
            problems.append("only \(count) \(name), but \(requested) were requested")
        }
        for problem in problems { print("chaos: WRONG: \(problem)") }
        return problems.isEmpty
    }

    // MARK: Files

    private func plan(_ random: inout SplitMix64) -> [FaultyFiles.File] {
        let behaviors = FaultyFiles.Behavior.allCases
        return (0..<downloads).map { number in
            FaultyFiles.File(number: number, behavior: behaviors[number % behaviors.count], sizes: [size(&random)])
        }
    }

    /// Returns a size from 1 MiB to the largest, evenly distributed over the powers of two.
    private func size(_ random: inout SplitMix64) -> Int64 {
        Int64(exp2(Double.random(in: 20...(20 + log2(Double(mebibytes))), using: &random)))
    }

    /// Writes the manifest. Every other download of each behavior, and every other upload, is durable.
    private func manifest(
        in folder: ScratchDirectory, _ files: FaultyFiles, _ uploads: FaultyUploads, _ random: inout SplitMix64
    ) throws -> Manifest {
        let behaviors = FaultyFiles.Behavior.allCases.count
        let manifest = Manifest(
            downloads: files.files.map {
                .init(
                    url: "http://203.0.113.9:\(files.port)/file/\($0.number)", file: folder.file("files/\($0.number)"),
                    number: $0.number, isDurable: ($0.number % behaviors + $0.number / behaviors) % 2 == 0)
            },
            uploads: (0..<self.uploads).map {
                .init(
                    url: uploads.url, file: folder.file("uploads/\($0)"), number: $0, size: size(&random), isDurable: $0 % 2 == 0)
            },
            log: folder.file("log"), journal: folder.file("journal"))
        for upload in manifest.uploads {
            try Manifest.bytes(upload: upload).write(to: URL(fileURLWithPath: upload.file))
        }
        try JSONEncoder().encode(manifest).write(to: URL(fileURLWithPath: folder.file("manifest")))
        return manifest
    }

    // MARK: Faults

    private func restart(_ name: String, seed: UInt64, _ body: (Duration) async throws -> Void) async {
        var random = SplitMix64(seed: seed)
        while (try? await Task.sleep(for: .milliseconds(Int.random(in: 2_000...8_000, using: &random)))) != nil {
            do {
                try await body(.milliseconds(Int.random(in: 10...500, using: &random)))
            } catch {
                print("chaos: restart of the server of \(name): \(error)")
            }
        }
    }

    /// Runs the client again and again, kills it ``kills`` times, and then lets it finish. - Returns: The number of kills.
    private func transfer(_ folder: ScratchDirectory, _ links: FlappingUplinks, seed: UInt64) async throws -> Int {
        var random = SplitMix64(seed: seed)
        var killed = 0
        while true {
            var command = [CommandLine.arguments[0], "chaos", "client", folder.file("manifest")]
            let isLast = killed >= kills
            let moment = Int.random(in: 100...life, using: &random)
            // Some clients kill themselves between the handling of an event and its acknowledgement, if an event arrives before
            // the kill.
            if !isLast, Int.random(in: 0..<4, using: &random) == 0 { command.append("\(Int.random(in: 1...2, using: &random))") }
            let client = try Program(command, on: links.client)
            if !isLast {
                try await Task.sleep(for: .milliseconds(moment))
                try? client.signal(SIGKILL)
            }
            let code = try client.wait(within: .seconds(1_800))
            if !isLast, code == 128 + SIGKILL {
                killed += 1
                continue
            }
            if code != 0 { print("chaos: the client ended with \(code): \(client.standardError)") }
            return killed
        }
    }
}
