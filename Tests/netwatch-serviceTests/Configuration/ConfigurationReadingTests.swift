import Expectations
import Reachability
import Testing

@testable import netwatch_service

@Suite struct ConfigurationReadingTests {
    @Test func `an empty document has the defaults`() throws {
        let configuration = try YAML.configuration("")
        expectEqual(configuration, Configuration())
        expectEqual(configuration.listen.description, "127.0.0.1:9130")
        expectEqual(configuration.retention.size, 2_147_483_648)
        expectEqual(configuration.probes.interval, .seconds(10))
    }

    @Test func `all general keys are read`() throws {
        let configuration = try YAML.configuration(
            """
            listen: "[::1]:9200"
            allowed_hosts: [Box.example, 192.0.2.7]
            socket: /run/kiosk/api.sock
            state: /var/lib/netwatch
            severity: info
            time_zone: Europe/Berlin
            interval: 5s
            probe_timeout: 1s
            fail_after: 3
            recover_after: 2
            open_after: 0
            close_after: 1m
            flush_every: 10m
            canary: {url: "http://canary.example/204", status: 204, body: ^$}
            retention: {size: 512MiB, samples: 3d, hours: 30d, days: 365d}
            thresholds: {loss: 5%, rtt: 200ms, response: 2s, jitter: none, window: 10}
            classes:
              slow: {interval: 5m, probe_timeout: 10s, bytes_per_day: 1000000, labels: {line: lte}, severity: warning}
            groups: [web, {name: db, folded: true, severity: critical}]
            """)
        expectEqual(configuration.listen.port, 9200)
        expectEqual(configuration.allowedHosts, ["box.example", "192.0.2.7"])
        expectEqual(configuration.socket, "/run/kiosk/api.sock")
        expectEqual(configuration.state, "/var/lib/netwatch")
        expectEqual(configuration.severity, .info)
        expectEqual(configuration.timeZone, "Europe/Berlin")
        expectEqual(configuration.probes.interval, .seconds(5))
        expectEqual(configuration.probes.timeout, .seconds(1))
        expectEqual(configuration.probes.failAfter, 3)
        expectEqual(configuration.probes.recoverAfter, 2)
        expectEqual(configuration.probes.openAfter, .zero)
        expectEqual(configuration.probes.closeAfter, .seconds(60))
        expectEqual(configuration.probes.quality.loss, 0.05)
        expectEqual(configuration.probes.quality.roundTrip, .milliseconds(200))
        expectEqual(configuration.probes.quality.responseTime, .seconds(2))
        expectNil(configuration.probes.quality.jitter)
        expectEqual(configuration.probes.quality.window, 10)
        expectEqual(configuration.flushEvery, .seconds(600))
        expectEqual(configuration.canary?.endpoint.text, "http://canary.example/204")
        expectEqual(configuration.canary?.settings.isCanary, true)
        expectEqual(configuration.canary?.settings.statuses, "204")
        expectEqual(configuration.retention, Retention(size: 512 << 20, samples: 3, hours: 30, days: 365))
        expectEqual(configuration.classes["slow"]?.settings.metered.bytesPerDay, 1_000_000)
        expectEqual(configuration.classes["slow"]?.labels, ["line": "lte"])
        expectEqual(configuration.classes["slow"]?.severity, .warning)
        expectEqual(
            configuration.groups, [.init(name: "web"), .init(name: "db", isFolded: true, severity: .critical)])
    }

    @Test func `a class has thresholds, which those of its targets replace one by one`() throws {
        let configuration = try YAML.configuration(
            """
            thresholds: {rtt: 200ms, response: 2s, window: 10}
            classes:
              slow: {thresholds: {response: 5s, rtt: none, window: 20}}
            targets:
              - {target: "a.example:1", class: slow}
              - {target: "a.example:2", class: slow, thresholds: {response: none, window: 5}}
              - {target: "a.example:3", thresholds: {response: 1s}}
            """)
        let limits = configuration.targets.map(\.settings.quality)
        expectEqual(limits.map(\.responseTime), [.seconds(5), nil, .seconds(1)])
        expectEqual(limits.map(\.roundTrip), [nil, nil, .milliseconds(200)])
        expectEqual(limits.map(\.window), [20, 5, 10])
        expectEqual(limits.map(\.loss), [0.2, 0.2, 0.2])
    }

