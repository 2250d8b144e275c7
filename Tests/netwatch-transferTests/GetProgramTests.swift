import CLinux
import EventLoop
import Foundation
import Glibc
import HTTPSessionTestKit
import NetworkLab
import Pacing
import Testing

@testable import HTTPSession

/// The built program, as a shell starts it: `netwatch get`, which becomes the program that transfers.
@Suite(.serialized, .timeLimit(.minutes(20))) struct GetProgramTests {
    private let folder: ScratchDirectory

    init() throws { folder = try ScratchDirectory() }

    private func get(
        _ arguments: String..., environment: [String: String?] = [:], output: Program.Output = .pipe,
        errors: Program.Errors = .file
    ) throws -> Program {
        var variables: [String: String?] = ["http_proxy": nil, "https_proxy": nil, "all_proxy": nil]
        variables.merge(environment) { $1 }
        return try Program(
            [try Programs.netwatch, "get"] + arguments, environment: variables, directory: folder.path, output: output,
            errors: errors)
    }

    private func content(_ name: String) -> Data? { try? Data(contentsOf: URL(fileURLWithPath: folder.file(name))) }

    private var names: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).sorted()
    }

    // MARK: Whole files

    @Test func aFileIsNamedAsTheURLEnds() async throws {
        let source = try FileSource(size: 100_000)
        let program = try get("\(source.url)?version=2")
        #expect(try program.wait() == 0)
        #expect(content("big.bin") == source.whole)
        let lines = program.standardError.split(separator: "\n")
        #expect(lines.first == "big.bin: from \(source.url)?version=2")
        #expect(lines.last?.hasPrefix("big.bin: 97.6 KiB in ") == true)
        #expect(lines.count == 2)
        #expect(try program.remainingLines() == [])
        #expect(source.server.requests.first?["user-agent"] == "netwatch/0.1.0")
    }

    @Test func severalURLsGoToADirectoryThatIsMade() throws {
        let source = try FileSource(size: 5_000)
        let program = try get(
            "-q", "-d", "a/b", "--parallel", "2", source.url, source.server.origin + "/two", source.server.origin + "/")
        #expect(try program.wait() == 0)
        #expect(program.standardError == "")
        for name in ["big.bin", "two", "index.html"] { #expect(content("a/b/\(name)") == source.whole) }
    }

    @Test func oneOfSeveralFails() throws {
        let source = try FileSource(size: 5_000)
        let program = try get("-q", source.url, source.server.origin + "/missing")
        #expect(try program.wait() == 1)
        #expect(program.standardError == "netwatch: \(source.server.origin)/missing: the server answered 404 Not Found\n")
        #expect(content("big.bin") == source.whole)
    }

    @Test func noMoreThanAskedForAtATime() async throws {
        let gate = try Gate()
        let server = try MisbehavingServer { _ in Reply(body: "x").held(by: gate) }
        let program = try get("--json", "--parallel", "2", server.origin + "/a", server.origin + "/b", server.origin + "/c")
        let first = try await server.awaitRequests(2)
        #expect(Set(first.map(\.path)) == ["/a", "/b"])
        gate.open()
        let records = try program.remainingLines().map(TransferLine.init)
        #expect(try program.wait() == 0)
        #expect(records.prefix(3).map(\.state) == ["waiting", "waiting", "waiting"])
        #expect(records.count { $0.state == "finished" } == 3)
        #expect(records.map(\.seq) == Array(0..<records.count))
    }

    @Test func aTransferIsToldInRecords() throws {
        let source = try FileSource(size: 2_000_000)
        source.change { $0.bytesPerSecond = 2_000_000 }
        let program = try get("--json", source.url)
        let records = try program.remainingLines().map(TransferLine.init)
        #expect(try program.wait() == 0)
        #expect(program.standardError == "")
        let last = try #require(records.last)
        #expect((last.state, last.received, last.total, last.attempt) == ("finished", 2_000_000, 2_000_000, 1))
        #expect(records.allSatisfy { $0.url == source.url })
        // The beginning, the end, and twice a second between: loaded machines take longer.
        #expect(records.count >= 4)
    }

    @Test func theRateIsLimited() throws {
        let source = try FileSource(size: 300_000)
        let start = ContinuousClock.now
        #expect(try get("-q", "--limit-rate", "100k", source.url).wait() == 0)
        #expect(start.duration(to: .now) > .seconds(1))
        #expect(content("big.bin") == source.whole)
    }

    @Test func anExistingFileIsReplacedByAWholeOneOnly() async throws {
        try "old".write(toFile: folder.file("big.bin"), atomically: true, encoding: .utf8)
        let source = try FileSource(size: 1_000_000)
        source.change { $0.stopsAt = 400_000 }
        let program = try get(source.url)
        try await source.server.awaitSeen { $0.sentBodyBytes >= 400_000 }
        #expect(content("big.bin") == Data("old".utf8))
        try program.signal(SIGTERM)
        #expect(try program.wait() == 128 + SIGTERM)
        #expect(content("big.bin") == Data("old".utf8))
        source.change { $0.stopsAt = nil }
        #expect(try get("-q", source.url).wait() == 0)
        #expect(content("big.bin") == source.whole)
    }

    // MARK: What is continued

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP]) func aSignalKeepsThePartAndSaysHowToGoOn(number: Int32) async throws {
        let source = try FileSource(size: 1_000_000)
        source.change { $0.stopsAt = 600_000 }
        let program = try get(source.url, environment: ["TERM": "dumb"], output: .terminal, errors: .output)
        _ = try program.nextLine { $0.contains("big.bin: from ") }
        try await source.server.awaitSeen { $0.sentBodyBytes >= 600_000 }
        try await awaitPart(of: 600_000)
        try program.signal(number)
        let line = try program.nextLine { $0.contains("stopped") }
        #expect(line == "netwatch: get: stopped: 60 % (585.9 KiB) of big.bin is kept; run the same command again to continue\r")
        #expect(try program.wait() == 128 + number)
        #expect(names == ["big.bin.netwatch-part", "big.bin.netwatch-part.json"])

        source.change { $0.stopsAt = nil }
        let again = try get(source.url)
        #expect(try again.wait() == 0)
        #expect(again.standardError.contains("big.bin: continued at 60 % (585.9 KiB of 976.5 KiB)\n"))
        #expect(content("big.bin") == source.whole)
        #expect(names == ["big.bin"])
        #expect(source.server.requests.last?["range"] == "bytes=600000-")
    }

    /// What has been received lies in memory until the next 128 KiB are there: what the server has sent may not be in the file.
    private func awaitPart(of size: Int64) async throws {
        let end = ContinuousClock.now + .seconds(20)
        // The last piece comes with the end only.
        while ContinuousClock.now < end, (content("big.bin.netwatch-part")?.count ?? 0) < Int(size) - (128 << 10) {
            await Task.yield()
        }
    }

    @Test func onRequestItBeginsAnew() async throws {
        let source = try FileSource(size: 1_000_000)
        try await leavePart(source)
        #expect(try get("-q", "--no-continue", source.url).wait() == 0)
        #expect(content("big.bin") == source.whole)
        #expect(source.server.requests.last?["range"] == nil)
    }

    /// Leaves a part of 400,000 bytes.
    private func leavePart(_ source: FileSource, _ arguments: String...) async throws {
        source.change { $0.stopsAt = 400_000 }
        let program = try Program(
            [try Programs.netwatch, "get", "-q"] + arguments + [source.url], directory: folder.path)
        try await source.server.awaitSeen { $0.sentBodyBytes >= 400_000 }
        try await awaitPart(of: 400_000)
        try program.signal(SIGINT)
        #expect(try program.wait() == 128 + SIGINT)
        source.change { $0.stopsAt = nil }
    }

    @Test func anotherURLContinuesWhereTheDigestIsTheSame() async throws {
        let source = try FileSource(size: 1_000_000)
        let digest = try source.digest
        try await leavePart(source, "--sha256", digest)
        source.change { $0.tag = "\"other\"" }
        #expect(try get("-q", "--sha256", digest, "-o", "big.bin", source.server.origin + "/mirror").wait() == 0)
        #expect(content("big.bin") == source.whole)
        #expect(source.server.requests.last?["range"] == "bytes=400000-")
    }

    @Test func anotherVersionBeginsAnew() async throws {
        let source = try FileSource(size: 1_000_000)
        try await leavePart(source)
        source.change { $0.tag = "\"other\"" }
        #expect(try get("-q", source.url).wait() == 0)
        #expect(content("big.bin") == source.whole)
    }

    @Test func killedAtRandomMomentsItStillFinishes() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SplitMix64(seed: seed)
        let size: Int64 = 16 << 20
        let source = try FileSource(size: size)
        // It cannot be whole before the last run.
        source.change { ($0.bytesPerSecond, $0.stopsAt) = (8 << 20, size - (1 << 20)) }
        for _ in 0..<5 {
            let before = source.server.seen.sentBodyBytes
            let point = Int64.random(in: 0..<(size / 6), using: &random)
            let program = try get("-q", source.url)
            try await source.server.awaitSeen { $0.sentBodyBytes >= before + point }
            try program.signal(SIGKILL)
            #expect(try program.wait() == 128 + SIGKILL)
        }
        source.change { ($0.bytesPerSecond, $0.stopsAt) = (nil, nil) }
        #expect(try get("-q", "--sha256", try source.digest, source.url).wait() == 0, "seed \(seed)")
        #expect(content("big.bin") == source.whole, "seed \(seed)")
        try await source.server.awaitOpenConnections(0)
        let ratio = Double(source.server.seen.sentBodyBytes) / Double(size)
        print("get, killed 5 times (seed \(seed)): the server sent \(ratio) times the size")
        #expect(ratio <= 1.15, "seed \(seed)")
        #expect(names == ["big.bin"])
    }

    @Test func stoppedAndContinuedByItsShellItFinishes() async throws {
        let source = try FileSource(size: 1_000_000)
        source.change { $0.stopsAt = 500_000 }
        let program = try get(
            source.url, environment: ["TERM": "xterm", "LC_ALL": "C.UTF-8"], output: .terminal, errors: .output)
        _ = try program.nextLine { $0.contains("big.bin") }
        try await source.server.awaitSeen { $0.sentBodyBytes >= 500_000 }
        try program.signal(SIGTSTP)
        while state(of: program.processID) != "T" { await Task.yield() }
        try program.signal(SIGCONT)
        source.change { $0.stopsAt = nil }
        source.release()
        _ = try program.nextLine { $0.contains(" big.bin  976.5 KiB in ") }
        #expect(try program.wait() == 0)
        #expect(content("big.bin") == source.whole)
    }

    private func state(of process: Int32) -> String? {
        let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        return text?.split(separator: ")").last?.split(separator: " ").first.map(String.init)
    }

    // MARK: What people see

    @Test func aTerminalGetsALineThatIsDrawnAgain() async throws {
        let source = try FileSource(size: 4_000_000)
        source.change { $0.stopsAt = 2_000_000 }
        let program = try get(
            source.url, environment: ["TERM": "xterm", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"], output: .terminal, errors: .output)
        _ = try program.nextLine { $0.contains("big.bin  [====") && $0.contains("1.9 MiB/3.8 MiB") }
        try program.resize(columns: 50)
        let narrow = try program.nextLine { $0.contains("big.bin") && !$0.contains("[=") }
        #expect(narrow.contains("\u{1b}[K"))
        source.change { $0.stopsAt = nil }
        source.release()
        _ = try program.nextLine { $0.contains("✓ big.bin  3.8 MiB in ") }
        #expect(try program.wait() == 0)
    }

    @Test func aTerminalThatCannotMoveItsCursorGetsLines() throws {
        let source = try FileSource(size: 1_000)
        let program = try get(source.url, environment: ["TERM": "dumb"], output: .terminal, errors: .output)
        let lines = try program.remainingLines()
        #expect(lines.count == 2 && !lines.contains { $0.contains("\u{1b}") })
    }

    @Test func aServerInTroubleIsAskedAgain() throws {
        let source = try FileSource(size: 1_000)
        source.change { $0.failures = 2 }
        let program = try get("--json", source.url)
        let records = try program.remainingLines().map(TransferLine.init)
        #expect(try program.wait() == 0)
        let backingOff = records.filter { $0.state == "backing_off" }
        #expect(backingOff.count == 2)
        #expect(backingOff.allSatisfy { $0.cause?.layer == "http" && $0.cause?.code == "status" })
        #expect(records.last?.attempt == 3)
    }

    @Test func standardErrorNeedNotBeThere() throws {
        let source = try FileSource(size: 1_000)
        #expect(try get(source.url, errors: .closed).wait() == 0)
        #expect(content("big.bin") == source.whole)
    }

    @Test func aReaderThatLeavesEndsItAsBySIGPIPE() async throws {
        let source = try FileSource(size: 1_000_000)
        source.change { $0.stopsAt = 500_000 }
        let program = try get("--json", source.url)
        _ = try program.nextLine()
        program.closeOutput()
        #expect(try program.wait() == 128 + SIGPIPE)
    }

    // MARK: What goes wrong

    @Test(
        arguments: [
            (["404"], 1, "the server answered 404 Not Found"), (["403"], 1, "the server answered 403 Forbidden"),
            (["--timeout", "1s", "never"], 1, "timed out after 1s"),
            (["--timeout", "2s", "503"], 1, "the server answered 503 Service Unavailable"),
            (["loop"], 1, "more than 20 redirects"),
        ] as [([String], Int32, String)])
    func anEndHasItsCodeAndItsLine(arguments: [String], code: Int32, words: String) throws {
        let server = try MisbehavingServer { request in
            switch request.path.dropFirst() {
            case "never": .never
            case "loop": .redirect(to: "/loop")
            case let status: Reply(Int(status) ?? 500, body: "no")
            }
        }
        let address = "\(server.origin)/\(arguments.last ?? "")"
        let program = try Program(
            [try Programs.netwatch, "get", "-q"] + arguments.dropLast() + [address], directory: folder.path)
        #expect(try program.wait() == code)
        #expect(program.standardError.hasPrefix("netwatch: \(address): "))
        #expect(program.standardError.hasSuffix(words + "\n") && program.standardError.split(separator: "\n").count == 1)
        #expect(names == [])
    }

    @Test func aServerThatTalksNonsenseIsAskedAgain() throws {
        let count = Locked(0)
        let server = try MisbehavingServer { _ in
            count.withLock {
                $0 += 1; return $0
            } <= 2 ? .raw("SSH-2.0-nonsense\r\n") : Reply(body: "well")
        }
        let program = try get("--json", server.origin + "/a")
        let records = try program.remainingLines().map(TransferLine.init)
        #expect(try program.wait() == 0)
        #expect(records.contains { $0.cause?.code == "invalid-response" })
        #expect(content("a") == Data("well".utf8))
    }

    @Test func aWrongDigestIsNoFile() throws {
        let source = try FileSource(size: 1_000)
        let program = try get("-q", "--sha256", String(repeating: "0", count: 64), source.url)
        #expect(try program.wait() == 1)
        #expect(program.standardError == "netwatch: \(source.url): the file has another digest than it should have\n")
        #expect(names == [])
    }

    @Test func anUntrustedCertificateEndsIt() throws {
        let server = try MisbehavingServer(tls: try SelfSignedCertificate().serverTLS) { _ in Reply(body: "x") }
        let program = try get("-q", server.origin + "/x")
        #expect(try program.wait() == 1)
        #expect(program.standardError.hasPrefix("netwatch: \(server.origin)/x: "))
        #expect(server.requests.isEmpty)
    }

    @Test func whatLeadsAwayFromTLSIsNotFollowed() throws {
        let plain = try MisbehavingServer { _ in Reply(body: "plain") }
        let redirecting = try MisbehavingServer { _ in .redirect(to: plain.url("/y").absoluteString) }
        #expect(try get("-q", redirecting.origin + "/x").wait() == 0, "from http to http is what was typed")
        #expect(content("x") == Data("plain".utf8))
    }

    @Test func placesThatCannotBeWrittenAreToldBeforeAnythingIsAsked() throws {
        let source = try FileSource(size: 1_000)
        try FileManager.default.createDirectory(atPath: folder.file("inner"), withIntermediateDirectories: true)
        try "x".write(toFile: folder.file("file"), atomically: true, encoding: .utf8)
        for (arguments, line) in [
            (["-o", "inner"], "inner: cannot create: Is a directory"),
            (["-o", "inner/"], "inner/: cannot create: Is a directory"),
            (["-o", "none/x"], "none/x: cannot create: No such file or directory"),
            (["-o", "file/x"], "file/x: cannot create: Not a directory"),
            (["-d", "file"], "file: cannot create: Not a directory"),
            (["-o", "/dev/null"], "/dev/null: cannot create: it is there, and no file"),
        ] {
            let program = try Program([try Programs.netwatch, "get"] + arguments + [source.url], directory: folder.path)
            #expect(try program.wait() == 73)
            #expect(program.standardError == "netwatch: \(line)\n")
        }
        #expect(source.server.requests.isEmpty)
        #expect(names == ["file", "inner"])
    }

    @Test func aLinkStandsForItsFile() throws {
        let source = try FileSource(size: 1_000)
        try "old".write(toFile: folder.file("real"), atomically: true, encoding: .utf8)
        try FileManager.default.createSymbolicLink(atPath: folder.file("link"), withDestinationPath: "real")
        #expect(try get("-q", "-o", "link", source.url).wait() == 0)
        #expect(content("real") == source.whole)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: folder.file("link")) == "real")
    }

    @Test func twoOfOneFileAreOneTooMany() async throws {
        let source = try FileSource(size: 1_000_000)
        source.change { $0.stopsAt = 500_000 }
        let first = try get("-q", source.url)
        try await source.server.awaitSeen { $0.sentBodyBytes >= 500_000 }
        let second = try get("-q", source.url)
        #expect(try second.wait() == 73)
        #expect(second.standardError.contains("is being downloaded already"))
        try first.signal(SIGINT)
        #expect(try first.wait() == 128 + SIGINT)
    }

    // MARK: The program itself

    @Test(arguments: [["get", "--help"], ["help", "get"]]) func helpShowsTheOptions(arguments: [String]) throws {
        let program = try Program([try Programs.netwatch] + arguments)
        let text = try program.remainingLines().joined(separator: "\n")
        #expect(try program.wait() == 0)
        for option in ["USAGE: netwatch get", "--sha256", "--limit-rate", "--no-continue", "--parallel", "--netns", "500k"] {
            #expect(text.contains(option), "\(option)")
        }
    }

    @Test func withoutTheOtherProgramItSaysSo() throws {
        let copy = folder.file("netwatch")
        try FileManager.default.copyItem(atPath: try Programs.netwatch, toPath: copy)
        let program = try Program([copy, "get", "http://127.0.0.1:1/x"], directory: folder.path)
        #expect(try program.wait() == 69)
        #expect(
            program.standardError
                == "netwatch: get: the program netwatch-transfer is missing: looked for \(copy)-transfer and "
                + "\(folder.path)/../libexec/netwatch/netwatch-transfer; install it beside netwatch\n")
        try FileManager.default.createDirectory(atPath: folder.file("bin"), withIntermediateDirectories: true)
        try FileManager.default.createDirectory(atPath: folder.file("libexec/netwatch"), withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: copy, toPath: folder.file("bin/netwatch"))
        try FileManager.default.createSymbolicLink(
            atPath: folder.file("libexec/netwatch/netwatch-transfer"),
            withDestinationPath: try Programs.built("netwatch-transfer"))
        #expect(try Program([folder.file("bin/netwatch"), "get", "--help"]).wait() == 0)
    }
}
