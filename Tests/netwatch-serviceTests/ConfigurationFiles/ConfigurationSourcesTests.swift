import Expectations
import Foundation
import NetworkLab
import Reachability
import Testing

@testable import netwatch_service

@Suite struct ConfigurationSourcesTests {
    private let scratch: ScratchDirectory

    init() throws { scratch = try ScratchDirectory() }

    @Test func `without any source, the defaults hold`() throws {
        let loaded = sources().load()
        expectEqual(loaded.problems, [])
        expectEqual(loaded.files, [])
        expectEqual(loaded.configuration, Configuration())
    }

    @Test func `the layers override each other: system, user, environment, options`() throws {
        try write(
            "system/netwatch.yaml", "interval: 1s\nprobe_timeout: 1s\nfail_after: 1\nrecover_after: 1\ntargets: [\"system:1\"]")
        try write("system/conf.d/20-b.yaml", "targets: [\"b:1\"]")
        try write("system/conf.d/10-a.yaml", "targets: [\"a:1\"]")
        try write("user/netwatch/netwatch.yaml", "probe_timeout: 2s\nfail_after: 2\nrecover_after: 2")
        var sources = sources()
        sources.environment["NETWATCH_CONFIG_FAIL_AFTER"] = "3"
        sources.environment["NETWATCH_CONFIG_RETENTION__SIZE"] = "1GiB"
        sources.environment["NETWATCH_TYPE"] = "a hook's variable"
        sources.options = [("--recover-after", "recover_after", "4")]
        sources.targets = ["argument:1"]
        let loaded = sources.load()
        expectEqual(loaded.problems, [])
        let probes = loaded.configuration.probes
        expectEqual(probes.interval, .seconds(1))
        expectEqual(probes.timeout, .seconds(2))
        expectEqual(probes.failAfter, 3)
        expectEqual(probes.recoverAfter, 4)
        expectEqual(loaded.configuration.retention.size, 1 << 30)
        expectEqual(loaded.configuration.targets.map(\.key), ["system:1", "a:1", "b:1", "argument:1"])
        expectEqual(
            loaded.files.map { $0.dropFirst(scratch.path.count + 1) },
            [
                "system/netwatch.yaml", "system/conf.d/10-a.yaml", "system/conf.d/20-b.yaml", "user/netwatch/netwatch.yaml",
            ])
    }

    @Test func `--config replaces the layers of files`() throws {
        try write("system/netwatch.yaml", "interval: 1s")
        try write("other.yaml", "fail_after: 7")
        var sources = sources()
        sources.file = scratch.file("other.yaml")
        let loaded = sources.load()
        expectEqual(loaded.configuration.probes.failAfter, 7)
        expectEqual(loaded.configuration.probes.interval, .seconds(10))
    }

    @Test func `a list of a higher layer replaces a lower one`() throws {
        try write("system/netwatch.yaml", "targets: [\"system:1\"]")
        var sources = sources()
        sources.environment["NETWATCH_CONFIG_TARGETS"] = "[\"a:1\", \"b:1\"]"
        expectEqual(sources.load().configuration.targets.map(\.key), ["a:1", "b:1"])
    }

    @Test func `errors of the environment and of options name the variable and the option`() {
        var sources = sources()
        sources.environment = [
            "NETWATCH_CONFIG_INTERVALL": "1s", "NETWATCH_CONFIG_RETENTION__": "1", "NETWATCH_CONFIG_STATE": "[",
        ]
        sources.options = [("--listen", "listen", "1.2.3.4:5")]
        sources.targets = ["x"]
        let problems = sources.load().problems.map(\.description)
        #expect(problems.contains("NETWATCH_CONFIG_INTERVALL: unknown key 'intervall'; the nearest is 'interval'"), "\(problems)")
        #expect(problems.contains { $0.hasPrefix("NETWATCH_CONFIG_RETENTION__: the name has an empty key") }, "\(problems)")
        #expect(problems.contains { $0.hasPrefix("NETWATCH_CONFIG_STATE: not valid YAML") }, "\(problems)")
        #expect(problems.contains { $0.hasPrefix("--listen 1.2.3.4:5: not a loopback address") }, "\(problems)")
        #expect(problems.contains { $0.hasPrefix("target 'x': port: is missing") }, "\(problems)")
        expectEqual(problems.count, 5, "\(problems)")
    }