    @Test func `the labels of a target are added to those of its class, and the nearest severity counts`() throws {
        let configuration = try YAML.configuration(
            """
            severity: info
            classes:
              slow: {labels: {line: lte, team: net}, severity: warning}
              plain: {labels: {line: dsl}}
            groups: [{name: db, severity: critical}, web]
            targets:
              - a:1
              - {target: "a:2", class: slow, labels: {team: shop, site: Köln}, severity: critical}
              - {target: "a:3", class: slow, group: db}
              - {target: "a:4", class: plain, group: db}
              - {target: "a:5", group: web}
            """)
        expectEqual(
            configuration.targets.map(\.labels),
            [
                [:], ["line": "lte", "team": "shop", "site": "Köln"], ["line": "lte", "team": "net"], ["line": "dsl"], [:],
            ])
        expectEqual(configuration.targets.map(\.severity), [.info, .critical, .warning, .critical, .info])
        expectNil(try YAML.configuration("targets: [\"a:1\"]").targets[0].severity)
    }

    @Test(arguments: ["*", "*.example", "box.example:9130", "http://box.example", "-box", "box..example", "a b", "box_1"])
    func `an allowed host is a name without a port, and no pattern`(name: String) throws {
        let problems = YAML.problems("allowed_hosts: [\"\(name)\"]")
        #expect(problems.count == 1 && problems[0].contains("write names of this machine without a port"), "\(problems)")
    }

    @Test func `a target is its text alone, or a map`() throws {
        let configuration = try YAML.configuration(
            """
            interval: 20s
            classes: {slow: {interval: 5m, bytes_per_day: 7}}
            targets:
              - 192.0.2.7:22
              - id: shop
                name: Web shop
                target: https://shop.example/health
                class: slow
                group: web
                family: 6
                interface: eth0
                thresholds: {rtt: 1s}
                http: {method: HEAD, host: other.example, redirects: false, headers: {X-Probe: yes}}
                tls: {server_name: other.example, insecure: true, certificate_days: 30}
                expect: {status: "200-299,401", version: 1.1, body: ok, headers: {Server: nginx}}
            """)
        let (first, second) = (configuration.targets[0], configuration.targets[1])
        expectEqual(first.key, "192.0.2.7:22")
        expectEqual(first.title, "192.0.2.7:22")
        expectEqual(first.settings.interval, .seconds(20))
        expectEqual(second.key, "shop")
        expectEqual(second.title, "Web shop")
        expectEqual(second.settings.interval, .seconds(300))
        expectEqual(second.settings.metered.bytesPerDay, 7)
        expectEqual(second.settings.families, [.v6])
        expectEqual(second.settings.interface, "eth0")
        expectEqual(second.settings.quality.roundTrip, .seconds(1))
        expectEqual(second.settings.http.method, "HEAD")
        expectEqual(second.settings.http.host, "other.example")
        expectEqual(second.settings.http.followsRedirects, false)
        expectEqual(second.settings.http.statuses, "200-299,401")
        expectEqual(second.settings.http.versions, ["1.1"])
        expectEqual(second.settings.tls.serverName, "other.example")
        expectEqual(second.settings.tls.isInsecure, true)
        expectEqual(second.settings.tls.certificateDays, 30)
    }

    @Test func `pacing of a target replaces that of its class, which replaces the general one`() throws {
        let targets = try YAML.configuration(
            """
            interval: 20s
            probe_timeout: 1s
            fail_after: 3
            recover_after: 4
            open_after: 30s
            close_after: 5s
            classes: {slow: {interval: 5m, fail_after: 1, open_after: 0s, close_after: 2m}}
            targets:
              - a.example:1
              - {target: b.example:1, class: slow}
              - {target: c.example:1, class: slow, probe_timeout: 9s, fail_after: 7, recover_after: 2, open_after: 1s, close_after: 0}
            """
        ).targets.map(\.settings)
        expectEqual(targets.map(\.interval), [.seconds(20), .seconds(300), .seconds(300)])
        expectEqual(targets.map(\.timeout), [.seconds(1), .seconds(1), .seconds(9)])
        expectEqual(targets.map(\.failAfter), [3, 1, 7])
        expectEqual(targets.map(\.recoverAfter), [4, 4, 2])
        expectEqual(targets.map(\.openAfter), [.seconds(30), .zero, .seconds(1)])
        expectEqual(targets.map(\.closeAfter), [.seconds(5), .seconds(120), .zero])
    }

