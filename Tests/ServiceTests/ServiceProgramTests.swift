import Expectations
import Foundation
import Glibc
import NetworkLab
import Testing

/// The program `netwatch serve` from its start to its end, on a host with loopback alone.
@Suite(.timeLimit(.minutes(20)), .requiresNamespaces) struct ServiceProgramTests {
    private let scratch: ScratchDirectory
    private let host: LabHost

    init() throws {
        scratch = try ScratchDirectory()
        host = try Lab().host(loopback: true)
    }

    @Test func `a target is probed, and the page, the API and the stream show it`() throws {
        let server = try host.serve(at: "127.0.0.1", port: 8_080)
        defer { server.close() }
        let service = try start("targets:\n  - id: office\n    name: The office\n    target: 127.0.0.1:8080\n")
        let up = try service.program.nextLine { $0.contains(#""status":"up""#) }
        #expect(up.contains(#""target":"127.0.0.1:8080""#) && up.contains(#""id":"office""#))
        // The stream is ahead of the page by at most one turn of the keeper.
        try Self.await { try get(service, "/badge/office.svg").contains("up") }
        let page = try get(service, "/")
        #expect(page.contains("The office") && page.contains("Content-Security-Policy: default-src 'none'"))
        let status = try get(service, "/api/v1/status")
        #expect(status.contains(#""id":"office""#) && status.contains(#""total":1"#))
        #expect(try get(service, "/badge/office.svg").contains("<svg"))
        #expect(try get(service, "/target/office").contains("127.0.0.1:8080"))
        let evidence = try host.run("curl", "-s", "http://\(service.address)/target/office?format=json")
        let target = try JSONDecoder().decode(TargetEvidence.self, from: Data(evidence.utf8))
        let phases = try #require(target.last_probe?.phases_ms, "\(evidence)")
        #expect(target.last_probe?.ok == true && phases.connect > 0 && target.last_probe?.response_ms == phases.connect)
        expectEqual(target.layers.first { $0.layer == "route" }?.detail, "127.0.0.1 is this machine", "\(evidence)")
        #expect(target.layers.first { $0.layer == "tcp" }?.ms ?? 0 > 0, "\(evidence)")
        #expect(try get(service, "/-/healthy").hasPrefix("HTTP/1.1 200"))
        #expect(try get(service, "/-/ready").hasPrefix("HTTP/1.1 200"))
        let local = try host.run("curl", "-s", "--unix-socket", scratch.file("state/api.sock"), "http://netwatch/api/v1/status")
        #expect(local.contains(#""id":"office""#))
    }

    @Test func `a job that reports in is up, fails, overruns and is late, and is known after a restart`() throws {
        let token = String(repeating: "5e", count: 32)
        try Data("\(token)\n".utf8).write(to: URL(fileURLWithPath: scratch.file("token")))
        let configuration = """
            targets:
              - {id: night, target: "heartbeat:backup", heartbeat: {cron: "0 3 * * *", token_file: token, max_duration: 1s}}
              - {target: "heartbeat:poll", heartbeat: {every: 1s, grace: 0s, token_file: token}}

            """
        let service = try start(configuration)
        func report(_ path: String, _ text: String = "") throws -> String {
            let field = path.contains("/5e") ? "X: Y" : "Authorization: Bearer \(token)"
            return try host.run("curl", "-s", "-H", field, "-d", text, "http://\(service.address)/api/v1/heartbeat/\(path)")
        }
        // Its first report is due a second after the start.
        let late = try service.program.nextLine { $0.contains(#""target":"heartbeat:poll","status":"down""#) }
        #expect(late.contains(#""layer":"heartbeat","code":"late""#) && late.contains(#""phase":"idle""#), "\(late)")
        #expect(late.contains("poll has not reported since netwatch waits for it"), "\(late)")
        try expectEqual(report("BACKUP/\(token)"), "ok\n")
        let up = try service.program.nextLine { $0.contains(#""target":"heartbeat:backup","status":"up""#) }
        #expect(up.contains(#""cause":null"#) && up.contains(#""address":null"#) && up.contains(#""id":"night""#), "\(up)")
        try expectEqual(report("backup/3", "no space left"), "ok\n")
        let down = try service.program.nextLine { $0.contains(#""target":"heartbeat:backup","status":"down""#) }
        #expect(down.contains(#""code":"failed""#) && down.contains(#""exit_code":3,"output":"no space left""#), "\(down)")
        try expectEqual(report("backup/\(token)/start"), "ok\n")
        _ = try service.program.nextLine {
            $0.contains(#""target":"heartbeat:backup","status":"down""#) && $0.contains(#""phase":"running""#)
        }
        let overrun = try service.program.nextLine { $0.contains(#""code":"overrun""#) }
        #expect(overrun.contains(#""phase":"running""#), "\(overrun)")
        try expectEqual(report("backup/\(token)/0"), "ok\n")
        _ = try service.program.nextLine { $0.contains(#""target":"heartbeat:backup","status":"up""#) }
        #expect(try report("backup/\(token.dropLast())").contains("no job has this name and this token"))
        try Self.await { try get(service, "/target/night").contains("reported success") }
        let page = try get(service, "/target/night")
        #expect(page.contains("heartbeat") && !page.contains(token))
        // The start of another run is remembered, and so is the success before it.
        try expectEqual(report("backup/\(token)/start"), "ok\n")
        try service.program.signal(SIGTERM)
        try expectEqual(service.program.wait(), 143)
        #expect(!service.program.standardError.contains(token), "\(service.program.standardError)")
        let next = try start(configuration)
        let first = try next.program.nextLine { $0.contains(#""target":"heartbeat:backup""#) }
        #expect(first.contains(#""status":"up""#) && first.contains(#""phase":"running""#), "\(first)")
    }

    @Test func `without targets the page says how to add one`() throws {
        let service = try start("")
        #expect(try get(service, "/").contains("netwatch serve"))
    }

    @Test func `a port in use ends the program with 71 and names its owner`() throws {
        let server = try host.serve(at: "127.0.0.1", port: 9_200)
        defer { server.close() }
        let program = try run("--listen", "127.0.0.1:9200")
        try expectEqual(program.wait(), 71, "\(program.ending)")
        #expect(program.standardError.contains("127.0.0.1:9200"), "\(program.standardError)")
        #expect(program.standardError.contains("(process \(getpid()))"), "\(program.standardError)")
        expectEqual(program.standardError.split(separator: "\n").count, 1)
    }

    @Test func `the next free port is used if that is asked for`() throws {
        let server = try host.serve(at: "127.0.0.1", port: 9_200)
        defer { server.close() }
        let service = try start("", "--listen", "127.0.0.1:9200", "--next-port")
        expectEqual(service.address, "127.0.0.1:9201")
    }

    @Test func `a second service with the same directory ends with 71`() throws {
        let first = try start("")
        for address in ["127.0.0.1:0", first.address] {
            let program = try run("--listen", address)
            try expectEqual(program.wait(), 71, "\(program.ending)")
            let reason = "process \(first.program.processID) keeps its history here"
            #expect(program.standardError.contains(reason), "\(program.standardError)")
        }
        // The first service still has its lock.
        #expect(try get(first, "/-/healthy").hasPrefix("HTTP/1.1 200"))
    }

    @Test func `SIGHUP loads another configuration, and an error keeps the former one`() throws {
        let service = try start("targets: ['127.0.0.1:1']\n")
        _ = try service.program.nextLine { $0.contains(#""status":"down""#) }
        try write("targets: ['127.0.0.1:1', '127.0.0.1:2']\n")
        try service.program.signal(SIGHUP)
        _ = try service.program.nextLine { $0.contains(#""target":"127.0.0.1:2","status":"down""#) }
        try write("targets: ['127.0.0.1:1', '127.0.0.1:3'\n")
        try service.program.signal(SIGHUP)
        try Self.await { service.program.standardError.contains("keeping the previous configuration") }
        #expect(service.program.standardError.contains("netwatch.yaml:"), "\(service.program.standardError)")
        try Self.await { try get(service, "/").contains("netwatch.yaml:") }
        #expect(try get(service, "/").contains("127.0.0.1:2"))
        // The same by the API: 422 with the reason.
        let answer = try host.run("curl", "-s", "-i", "-X", "POST", "http://\(service.address)/-/reload")
        #expect(answer.hasPrefix("HTTP/1.1 422") && answer.contains("netwatch.yaml:"), "\(answer)")
        try write("targets: ['127.0.0.1:2']\n")
        #expect(try host.run("curl", "-s", "-i", "-X", "POST", "http://\(service.address)/-/reload").hasPrefix("HTTP/1.1 200"))
        try Self.await { try get(service, "/api/v1/status").contains(#""total":1"#) }
        expectEqual(service.program.standardError.components(separatedBy: "keeping the previous configuration").count, 3)
    }

    @Test func `a reload of an empty file removes no target until it is confirmed`() throws {
        let service = try start("targets: ['127.0.0.1:1', '127.0.0.1:2', '127.0.0.1:3']\n")
        _ = try service.program.nextLine { $0.contains(#""target":"127.0.0.1:3","status":"down""#) }
        func reload(_ query: String = "") throws -> String {
            try host.run("curl", "-s", "-i", "-X", "POST", "http://\(service.address)/-/reload\(query)")
        }
        func total() throws -> String {
            String(try get(service, "/api/v1/status").components(separatedBy: #""total":"#)[1].prefix(1))
        }
        try write("")
        for query in ["", "?confirm=2"] {
            let answer = try reload(query)
            #expect(answer.hasPrefix("HTTP/1.1 409") && answer.contains(#""added":0,"removed":3,"changed":0"#), "\(answer)")
        }
        try service.program.signal(SIGHUP)
        let refusal = "removes all 3 targets (+0 −3 ~0); to confirm it, send SIGHUP again after 5 s"
        try Self.await { service.program.standardError.contains(refusal) }
        try Self.await { try get(service, "/").contains("removes all 3 targets (+0 −3 ~0)") }
        try expectEqual(total(), "3")
        // Another file is another reload. A comment is enough.
        try write("# soon\n")
        try service.program.signal(SIGHUP)
        try Self.await { service.program.standardError.components(separatedBy: refusal).count == 3 }
        try expectEqual(total(), "3")
        // The same signal confirms it after 5 s. Each one has a line.
        func lines() -> Int { service.program.standardError.split(separator: "\n").count }
        try Self.await {
            let before = lines()
            try service.program.signal(SIGHUP)
            try Self.await { lines() > before }
            return service.program.standardError.contains("the configuration was loaded: +0 −3 ~0")
        }
        try Self.await { try total() == "0" && !get(service, "/").contains("removes all 3 targets") }
        try write("targets: ['127.0.0.1:4']\n")
        #expect(try reload().contains("the configuration was loaded: +1 −0 ~0"))
        try write("")
        #expect(try reload("?confirm=1").contains("the configuration was loaded: +0 −1 ~0"))
    }

    @Test func `a reload that needs a restart names its keys in the response, on standard error and on the page`() throws {
        let service = try start("time_zone: UTC\n")
        try write("time_zone: Europe/Berlin\n")
        let sentence = "the configuration was loaded: +0 −0 ~0; a restart is needed for time_zone"
        let answer = try host.run("curl", "-s", "-X", "POST", "http://\(service.address)/-/reload")
        expectEqual(answer.split(separator: "\n"), [sentence[...]], "\(answer)")
        #expect(service.program.standardError.contains(sentence))
        // The page says so until the restart, also after a further reload.
        try service.program.signal(SIGHUP)
        try Self.await { service.program.standardError.components(separatedBy: sentence).count == 3 }
        try Self.await { try get(service, "/").contains("A restart is needed") }
        try write("time_zone: UTC\n")
        _ = try host.run("curl", "-s", "-X", "POST", "http://\(service.address)/-/reload")
        try Self.await { try !get(service, "/").contains("A restart is needed") }
    }

    @Test(arguments: [
        ["nonsense"], ["ftp://x"], ["--interval", "10"], ["--fail-after", "0"], ["--listen", "localhost:9130"], ["a:1", "a:1"],
    ])
    func `arguments that are not valid end the program with 64`(arguments: [String]) throws {
        _ = try Programs.built("netwatch-service")
        for command in [["serve", "--state", scratch.file("state")], ["config", "check"]] {
            let program = try Program([try Programs.netwatch] + command + arguments, on: host)
            try expectEqual(program.wait(), 64, "\(program.ending)")
            expectEqual(program.standardError.split(separator: "\n").count, 1, "\(program.standardError)")
        }
        // An error of a file decides the code.
        try write("intervall: 3s\n")
        let program = try Program(
            [try Programs.netwatch, "config", "check", "--config", scratch.file("netwatch.yaml")] + arguments, on: host)
        try expectEqual(program.wait(), 78, "\(program.ending)")
    }

    @Test func `errors of the configuration end the program with 78`() throws {
        try write("intervall: 3s\n")
        let program = try run("--config", scratch.file("netwatch.yaml"), "--listen", "127.0.0.1:0")
        try expectEqual(program.wait(), 78)
        #expect(program.standardError.contains("the nearest is 'interval'"))
    }

    @Test func `SIGTERM records the last results, and the next run continues after a gap`() throws {
        let first = try start("interval: 200ms\nopen_after: 0s\ntargets: ['127.0.0.1:1']\n")
        _ = try first.program.nextLine { $0.contains(#""recorded":true"#) }
        try first.program.signal(SIGTERM)
        try expectEqual(first.program.wait(), 128 + SIGTERM, "\(first.program.ending)")
        #expect(try first.program.remainingLines().allSatisfy { !$0.contains("failed") })
        let second = try start("interval: 200ms\nopen_after: 0s\ntargets: ['127.0.0.1:1']\n")
        let gap = try second.program.nextLine { $0.contains(#""type":"gap""#) }
        #expect(gap.contains(#""reason":"stopped""#))
        try second.program.signal(SIGTERM)
        _ = try second.program.wait()
        let history = try netwatch("history", "--json")
        #expect(history.contains(#""reason":"stopped""#))
        #expect(try netwatch("report").contains("127.0.0.1:1: 0.000 %"))
        #expect(try netwatch("report", "--csv").contains("target,id,since,until,availability"))
        #expect(try netwatch("history", "--csv").contains("tcp/refused"))
    }

    @Test func `a restart and a reload leave an incident open, and a removed target ends it`() throws {
        let targets = "open_after: 0s\ntargets: ['127.0.0.1:1', '127.0.0.1:2']\n"
        let first = try start("interval: 200ms\n" + targets)
        func incident(_ service: ServiceProgram, _ state: String) throws -> ServiceRecord {
            try ServiceRecord(
                service.program.nextLine { line in
                    [#""type":"incident""#, #""recorded":true"#, #""state":"\#(state)""#, "127.0.0.1:1"].allSatisfy(line.contains)
                })
        }
        let id = try #require(try incident(first, "open").incident)
        try first.program.signal(SIGTERM)
        _ = try first.program.wait()
        let second = try start("interval: 200ms\n" + targets)
        _ = try second.program.nextLine { $0.contains(#""status":"down""#) && $0.contains("127.0.0.1:1") }
        // Other settings: the target is the same.
        try write("interval: 300ms\n" + targets)
        try second.program.signal(SIGHUP)
        _ = try second.program.nextLine { $0.contains(#""status":"down""#) && $0.contains("127.0.0.1:1") }
        var incidents: [ServiceHistory.Incident] = []
        try Self.await {
            incidents = try JSONDecoder().decode(ServiceHistory.self, from: Data(try netwatch("history", "--json").utf8))
                .incidents
            return incidents.count == 2
        }
        #expect(incidents.allSatisfy { $0.to == nil } && incidents.contains { $0.incident == id }, "\(id) in \(incidents)")
        try write("interval: 300ms\nopen_after: 0s\ntargets: ['127.0.0.1:2']\n")
        try second.program.signal(SIGHUP)
        try expectEqual(incident(second, "removed").incident, id)
        try second.program.signal(SIGTERM)
        _ = try second.program.wait()
    }

    @Test func `one fault of 15 targets is an outage of each, on its page and in the report`() throws {
        // Without a route to other networks, all fail for one cause.
        let texts = (1...15).map { "192.0.2.\($0):80" }
        let service = try start("interval: 200ms\ntargets: [\(texts.map { "'\($0)'" }.joined(separator: ", "))]\n")
        _ = try service.program.nextLine { $0.contains(#""type":"incident""#) && $0.contains(#""recorded":true"#) }
        var codes: Set<String?> = []
        for text in texts {
            var outages: [TargetEvidence.Entry] = []
            try Self.await {
                let page = try host.run("curl", "-s", "http://\(service.address)/target/\(text)?format=json")
                outages = try JSONDecoder().decode(TargetEvidence.self, from: Data(page.utf8)).outages
                return !outages.isEmpty
            }
            expectEqual(outages.map(\.status), ["unreachable"], "\(text)")
            codes.formUnion(outages.map(\.cause?.code))
        }
        #expect(codes.count == 1 && !codes.contains(nil), "\(codes)")
        try service.program.signal(SIGTERM)
        _ = try service.program.wait()
        let report = try JSONDecoder().decode(
            ServiceReport.self, from: Data(try netwatch("report", "--json", "--since", "1h").utf8))
        expectEqual(report.targets.count, 15)
        let incidents = Set(report.targets.map { $0.worst.map(\.incident) })
        #expect(incidents.count == 1 && incidents.first?.count == 1, "\(incidents)")
    }

    @Test func `an unknown target of the history ends with 66`() throws {
        let service = try start("")
        try service.program.signal(SIGTERM)
        _ = try service.program.wait()
        let program = try Program(
            [try Programs.netwatch, "history", "--state", scratch.file("state"), "--target", "absent"], on: host)
        try expectEqual(program.wait(), 66, "\(program.ending)")
        #expect(program.standardError.contains("absent"))
    }

    @Test func `the history of a stopped service has the days of its zone, wherever it is read`() throws {
        let service = try start("time_zone: Europe/Berlin\n")
        try service.program.signal(SIGTERM)
        _ = try service.program.wait()
        let documents = try ["UTC", "America/New_York", "Asia/Tokyo"].map { zone in
            let program = try Program(
                [
                    try Programs.netwatch, "report", "--json", "--state", scratch.file("state"), "--since", "2026-10-25",
                    "--until",
                    "2026-10-26",
                ], on: host, environment: ["TZ": zone], output: .file)
            try expectEqual(program.wait(), 0, "\(program.ending)")
            return try JSONDecoder().decode(ServiceReport.self, from: Data(program.output.utf8))
        }
        // The day has 25 hours there.
        expectEqual(documents.map(\.since), Array(repeating: "2026-10-24T22:00:00.000Z", count: 3))
        expectEqual(documents.map(\.until), Array(repeating: "2026-10-25T23:00:00.000Z", count: 3))
    }

    @Test func `FIFOs and empty files in the state directory neither hang a start nor a reader`() throws {
        try #require(mkdir(scratch.file("state"), 0o700) == 0 && mkfifo(scratch.file("state/recent-11.dat"), 0o600) == 0)
        let service = try start("")
        #expect(service.program.standardError.contains("recent-11.dat: damaged (it is a FIFO)"))
        try service.program.signal(SIGTERM)
        try expectEqual(service.program.wait(), 128 + SIGTERM)
        for make in [{ mkfifo($0, 0o600) }, { creat($0, 0o600) }] as [(String) -> Int32] {
            unlink(scratch.file("state/history.sqlite"))
            try #require(make(scratch.file("state/history.sqlite")) >= 0)
            for command in ["history", "report"] {
                let program = try Program([try Programs.netwatch, command, "--state", scratch.file("state")], on: host)
                try expectEqual(program.wait(), 66, "\(program.ending)")
                expectEqual(program.standardError.split(separator: "\n").count, 1, "\(program.standardError)")
            }
        }
    }

    @Test func `a directory that may not be read ends the readers with 77`() throws {
        let service = try start("")
        try service.program.signal(SIGTERM)
        _ = try service.program.wait()
        // Without capabilities, root may not read it either.
        chmod(scratch.file("state"), 0)
        defer { chmod(scratch.file("state"), 0o700) }
        for command in ["history", "report"] {
            let program = try Program(
                ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]
                    + [try Programs.netwatch, command, "--state", scratch.file("state")], on: host)
            try expectEqual(program.wait(), 77, "\(program.ending)")
            expectEqual(program.standardError.split(separator: "\n").count, 1, "\(program.standardError)")
        }
    }

    @Test func `the manager's sockets replace those of the configuration`() throws {
        _ = try Programs.built("netwatch-service")
        try write("")
        let program = try Program(
            [
                "systemd-socket-activate", "--listen", "127.0.0.1:9300", "--listen", scratch.file("activated.sock"),
                try Programs.netwatch, "serve", "--state", scratch.file("state"), "--config", scratch.file("netwatch.yaml"), "-q",
            ], on: host)
        // The first connection starts the service, which answers it.
        try Self.await {
            (try? host.run("curl", "-s", "-i", "http://127.0.0.1:9300/-/healthy").hasPrefix("HTTP/1.1 200")) == true
        }
        let local = try host.run("curl", "-s", "-i", "--unix-socket", scratch.file("activated.sock"), "http://x/-/healthy")
        #expect(local.hasPrefix("HTTP/1.1 200"), "\(program.standardError)")
    }

    @Test func `local programs read the stream, the history and the report from the socket`() throws {
        let service = try start("interval: 200ms\ntargets: ['127.0.0.1:1', '127.0.0.1:2']\n")
        _ = try service.program.nextLine { $0.contains(#""recorded":true"#) }
        let socket = scratch.file("state/api.sock")
        let watch = try Program(
            [try Programs.netwatch, "watch", "--connect", socket, "--json", "--count", "2"], on: host)
        try expectEqual(watch.wait(), 0, "\(watch.ending)")
        let lines = try watch.remainingLines()
        #expect(lines.count == 3 && lines[0].contains(#""type":"hello""#), "\(lines)")
        let text = try Program([try Programs.netwatch, "watch", "--connect", socket, "--count", "1", "127.0.0.1:2"], on: host)
        try expectEqual(text.wait(), 0, "\(text.ending)")
        let shown = try text.remainingLines()
        #expect(shown.first?.contains(" hello  netwatch ") == true && shown.first?.contains(": path ") == true, "\(shown)")
        #expect(shown.last?.contains("target 127.0.0.1:2 down tcp/refused: ") == true)
        for command in ["history", "report"] {
            let program = try Program([try Programs.netwatch, command, "--connect", socket, "--since", "1h"], on: host)
            try expectEqual(program.wait(), 0, "\(program.ending)")
            #expect(try program.remainingLines().contains { $0.contains("127.0.0.1:1") })
        }
        // The service has ended.
        try service.program.signal(SIGTERM)
        _ = try service.program.wait()
        let late = try Program([try Programs.netwatch, "watch", "--connect", socket], on: host)
        try expectEqual(late.wait(), 69, "\(late.ending)")
        #expect(late.standardError.contains("no service is running"))
    }

    @Test func `watch of a service prints what its own monitor prints, and takes names`() throws {
        let server = try host.serve(at: "127.0.0.1", port: 8_080)
        defer { server.close() }
        let service = try start(
            "targets:\n  - {id: office, name: The office, target: '127.0.0.1:8080'}\n  - {name: Closed, target: '127.0.0.1:1'}\n"
                + "  - 127.0.0.1:2\n")
        _ = try service.program.nextLine { $0.contains(#""status":"up""#) }
        let socket = ["watch", "--connect", scratch.file("state/api.sock"), "--count", "1"]
        for name in ["office", "The office", "127.0.0.1:8080"] {
            let watch = try Program([try Programs.netwatch] + socket + [name], on: host)
            try expectEqual(watch.wait(), 0, "\(watch.ending)")
            let line = try watch.remainingLines().last ?? ""
            let expected = /.* target The office up [0-9.]+ ms from 127.0.0.1 via lo \(loopback\)/
            #expect(line.wholeMatch(of: expected) != nil, "\(line)")
        }
        let several = try Program(
            [try Programs.netwatch] + socket.dropLast() + ["2", "Closed", "office"], on: host)
        try expectEqual(several.wait(), 0, "\(several.ending)")
        let lines = try several.remainingLines().joined()
        #expect(lines.contains("target Closed ") && lines.contains("target The office "), "\(lines)")
        #expect(!lines.contains("127.0.0.1:2 "), "\(lines)")
        let quiet = try Program([try Programs.netwatch] + socket + ["-q"], on: host)
        try expectEqual(quiet.wait(), 0, "\(quiet.ending)")
        try expectEqual(quiet.remainingLines(), [])
        let unknown = try Program([try Programs.netwatch] + socket + ["absent"], on: host)
        try expectEqual(unknown.wait(), 66, "\(unknown.ending)")
        expectEqual(unknown.standardError, "netwatch: target 'absent': no target has this identifier, name or text\n")
        for option in [["--interval", "1s"], ["-v"], ["--fail-after", "2"], ["--insecure"], ["--canary", "http://a/"]] {
            let refused = try Program([try Programs.netwatch] + socket + option, on: host)
            try expectEqual(refused.wait(), 64, "\(refused.ending)")
            let reason = "netwatch: --connect: \(option[0]) has no effect"
            #expect(refused.standardError.hasPrefix(reason), "\(refused.standardError)")
        }
    }

    @Test func `status of a service shows what it knows, with names, and takes them`() throws {
        let server = try host.serve(at: "127.0.0.1", port: 8_080)
        defer { server.close() }
        let service = try start(
            "targets:\n  - {id: office, name: The office, target: '127.0.0.1:8080', group: North, labels: {team: a}}\n"
                + "  - {name: Closed, target: '127.0.0.1:1'}\n")
        _ = try service.program.nextLine { $0.contains(#""recorded":true"#) }
        // The stream is ahead of the page by at most one turn of the keeper.
        try Self.await { try get(service, "/api/v1/status?status=up").contains(#""total":1"#) }
        func status(_ arguments: String...) throws -> (code: Int32, lines: [String]) {
            let program = try Program(
                [try Programs.netwatch, "status", "--connect", scratch.file("state/api.sock")] + arguments, on: host)
            return (try program.wait(), try program.remainingLines())
        }
        let all = try status()
        expectEqual(all.code, 1, "\(all)")
        #expect(all.lines[0].hasPrefix("service ") && all.lines[1].hasPrefix("path  "), "\(all)")
        #expect(all.lines.contains { $0.contains("The office  up ") }, "\(all)")
        #expect(all.lines.contains { $0.contains("Closed      down") && $0.contains("tcp/refused") }, "\(all)")
        for name in ["office", "The office", "127.0.0.1:8080"] {
            let one = try status("--json", name)
            #expect(one.code == 0 && one.lines.count == 1, "\(one)")
            let names = #""id":"office","name":"The office","group":"North","labels":{"team":"a"}"#
            #expect(one.lines[0].contains(names) && one.lines[0].contains(#""total":1,"next":null}"#), "\(one)")
        }
        try expectEqual(status("-q", "office").lines, [])
        try expectEqual(status("absent").code, 66)
        try expectEqual(status("--probe-timeout", "1s").code, 64)
        let none = try Program([try Programs.netwatch, "status", "--connect", scratch.file("no.sock")], on: host)
        try expectEqual(none.wait(), 69)
    }

    @Test func `a second service has a socket of its own if it is configured, and answers say whose they are`() throws {
        let first = try start("targets: ['127.0.0.1:1']\n")
        _ = try first.program.nextLine { $0.contains(#""recorded":true"#) }
        func second(_ arguments: [String], _ name: String = "second") throws -> ServiceProgram {
            try ServiceProgram(
                ["--json"] + arguments, on: host, state: scratch.file(name), configuration: scratch.file("netwatch.yaml"),
                environment: ["RUNTIME_DIRECTORY": scratch.file("state")])
        }
        let held = scratch.file("state/api.sock")
        let other = try second([])
        expectEqual(
            other.program.standardError.split(separator: "\n").first,
            "netwatch: \(held): another process listens there; local programs cannot use the socket; 'socket' or --socket names another one"
        )
        try other.program.signal(SIGTERM)
        _ = try other.program.wait()
        // A socket that the user has named must be free.
        let refused = try run("--listen", "127.0.0.1:0", "--state", scratch.file("third"), "--socket", held)
        try expectEqual(refused.wait(), 71, "\(refused.ending)")
        expectEqual(refused.standardError, "netwatch: socket \(held): another process listens there\n")
        let own = try second(["--socket", scratch.file("own.sock")])
        _ = try own.program.nextLine { $0.contains(#""recorded":true"#) }
        var buffer = [CChar](repeating: 0, count: 256)
        try #require(gethostname(&buffer, buffer.count - 1) == 0)
        let name = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        for (socket, state) in [(held, "state"), (scratch.file("own.sock"), "second")] {
            for command in ["history", "report"] {
                let text = try Program([try Programs.netwatch, command, "--connect", socket], on: host)
                try expectEqual(text.wait(), 0, "\(text.ending)")
                try expectEqual(text.remainingLines().first, "service \(name), state \(scratch.file(state))")
                let json = try Program([try Programs.netwatch, command, "--json", "--connect", socket], on: host)
                try expectEqual(json.wait(), 0, "\(json.ending)")
                #expect(try json.remainingLines()[0].contains(#""instance":"\#(name)","state":"\#(scratch.file(state))""#))
            }
        }
        #expect(try netwatch("report").hasPrefix("files of the service on \(name), state \(scratch.file("state"))\n"))
    }

    @Test func `an error of the service is one line, as with the files of the directory`() throws {
        let service = try start("targets: ['127.0.0.1:1']\n")
        _ = try service.program.nextLine { $0.contains(#""recorded":true"#) }
        for arguments in [["--since", "nonsense"], ["--until", "yesterday"], ["--target", "absent"]] {
            var (codes, lines): ([Int32], [String]) = ([], [])
            for source in [["--connect", scratch.file("state/api.sock")], ["--state", scratch.file("state")]] {
                let program = try Program([try Programs.netwatch, "history"] + arguments + source, on: host)
                codes.append(try program.wait())
                lines.append(program.standardError)
            }
            #expect(codes[0] == codes[1] && codes[0] == (arguments[0] == "--target" ? 66 : 64), "\(codes)")
            #expect(lines[0] == lines[1] && lines[0].split(separator: "\n").count == 1, "\(lines)")
        }
        for query in ["samples=1&target=127.0.0.1:1&after=zzz", "samples=2", "report=1&samples=1", "limit=1&limit=1", "q=%zz"] {
            #expect(try get(service, "/api/v1/history?\(query)").hasPrefix("HTTP/1.1 400"), "\(query)")
        }
        #expect(try get(service, "/target/127.0.0.1:1?at=abc").contains("<code>at</code> is ignored"))
        #expect(try get(service, "/target/127.0.0.1:1?format=json&at=abc").hasPrefix("HTTP/1.1 400"))
        let badge = try get(service, "/badge/absent.svg")
        #expect(badge.hasPrefix("HTTP/1.1 404") && badge.contains("image/svg+xml") && badge.contains("not known"))
        let page = try host.run("curl", "-s", "-i", "-H", "Accept: text/html", "http://\(service.address)/target/absent")
        #expect(page.hasPrefix("HTTP/1.1 404") && page.contains("text/html") && page.contains("<a href=\"/\">All targets</a>"))
        #expect(try get(service, "/target/absent").contains("application/json"))
    }

    @Test(arguments: [16, 24, 40, 64, 127]) func `too few open files end the program with 71 and one line`(limit: Int) throws {
        let start = "ulimit -n \(limit); exec \"$0\" serve --listen 127.0.0.1:0 --state \"$1\""
        let program = try Program(["sh", "-c", start, try Programs.netwatch, scratch.file("state")], on: host)
        try expectEqual(program.wait(), 71, "\(program.ending)")
        #expect(program.standardError.contains("open files"), "\(program.standardError)")
        expectEqual(program.standardError.split(separator: "\n").count, 1, "\(program.standardError)")
    }

    // MARK: Steps

    private func start(_ configuration: String, _ arguments: String...) throws -> ServiceProgram {
        try write(configuration)
        return try ServiceProgram(
            ["--json"] + arguments, on: host, state: scratch.file("state"), configuration: scratch.file("netwatch.yaml"))
    }

    private func run(_ arguments: String...) throws -> Program {
        _ = try Programs.built("netwatch-service")
        return try Program([try Programs.netwatch, "serve", "--state", scratch.file("state")] + arguments, on: host)
    }

    private func write(_ configuration: String) throws {
        try Data(configuration.utf8).write(to: URL(fileURLWithPath: scratch.file("netwatch.yaml")))
    }

    private func get(_ service: ServiceProgram, _ path: String) throws -> String {
        try host.run("curl", "-s", "-i", "http://\(service.address)\(path)")
    }

    private func netwatch(_ arguments: String...) throws -> String {
        let program = try Program(
            [try Programs.netwatch] + arguments + ["--state", scratch.file("state")], on: host, output: .file)
        guard try program.wait() == 0 else { throw LabError(program.ending) }
        return program.output
    }

    /// Asks until a condition holds. - Throws: if it does not hold in time.
    private static func await(_ condition: () throws -> Bool) throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while try !condition() {
            guard ContinuousClock.now < deadline else { throw LabError("the condition does not hold in time") }
            usleep(20_000)
        }
    }
}