    @Test func `a target that arguments repeat is named once`() throws {
        var sources = sources()
        sources.targets = ["a:1", "a:1"]
        expectEqual(sources.load().problems.map(\.description), ["target 'a:1': is given twice"])
        try write("system/netwatch.yaml", "targets: [\"a:1\"]")
        sources.targets = ["a:1"]
        let place = "\(scratch.file("system/netwatch.yaml")):1:11"
        let problems = sources.load().problems
        expectEqual(problems.map(\.description), ["target 'a:1': is already used at \(place)"])
        expectEqual(problems.map(\.origin.isArgument), [true])
    }

    @Test func `a contradiction of the retention is a note at its place`() throws {
        try write("system/netwatch.yaml", "retention: {samples: 91d}")
        let loaded = sources().load()
        expectEqual(loaded.problems, [])
        expectEqual(
            loaded.notes.map(\.description),
            [
                "\(scratch.file("system/netwatch.yaml")):1:12: 'retention.samples' (91d) is longer than 'retention.hours' (90d)"
            ])
    }

    @Test func `a file that many targets name is read once, also if it cannot be read`() throws {
        try write("token", "secret")
        var reader = ConfigurationReader()
        let targets = try YAML.configuration(
            "targets:\n"
                + (0..<40).map { number in
                    let file = number % 2 == 0 ? scratch.file("token") : scratch.file("missing")
                    let trust = "tls: {cafile: \(scratch.file("no"))}"
                    return "- {id: t\(number), target: 'https://a', http: {bearer_file: \(file)}, \(trust)}"
                }.joined(separator: "\n")
        ).targets
        var files = TargetFiles(credentials: nil)
        for target in targets { _ = files.settings(of: target, &reader) }
        expectEqual(files.readCount, 3)
        expectEqual(reader.problems.count, 60)
    }

    @Test func `files whose names differ in their normal form are different files`() throws {
        let names = ["tok-\u{E9}", "tok-e\u{301}"]
        for (number, name) in names.enumerated() {
            try write(name, "secret-\(number)")
            try write("\(name).pem", "no certificate")
        }
        var reader = ConfigurationReader()
        let targets = try YAML.configuration(
            "targets:\n"
                + names.enumerated().map { number, name in
                    let trust = "tls: {cafile: \(scratch.file(name)).pem, crlfile: \(scratch.file(name)).pem}"
                    return "- {id: t\(number), target: 'https://a', http: {bearer_file: \(scratch.file(name))}, \(trust)}"
                }.joined(separator: "\n")
        ).targets
        var files = TargetFiles(credentials: nil)
        let settings = targets.map { files.settings(of: $0, &reader) }
        expectEqual(settings.map(\.http.authorization), [.bearer("secret-0"), .bearer("secret-1")])
        // Two tokens and two pairs of trust files, each of which is reported at its own place.
        expectEqual(files.readCount, 4)
        let reasons = reader.problems.map { Array($0.reason.utf8) }
        #expect(names.allSatisfy { name in reasons.contains { $0.firstRange(of: Array("\(name).pem".utf8)) != nil } })
    }

    @Test func `a file of conf.d with another ending is not read, and a note says so`() throws {
        try write("system/conf.d/a.yml", "interval: x")
        try write("system/conf.d/.hidden.yaml", "interval: x")
        let loaded = sources().load()
        expectEqual(loaded.problems, [])
        expectEqual(loaded.notes.map { $0.reason }, ["is not read, because its name does not end with .yaml"])
    }

    @Test func `the user's folder follows the environment`() {
        expectEqual(ConfigurationSources.userFolder(["HOME": "/home/u"]), "/home/u/.config/netwatch")
        expectEqual(ConfigurationSources.userFolder(["HOME": "/h", "XDG_CONFIG_HOME": "/x"]), "/x/netwatch")
        expectEqual(ConfigurationSources.userFolder(["HOME": "/h", "XDG_CONFIG_HOME": "relative"]), "/h/.config/netwatch")
        expectNil(ConfigurationSources.userFolder([:]))
    }

    // MARK: Files that cannot be used

    @Test func `a loop of symbolic links, a FIFO, a directory and a large file are refused`() throws {
        let folder = scratch.file("system/conf.d")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        expectEqual(symlink("b.yaml", "\(folder)/a.yaml"), 0)
        expectEqual(symlink("a.yaml", "\(folder)/b.yaml"), 0)
        expectEqual(mkfifo("\(folder)/c.yaml", 0o600), 0)
        expectEqual(mkdir("\(folder)/d.yaml", 0o700), 0)
        try write("system/conf.d/e.yaml", String(repeating: "#", count: (1 << 20) + 1))
        expectEqual(symlink("missing", "\(folder)/f.yaml"), 0)
        expectEqual(symlink("/dev/zero", "\(folder)/g.yaml"), 0)
        let problems = sources().load().problems.map { $0.description.dropFirst(folder.count + 1) }
        expectEqual(
            problems,
            [
                "a.yaml: its symbolic links form a loop, or are too many",
                "b.yaml: its symbolic links form a loop, or are too many",
                "c.yaml: is not a regular file", "d.yaml: is a directory", "e.yaml: is larger than 1 MiB",
                "f.yaml: cannot be read: No such file or directory", "g.yaml: is not a regular file",
            ])
    }