    @Test func `the packets and the name server of a target replace those of its class, and none removes them`() throws {
        let targets = try YAML.configuration(
            """
            source_address: 192.0.2.2
            mark: 0x10
            resolver: 192.0.2.53
            addresses: each
            classes: {other: {source_address: "2001:db8::2", mark: 7, resolver: "[2001:db8::53]:5353"}}
            targets:
              - a.example:1
              - {target: b.example:1, class: other}
              - {target: c.example:1, class: other, source_address: none, mark: 0, resolver: none, addresses: any}
              - {target: "[2001:db8::9]:1", source_address: "2001:db8::3"}
            """
        ).targets.map(\.settings)
        expectEqual(
            targets.map { $0.sourceAddress.map { "\($0)" } }, ["192.0.2.2", "2001:db8::2", nil, "2001:db8::3"])
        expectEqual(targets.map(\.mark), [16, 7, 0, 16])
        expectEqual(targets.map(\.addresses), [.each, .each, .any, .each])
        expectEqual(
            targets.map { $0.resolver.map { "\($0)" } }, ["192.0.2.53", "[2001:db8::53]:5353", nil, "192.0.2.53"])
    }

    @Test func `files of a target are kept with their places`() throws {
        let target = try YAML.configuration(
            """
            targets:
              - target: https://a.example/
                tls: {cafile: ca.pem, crlfile: /etc/crl.pem}
                http:
                  basic: {user: probe, password_file: secret}
            """
        ).targets[0]
        expectEqual(target.files.map(\.purpose), [.authorities, .revocationLists, .password(user: "probe")])
        expectEqual(target.files.map(\.path), ["ca.pem", "/etc/crl.pem", "secret"])
        expectEqual(target.files[0].origin, .file("f.yaml", line: 3, column: 19))
    }

    @Test func `expectations of a response, the proxy and the client certificate have keys`() throws {
        let target = try YAML.configuration(
            """
            targets:
              - target: https://a.example/
                http: {proxy: "http://proxy.example:3128", no_proxy: .local, proxy_file: proxy.txt}
                tls: {cert: client.pem, key: client.key}
                expect:
                  not_body: error
                  not_headers: {Server: old}
                  min_size: 10
                  max_size: 20
                  json: [{path: /status, equals: ok}, {path: /n, above: 2, below: 9}, {path: /id}]
            """
        ).targets[0]
        expectEqual(target.files.map(\.purpose), [.certificate, .privateKey, .proxyCredentials])
        var http = HTTPProbeSettings()
        try http.setProxy("http://proxy.example:3128", except: ".local")
        try http.expectBody("error", mustMatch: false)
        try http.expectField("Server", "old", mustMatch: false)
        http.bodySizes = 10...20
        try http.expectJSON("/status", .equals("ok"))
        try http.expectJSON("/n", .above(2))
        try http.expectJSON("/n", .below(9))
        try http.expectJSON("/id", .exists(true))
        expectEqual(target.settings.http, http)
    }

