import EventLoop
import Foundation
import HTTPSessionTestKit
import NetworkLab
import Pacing

/// Downloads and uploads over links that flap, from a server that restarts, changes its files and lies, by a client that is killed.
///
/// `chaos [--seed N] [--downloads N] [--uploads N] [--mebibytes N] [--kills N] [--flaps MILLISECONDS] [--rate BYTES] [--ratio PERCENT]`;
/// the seed is printed, and the end is a table. What is wrong in it makes the exit code 1.
@main
struct Chaos {
    var seed = UInt64.random(in: 0 ... .max)
    var downloads = 20
    var uploads = 10
    var mebibytes = 4
    var kills = 8
    /// The longest time between two flaps.
    var flaps = 600
    /// Of each of the server's responses.
    var rate = 4_000_000
    /// The most that may be read of files that can be continued and do not change, in hundredths of their size.
    var ratio = 115

    static func main() async throws {
        let words = Array(CommandLine.arguments.dropFirst())
        if words.first == "client", words.count == 2 { return try await ChaosClient.run(words[1]) }
        var chaos = Chaos()
        for index in stride(from: 0, to: words.count - 1, by: 2) {
            guard let number = UInt64(words[index + 1]) else { usage() }
            switch words[index] {
            case "--seed": chaos.seed = number
            case "--downloads": chaos.downloads = Int(clamping: number)
            case "--uploads": chaos.uploads = Int(clamping: number)
            case "--mebibytes": chaos.mebibytes = max(1, Int(clamping: number))
            case "--kills": chaos.kills = Int(clamping: number)
            case "--flaps": chaos.flaps = max(60, Int(clamping: number))
            case "--rate": chaos.rate = max(10_000, Int(clamping: number))
            case "--ratio": chaos.ratio = Int(clamping: number)
            default: usage()
            }
        }
        if !words.count.isMultiple(of: 2) { usage() }
        exit(try await chaos.run() ? 0 : 1)
    }

    private static func usage() -> Never {
        print("usage: chaos [--seed|--downloads|--uploads|--mebibytes|--kills|--flaps|--rate|--ratio NUMBER]…")
        exit(64)
    }

    private func run() async throws -> Bool {
        print("chaos: seed \(seed)")
        let start = ContinuousClock.now
        var random = SplitMix64(seed: seed)
        let folder = try ScratchDirectory()
        let weather = try Weather()
        let files = try FaultyFiles(
            plan(&random), seed: random.next(), bytesPerSecond: rate, namespace: weather.site.path)
        let uploadServer = try uploadServer(seed: random.next(), namespace: weather.site.path)
        let manifest = try manifest(in: folder, files, uploadServer, &random)
        let seeds = (random.next(), random.next(), random.next())
        let blowing = Task { [flaps] in await weather.blow(seed: seeds.0, from: 50...flaps) }
        let restarting = Task { await restartNowAndThen(files, seed: seeds.1) }
        let killed = try await transfer(folder, weather, seed: seeds.2)
        blowing.cancel()
        restarting.cancel()
        let (weatherCounts, restarts) = (await blowing.value, await restarting.value)
        let table = try ChaosTable(manifest, files: files.files, uploads: uploadServer.uploads)
        print(
            "chaos: \(weatherCounts.flaps) flaps, \(weatherCounts.changes) changes of uplink, \(killed) kills, \(restarts) restarts of"
                + " the server, \((ContinuousClock.now - start).components.seconds) s")
        print(table.text)
        files.stop()
        uploadServer.stop()
        return table.isRight && table.ratio * 100 <= Double(ratio)
    }

    /// Files of 1 MiB and more; those that begin anew whenever a connection dies are small, or they would never end.
    private func plan(_ random: inout SplitMix64) -> [FaultyFiles.File] {
        let manners = FaultyFiles.Manner.allCases
        return (0..<downloads).map { number in
            let manner = manners[number % manners.count]
            let largest = manner.isContinuable || manner == .changing ? mebibytes << 20 : 1 << 20
            let size = Chaos.size(upTo: largest, &random)
            return FaultyFiles.File(number: number, manner: manner, sizes: [size])
        }
    }

    /// 1 MiB to `largest` bytes, as many of each power of two.
    private static func size(upTo largest: Int, _ random: inout SplitMix64) -> Int64 {
        Int64(exp2(Double.random(in: 20...max(20, log2(Double(largest))), using: &random)))
    }

    private func uploadServer(seed: UInt64, namespace: String) throws -> UploadServer {
        var options = UploadServer.Options()
        options.address = .ip("203.0.113.9", port: 0)
        options.namespace = namespace
        let draws = Locked(SplitMix64(seed: seed))
        return try UploadServer(.tus, options: options) { turn in
            let (draw, size) = draws.withLock { ($0.next() % 100, Int64($0.next() % 1_000_000)) }
            return switch draw {
            case 0..<10: .cut(afterBodyBytes: size, losing: size / 10)
            case 10..<14: .refuse(Reply(503).field("Retry-After", "0"))
            case 14..<17: .silence()
            default: nil
            }
        }
    }

    private func manifest(
        in folder: ScratchDirectory, _ files: FaultyFiles, _ server: UploadServer, _ random: inout SplitMix64
    ) throws -> Manifest {
        for name in ["files", "uploads"] {
            try FileManager.default.createDirectory(atPath: folder.file(name), withIntermediateDirectories: true)
        }
        let manifest = Manifest(
            downloads: files.files.map {
                .init(
                    url: "http://203.0.113.9:\(files.port)/file/\($0.number)", file: folder.file("files/\($0.number)"))
            },
            uploads: (0..<uploads).map {
                .init(
                    url: server.url.absoluteString, file: folder.file("uploads/\($0)"), number: $0,
                    size: Chaos.size(upTo: mebibytes << 20, &random))
            },
            log: folder.file("log"))
        for upload in manifest.uploads {
            try Data(Manifest.bytes(upload: upload)).write(to: URL(fileURLWithPath: upload.file))
        }
        try JSONEncoder().encode(manifest).write(to: URL(fileURLWithPath: folder.file("manifest")))
        return manifest
    }

    private func restartNowAndThen(_ files: FaultyFiles, seed: UInt64) async -> Int {
        var random = SplitMix64(seed: seed)
        var count = 0
        while (try? await Task.sleep(for: .milliseconds(Int.random(in: 2_000...8_000, using: &random)))) != nil {
            do {
                try await files.restart(after: .milliseconds(Int.random(in: 10...500, using: &random)))
                count += 1
            } catch {
                print("chaos: the server's restart: \(error)")
            }
        }
        return count
    }

    /// Runs the client until it ends by itself; it is killed so many times before. - Returns: how many times it was.
    private func transfer(_ folder: ScratchDirectory, _ weather: Weather, seed: UInt64) async throws -> Int {
        var random = SplitMix64(seed: seed)
        var killed = 0
        while true {
            let client = try Program(
                [CommandLine.arguments[0], "client", folder.file("manifest")], on: weather.client)
            if killed < kills {
                try await Task.sleep(for: .milliseconds(Int.random(in: 100...3_000, using: &random)))
                try? client.signal(SIGKILL)
                if try client.wait() == 128 + SIGKILL {
                    killed += 1
                    continue
                }
                return killed
            }
            let code = try client.wait(within: .seconds(1_800))
            if code != 0 { print("chaos: the client ended with \(code): \(client.standardError)") }
            return killed
        }
    }
}