    @Test func `bytes that are not UTF-8 are an error with their line`() throws {
        try FileManager.default.createDirectory(atPath: scratch.file("system"), withIntermediateDirectories: true)
        try Data([0x61, 0x3A, 0x20, 0x31, 0x0A, 0xFF, 0x0A]).write(to: URL(fileURLWithPath: scratch.file("system/netwatch.yaml")))
        expectEqual(
            sources().load().problems.map(\.description), ["\(scratch.file("system/netwatch.yaml")):2:1: the line is not UTF-8"]
        )
    }

    @Test func `a byte order mark and the line ends of other systems are accepted`() throws {
        try write("system/netwatch.yaml", "\u{FEFF}interval: 5s\r\ntargets:\r\n  - a:1\r\n")
        let loaded = sources().load()
        expectEqual(loaded.problems, [])
        expectEqual(loaded.configuration.targets.map(\.key), ["a:1"])
        expectEqual(loaded.configuration.probes.interval, .seconds(5))
    }

    // MARK: Files of targets

    @Test func `secrets are the first lines of files, relative to the configuration or to the credentials`() throws {
        try write("system/token", "first\nsecond\n")
        try write("credentials/password", "open sesame\r\n")
        try write(
            "system/netwatch.yaml",
            """
            targets:
              - {id: a, target: "http://a", http: {bearer_file: token}}
              - {id: b, target: "http://b", http: {basic: {user: u, password_file: $CREDENTIALS_DIRECTORY/password}}}
            """)
        var sources = sources()
        sources.environment["CREDENTIALS_DIRECTORY"] = scratch.file("credentials")
        let loaded = sources.load()
        expectEqual(loaded.problems, [])
        expectEqual(loaded.settings.map(\.http.authorization), [.bearer("first"), .basic(user: "u", password: "open sesame")])
    }

    @Test func `the credentials of a proxy are the first line of a file`() throws {
        try write("system/proxy.txt", "probe:a:b\n")
        let configuration = "targets: [{target: \"http://a\", http: {proxy: \"http://p:1\", proxy_file: proxy.txt}}]"
        try write("system/netwatch.yaml", configuration)
        let loaded = sources().load()
        expectEqual(loaded.problems, [])
        var http = HTTPProbeSettings()
        try http.setProxy("http://probe:a%3Ab@p:1")
        expectEqual(loaded.settings.map(\.http), [http])
        try write("system/proxy.txt", "probe\n")
        expectEqual(sources().load().problems.first?.reason.contains("its first line is not USER:PASSWORD"), true)
    }

    @Test func `a job has its schedule, the rules of its time zone, and the digest of its token`() throws {
        let token = String(repeating: "ab", count: 32)
        try write("system/token", "\(token)\n")
        try write(
            "system/netwatch.yaml",
            """
            time_zone: UTC
            targets:
              - {target: "heartbeat:a", heartbeat: {cron: "0 3 * * *", time_zone: Europe/Berlin, grace: 1m, token_file: token}}
              - {target: "heartbeat:b", heartbeat: {every: 24h, max_duration: 2h, token_file: token}}
              - {target: "heartbeat:c", heartbeat: {cron: "@daily", token_file: token}}
            """)
        let loaded = sources().load()
        expectEqual(loaded.problems, [])
        let jobs = loaded.settings.map(\.heartbeat)
        #expect(jobs.allSatisfy { $0.tokenDigest == HeartbeatDesk.digest(of: token) })
        #expect(jobs[0].cron?.text == "0 3 * * *" && jobs[0].grace == .seconds(60))
        expectEqual(jobs.map { $0.zoneRules.offset(at: 1_785_672_000) }, [7_200, 0, 0])
        #expect(jobs[1].every == .seconds(86_400) && jobs[1].maxDuration == .seconds(7_200) && jobs[1].cron == nil)
    }