    @Test(arguments: [
        ("intervall: 5s", "f.yaml:1:1: unknown key 'intervall'; the nearest is 'interval'"),
        ("retention:\n  sise: 1GiB", "f.yaml:2:3: unknown key 'sise' of 'retention'; the nearest is 'size'"),
        ("retention: {foo: 1}", "f.yaml:1:13: unknown key 'foo' of 'retention'; the keys are size, samples, hours, days"),
        (
            "interval: 5",
            "f.yaml:1:11: interval '5': the unit is missing; write a whole number with ms, s, m or h, as in 250ms, 3s, 2m or 1h"
        ),
        ("interval: 1ms", "f.yaml:1:11: interval '1ms': the shortest is 10ms"),
        ("interval: [1s]", "f.yaml:1:11: 'interval' must be a single value, and is a list"),
        (
            "open_after: 20",
            "f.yaml:1:13: open_after '20': the unit is missing; write a whole number with ms, s, m or h, as in 250ms, 3s, 2m or 1h"
        ),
        ("fail_after: 0", "f.yaml:1:13: fail_after '0': write a whole number from 1 to 1000000"),
        (
            "listen: 0.0.0.0:9130",
            "f.yaml:1:9: listen '0.0.0.0:9130': not a loopback address; others are not supported, because the page has no login"
        ),
        (
            "listen: localhost",
            "f.yaml:1:9: listen 'localhost': not an address; write ADDRESS:PORT, as in 127.0.0.1:9130 or [::1]:9130"
        ),
        ("state: data", "f.yaml:1:8: state 'data': write an absolute path"),
        ("socket: api.sock", "f.yaml:1:9: socket 'api.sock': write an absolute path"),
        (
            "socket: /\(String(repeating: "a", count: 107))",
            "f.yaml:1:9: socket '/\(String(repeating: "a", count: 99))…': the path of a socket has at most 107 bytes"
        ),
        ("severity: high", "f.yaml:1:11: severity 'high': write info, warning or critical"),
        ("groups: [{name: a, severity: 1}]", "f.yaml:1:30: groups.severity '1': write info, warning or critical"),
        (
            "classes: {a: {labels: {cost-center: x}}}",
            "f.yaml:1:24: label 'cost-center': write 1 to 64 letters, digits or '_', and no digit first"
        ),
        (
            "classes: {a: {labels: {1st: x}}}",
            "f.yaml:1:24: label '1st': write 1 to 64 letters, digits or '_', and no digit first"
        ),
        ("classes: {a: {labels: {b: [x]}}}", "f.yaml:1:27: 'classes.a.labels.b' must be a single value, and is a list"),
        (
            "time_zone: ../../etc/passwd",
            "f.yaml:1:12: time_zone '../../etc/passwd': not a name of the tz database; write one such as Europe/Berlin or UTC"
        ),
        ("thresholds: {loss: 120%}", "f.yaml:1:20: thresholds.loss '120%': write a part from 0% to 100%, as in 20%, or none"),
        ("retention: {size: 1MiB}", "f.yaml:1:19: retention.size '1MiB': the smallest is 16MiB"),
        (
            "retention: {size: 99999999999GiB}",
            "f.yaml:1:19: retention.size '99999999999GiB': too large; write a whole number with KB, MB, GB, KiB, MiB or GiB, as in 2GiB"
        ),
        ("retention: {samples: 7}", "f.yaml:1:22: retention.samples '7': write a number of days from 1d to 36500d, as in 7d"),
        ("canary: {url: \"tcp://a:1\"}", "f.yaml:1:15: canary.url 'tcp://a:1': write a URL with http or https"),
        (
            "canary: {url: \"http://bob:secret@h/\"}",
            "f.yaml:1:15: canary.url 'http://bob:***@h/': host: a user name or password in a URL is not accepted"
        ),
        ("canary: {status: 204}", "f.yaml:1:9: 'canary' needs 'url'"),
        ("- a", "f.yaml:1:1: 'configuration' must be a map of keys, and is a list"),
        ("groups: [web, web]", "f.yaml:1:15: the group 'web' is already in the list"),
    ])
    func `a general value that is not valid is an error with its place`(text: String, problem: String) {
        expectEqual(YAML.problems(text), [problem])
    }

    @Test func `a file with a repeated key and a target without a valid text still shows all other errors`() {
        let text = """
            interval: soon
            interval: 5s
            groups:
              - {folded: perhaps}
            targets:
              - target: "no port"
                id: "a b"
                interval: never
                tls: {certificate_days: many}
                http: {redirects: maybe}
                expect: {status: all}
              - name: db
                severity: high
            """
        let places = YAML.problems(text).map { $0.split(separator: " ").prefix(3).joined(separator: " ") }
        expectEqual(
            places,
            [
                "f.yaml:1:1: set twice", "f.yaml:1:11: interval 'soon':", "f.yaml:4:5: a group",
                "f.yaml:4:14: groups.folded 'perhaps':",
                "f.yaml:6:13: target 'no", "f.yaml:7:9: id 'a", "f.yaml:8:15: interval 'never':",
                "f.yaml:9:29: tls.certificate_days 'many':", "f.yaml:10:23: http.redirects 'maybe':",
                "f.yaml:11:22: expect.status: 'all'",
                "f.yaml:12:5: a target", "f.yaml:13:15: severity 'high':",
            ])
    }

    @Test(arguments: [
        ("db", "target 'db': port: is missing; write db:PORT"),
        ("\"http://bob:secret@h/\"", "target 'http://bob:***@h/': host: a user name or password in a URL is not accepted"),
        ("{\"http://bob:secret@h/\": 1, target: \"a:1\"}", "unknown key 'http://bob:***@h/' of 'targets'"),
        ("{name: db}", "a target needs 'target', as in 'target: db.example:5432'"),
        ("{target: \"a:1\", class: slwo}", "the class 'slwo' is not in 'classes'; the nearest is 'slow'"),
        ("{target: \"a:1\", group: wep}", "the group 'wep' is not in 'groups'; the nearest is 'web'"),
        ("{target: \"a:1\", http: {method: GET}}", "'http' has no effect on a target of tcp; write http:// or https://"),
        ("{target: \"a:1\", tls: {insecure: true}}", "'tls' has no effect on a target of tcp; write tls:// or https://"),
        ("{target: \"a:1\", ping: {count: 3}}", "'ping' has no effect on a target of tcp; write ping://"),
        ("{target: \"ping://a\", ping: {count: 101}}", "1 to 100"),
        ("{target: \"ping://a\", ping: {spacing: 11s}}", "the shortest is 1ms, the longest 10s"),
        ("{target: \"ping://a\", ping: {cuont: 3}}", "unknown key 'cuont' of 'ping'; the nearest is 'count'"),
        ("{target: \"http://a\", expect: {json: [{equals: 1}]}}", "expect.json: a value needs 'path'"),
        (
            "{target: \"http://a\", expect: {json: [{path: a, equals: 1}]}}",
            "'a' is no JSON pointer; write it as in /checks/0/status"
        ),
        ("{target: \"http://a\", expect: {json: [{path: /a, above: x}]}}", "above: write a number"),
        ("{target: \"http://a\", expect: {min_size: 3, max_size: 2}}", "'expect.min_size' is above 'expect.max_size'"),
        ("{target: \"http://a\", expect: {max_size: -1}}", "0 to 1000000000"),
        ("{target: \"http://a\", http: {proxy: \"http://u:p@b\"}}", "write the credentials in the file of 'http.proxy_file'"),
        ("{target: \"http://a\", http: {no_proxy: b}}", "'http.no_proxy' needs 'http.proxy'"),
        ("{target: \"https://a\", tls: {key: b}}", "'tls.key' needs 'tls.cert'"),
        ("{target: \"a:1\", source_address: eth0}", "not the address of a host; write one such as 192.0.2.2, or none"),
        ("{target: \"a:1\", mark: 4294967296}", "write a number from 0 to 0xffffffff"),
        ("{target: \"a:1\", resolver: dns.example}", "not the address of a name server"),
        (
            "{target: \"[::1]:1\", source_address: 192.0.2.2}",
            "the target '[::1]:1' has an IPv6 address, and its source address 192.0.2.2 is an IPv4 address"
        ),
        (
            "{target: \"a:1\", family: 6, source_address: 192.0.2.2}",
            "the target 'a:1' is probed over IPv6 alone, and its source address 192.0.2.2 is an IPv4 address"
        ),
        ("{target: \"dialogue://a:1\"}", "the target 'dialogue://a:1' needs a dialogue: dialogue.preset or dialogue.steps"),
        (
            "{target: \"a:1\", dialogue: smtpx}",
            "'smtpx' is not known; write smtp, imap, pop3, ftp, ldap, postgres, mysql, xmpp, ssh, redis"
        ),
        ("{target: \"a:1\", dialogue: [{expects: x}]}", "unknown key 'expects' of 'dialogue.steps'; the nearest is 'expect'"),
        ("{target: \"a:1\", dialogue: [{expect: (}]}", "dialogue.steps: missing ): ("),
        ("{target: \"a:1\", dialogue: []}", "the target needs a dialogue: dialogue.preset or dialogue.steps"),
        ("{target: \"a:1\", dialogue: [{}]}", "dialogue.steps: a step is empty; write expect, send or starttls"),
        ("{target: \"a:1\", dialogue: [{expect: }]}", "'dialogue.steps.expect' has no value; write quotes around a text"),
        ("{target: \"a:1\", dialogue: {preset: smtp, steps: [{send: x}]}}", "a dialogue has a preset or steps, and not both"),
        ("{target: \"a:1\", dialogue: [{starttls: maybe}]}", "starttls 'maybe': write true or false"),
        ("{target: \"a:1\", dialogue: {steps: [{starttls: true}, {starttls: true}]}}", "dialogue.steps: TLS has begun already"),
        ("{target: \"tls://a:1\", dialogue: smtp}", "'dialogue' has no effect on a target of tls; write tcp:// or dialogue://"),
        ("{target: \"ping://a\", http: {method: GET}}", "'http' has no effect on a target of ping; write http:// or https://"),
        ("{target: \"192.0.2.1:1\", family: 6}", "the target is an IPv4 address"),
        ("{target: \"a:1\", family: 5}", "family '5': write 4 or 6"),
        ("{target: \"a:1\", id: \"../x\"}", "id '../x': write 1 to 64 letters, digits, '-', '_' or '.', and not '.' first"),
        ("{target: \"http://a\", expect: {body: \"(\"}}", "expression '(': missing ): ("),
        ("{target: \"http://a\", expect: {status: 700}}", "700"),
        ("{target: \"http://a\", http: {method: \"A B\"}}", "http.method: "),
        ("{target: \"http://a\", http: {basic: {user: a}}}", "'http.basic' needs 'user' and 'password_file'"),
        (
            "{target: \"http://a\", http: {headers: {X-A: b}, forward: [x-a, X-Api-Key]}}",
            "'X-Api-Key', which is not in 'http.headers'"
        ),
        ("{target: \"http://a\", http: {bearer_file: a, basic: {user: a, password_file: b}}}", "either 'basic' or 'bearer_file'"),
        ("{target: \"a:1\", name: \"a\\0b\"}", "'name' contains a control character"),
        ("{target: \"a:1\", group: \"web\\x1b\"}", "'group' contains a control character"),
        ("{target: \"http://a/\\x85\"}", "contains a control character"),
        ("\"http://a/\\x85\"", "contains a control character"),
        ("{target: \"a:1\", tagret: x}", "unknown key 'tagret' of 'targets'; the nearest is 'target'"),
    ])
    func `a target that is not valid is an error with its place`(target: String, reason: String) throws {
        let problems = YAML.problems("classes: {slow: {interval: 1m}}\ngroups: [web]\ntargets:\n  - \(target)")
        expectEqual(problems.count, 1, "\(problems)")
        let problem = try #require(problems.first)
        #expect(problem.hasPrefix("f.yaml:4:"), "\(problem)")
        #expect(problem.contains(reason), "\(problem)")
    }