    @Test(arguments: [
        ("every: 1h", "the target 'heartbeat:a' needs heartbeat.token_file"),
        ("token_file: token", "the target 'heartbeat:a' needs heartbeat.every or heartbeat.cron"),
        (
            "every: 1h, cron: '@daily', token_file: token",
            "the target 'heartbeat:a' has both heartbeat.every and heartbeat.cron; write one"
        ),
        (
            "every: 1h, time_zone: UTC, token_file: token",
            "the target 'heartbeat:a' has heartbeat.time_zone without heartbeat.cron"
        ),
        (
            "cron: '0 3 * *', token_file: token",
            "heartbeat.cron: '0 3 * *' has 4 fields; write five: minute, hour, day of the month, month, day of the week"
        ),
        (
            "cron: '@daily', time_zone: ../../etc, token_file: token",
            "heartbeat.time_zone: the time zone '../../etc' is not in /usr/share/zoneinfo"
        ),
        (
            "every: 1h, token_file: short",
            "its first line is not a token: write one by 'openssl rand -hex 32', of at least 22 letters and digits, and not of digits alone"
        ),
    ])
    func `a job without a schedule or a token is an error`(keys: String, reason: String) throws {
        try write("system/token", String(repeating: "ab", count: 32))
        try write("system/short", "start")
        try write("system/netwatch.yaml", "targets: [{target: 'heartbeat:a', heartbeat: {\(keys)}}]")
        let reasons = sources().load().problems.map(\.reason)
        #expect(reasons.count == 1 && reasons[0].hasSuffix(reason), "\(reasons)")
    }

    @Test func `the keys of probes are errors in the map of a job, and not in those of a class and of all targets`() throws {
        try write("system/token", String(repeating: "ab", count: 32))
        func problems(_ keys: String) throws -> [String] {
            try write(
                "system/netwatch.yaml",
                """
                interval: 5s
                classes: {jobs: {fail_after: 3, thresholds: {rtt: 1s}}}
                targets: [{target: 'heartbeat:a', class: jobs, heartbeat: {every: 1h, token_file: token}\(keys)}]
                """)
            return sources().load().problems.map(\.reason)
        }
        try expectEqual(problems(", open_after: 1m, close_after: 5m, severity: info"), [])
        for key in ["interval: 1m", "fail_after: 3", "addresses: each", "mark: 7", "interface: eth0", "thresholds: {rtt: 1s}"] {
            let name = key.prefix { $0 != ":" }
            try expectEqual(
                problems(", \(key)"),
                ["'\(name)' has no effect on 'heartbeat:a': a job reports by itself, and is not probed"])
        }
    }

    @Test func `missing files of targets are errors at the places of their paths`() throws {
        let path = scratch.file("system/netwatch.yaml")
        try write(
            "system/netwatch.yaml",
            """
            targets:
              - {id: a, target: "https://a", tls: {cafile: missing.pem}}
              - {id: b, target: "https://b", http: {bearer_file: $CREDENTIALS_DIRECTORY/token}}
            """)
        let problems = sources().load().problems.map(\.description)
        expectEqual(problems.count, 2)
        expectEqual(
            problems.first?.hasPrefix("\(path):2:48: \(scratch.file("system/missing.pem")): cannot be read"), true,
            "\(problems)")
        expectEqual(problems.last?.contains("needs a unit of systemd with LoadCredential="), true, "\(problems)")
    }

    @Test(arguments: ["Europe/Berlni", "Europe", "leapseconds"])
    func `an unknown time zone, a folder or another file of the database is an error`(zone: String) throws {
        try write("system/netwatch.yaml", "time_zone: \(zone)")
        expectEqual(sources().load().problems.map(\.reason), ["the time zone '\(zone)' is not in /usr/share/zoneinfo"])
    }

    @Test(arguments: ["posixrules", "posix/Europe/Berlin"])
    func `a file of the database that is not the name of a zone is an error`(zone: String) throws {
        try write("system/netwatch.yaml", "time_zone: \(zone)")
        // Not every machine has these files.
        let problems = sources().load().problems.map(\.reason)
        #expect(problems.count == 1 && problems.first?.contains("'\(zone)' is not") == true, "\(problems)")
    }

    @Test(arguments: ["UTC", "Europe/Berlin", "Etc/GMT+5"]) func `a time zone is accepted`(zone: String) throws {
        try write("system/netwatch.yaml", "time_zone: \(zone)")
        let loaded = sources().load()
        #expect(loaded.problems == [] && loaded.configuration.timeZone == zone)
    }

    private func sources() -> ConfigurationSources {
        ConfigurationSources(systemFolder: scratch.file("system"), environment: ["XDG_CONFIG_HOME": scratch.file("user")])
    }

    private func write(_ name: String, _ text: String) throws {
        let url = URL(fileURLWithPath: scratch.file(name))
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: url)
    }
}