    @Test func `a target with a dialogue keeps its text, and may have the trust of TLS`() throws {
        let configuration = try YAML.configuration(
            """
            targets:
              - {target: "mail:25", dialogue: smtp, tls: {server_name: mx.example}}
              - {target: "irc:6667", dialogue: [{expect: "^PING", send: "PONG"}, {starttls: true}]}
              - {target: "dialogue://db:5432", dialogue: {preset: postgres}}
            """)
        expectEqual(configuration.targets.map(\.key), ["mail:25", "irc:6667", "dialogue://db:5432"])
        #expect(configuration.targets.allSatisfy { $0.endpoint.scheme == .dialogue && !$0.settings.dialogue.isEmpty })
        var steps = DialogueSettings()
        try steps.expect("^PING")
        try steps.send("PONG")
        try steps.startTLS()
        expectEqual(configuration.targets[1].settings.dialogue, steps)
        expectEqual(configuration.targets[0].settings.tls.serverName, "mx.example")
    }

    @Test func `a ping target has the settings of its keys`() throws {
        let configuration = try YAML.configuration(
            "targets: [{target: \"ping://a\", ping: {count: 5, spacing: 50ms, size: 1400, ttl: 3, dont_fragment: true}}]")
        let ping = try #require(configuration.targets.first).settings.ping
        #expect(ping.count == 5 && ping.spacing == .milliseconds(50) && ping.size == 1400)
        #expect(ping.hopLimit == 3 && ping.forbidsFragments)
    }

    @Test func `targets with the same key are an error that names both places`() {
        expectEqual(
            YAML.problems("targets: [\"a:1\", \"a:1\"]"),
            ["f.yaml:1:18: the target 'a:1' is already used at f.yaml:1:11; give one of them an 'id'"])
        expectEqual(
            YAML.problems("targets:\n- {id: x, target: \"a:1\"}\n- {id: x, target: \"b:1\"}"),
            ["f.yaml:3:3: the id 'x' is already used at f.yaml:2:3"])
    }

    @Test func `a hundred errors are noted, and further ones are counted`() throws {
        var reader = ConfigurationReader()
        _ = Configuration(try YAML.tree((0..<5_000).map { "key\($0): 1" }.joined(separator: "\n")), &reader)
        expectEqual(reader.problems.count, 100)
        expectEqual(reader.furtherCount, 4_900)
    }

    @Test func `the text of an error and its nearest name are computed only if it is noted`() {
        var reader = ConfigurationReader()
        var (reasons, searches) = (0, 0)
        func reason() -> String {
            reasons += 1
            return "reason"
        }
        func known() -> [String] {
            searches += 1
            return ["name"]
        }
        for _ in 0..<5_000 { reader.note(.standard, reason(), unknown: "nama", among: known()) }
        for _ in 0..<5_000 { reader.note(.standard, reason()) }
        expectEqual(reasons, ConfigurationReader.limit)
        expectEqual(searches, ConfigurationReader.limit)
        expectEqual(reader.furtherCount, 10_000 - ConfigurationReader.limit)
        expectEqual(reader.problems.first?.reason, "reason; the nearest is 'name'")
    }

    @Test func `errors that were found before are limited too`() {
        let former = [ConfigurationProblem](repeating: ConfigurationProblem(.standard, "x"), count: 250)
        let reader = ConfigurationReader(problems: former)
        expectEqual(reader.problems.count, 100)
        expectEqual(reader.furtherCount, 150)
    }

    @Test func `a minimum is written as a duration that is valid`() {
        expectEqual(YAML.problems("flush_every: 10ms"), ["f.yaml:1:14: flush_every '10ms': the shortest is 1s"])
    }

    @Test func `finer data that outlast coarser ones are a contradiction`() {
        expectEqual(Retention().contradictions, [])
        expectEqual(
            Retention(samples: 120, hours: 90, days: 30).contradictions,
            [
                "'retention.samples' (120d) is longer than 'retention.hours' (90d)",
                "'retention.hours' (90d) is longer than 'retention.days' (30d)",
            ])
    }

    @Test func `all errors are reported at once`() {
        let problems = YAML.problems("interval: x\nfoo: 1\ntargets: [a, \"b:1\", \"c:99999\"]")
        expectEqual(problems.count, 4, "\(problems)")
    }

    @Test func `errors are in the order of their lines`() throws {
        let problems = YAML.problems(
            """
            targets:
              - {target: "a:1", class: slow, tint: red}
              - {target: "a:1"}
            interval: x
            groups:
              - {name: web, severity: high}
            foo: 1
            retention: {size: 1}
            """)
        let lines = problems.compactMap { $0.split(separator: ":").dropFirst().first.flatMap { Int($0) } }
        #expect(lines == lines.sorted() && Set(lines) == [2, 3, 4, 6, 7, 8], "\(problems)")
        // The hundred that are noted are the first ones.
        var reader = ConfigurationReader(files: ["b.yaml", "a.yaml"])
        for line in (1...300).reversed() { reader.note(.file("a.yaml", line: line, column: 1), "a\(line)") }
        reader.note(.argument("--interval"), "last")
        reader.note(.file("b.yaml", line: 400, column: 1), "first")
        reader.note(.path("c.yaml"), "not read")
        expectEqual(reader.problems.map(\.reason), ["not read", "first"] + (1...98).map { "a\($0)" })
        expectEqual(reader.furtherCount, 203)
    }
}
