import Expectations
import Foundation
import Reachability
import Testing

@testable import Console
@testable import netwatch

/// Invalid command lines: each is refused before any work with code 64 and one line that names the wrong part.
@Suite struct ArgumentTests {
    static let form = "write a whole number with ms, s, m or h, as in 250ms, 3s, 2m or 1h"

    @Test(arguments: [
        (
            "frob",
            "frob: unknown command; the commands are watch, status, probe, why, wait, get, put, beat, serve, history, report, config, record, replay, schema, help"
        ),
        ("--json", "usage: unknown option '--json'; see 'netwatch --help'"),
        ("watch --frobnicate", "watch: unknown option '--frobnicate'; see 'netwatch watch --help'"),
        ("watch --for", "watch: missing value for '--for <duration>'; see 'netwatch watch --help'"),
        ("watch --for 0s", "--for 0s: must be above zero; \(form)"),
        ("watch --close-after -1s", "--close-after -1s: must not be negative; \(form)"),
        ("watch --open-after ''", "--open-after '': not a duration; \(form)"),
        ("watch --for -1s", "--for -1s: must be above zero; \(form)"),
        ("watch --interval 1e9h", "--interval 1e9h: not a duration; \(form)"),
        ("wait --timeout 5", "--timeout 5: the unit is missing; \(form)"),
        ("wait --stable 1.5s", "--stable 1.5s: not a duration; \(form)"),
        ("status --probe-timeout 9999999h", "--probe-timeout 9999999h: longer than 365 days, the most that is allowed"),
        ("probe", "probe: the target is missing; write HOST:PORT"),
        ("probe -c -1 a:1", "-c -1: must be from 0 (endless) to 1000000"),
        ("probe --live --json a:1", "--live --json: they exclude each other"),
        ("probe --interval 0s a:1", "--interval 0s: must be above zero; \(form)"),
        ("probe a", "target 'a': port: is missing; write a:PORT"),
        ("why a", "target 'a': port: is missing; write a:PORT"),
        ("why a:1 b:1", "why: unexpected argument 'b:1'; see 'netwatch why --help'"),
        ("why --probe-timeout 3", "--probe-timeout 3: the unit is missing; \(form)"),
        ("watch --count 0", "--count 0: must be at least 1"),
        ("watch --count -1", "--count -1: must be at least 1"),
        ("watch --fail-after 0", "--fail-after 0: must be from 1 to 1000000"),
        ("watch --recover-after -1", "--recover-after -1: must be from 1 to 1000000"),
        ("watch --open-after 20", "--open-after 20: the unit is missing; \(form)"),
        ("why -6 192.0.2.1:80", "target '192.0.2.1:80': is an IPv4 address, which -6 excludes"),
        ("probe -4 [2001:db8::1]:80", "target '[2001:db8::1]:80': is an IPv6 address, which -4 excludes"),
        ("watch -6 192.0.2.1:80", "target '192.0.2.1:80': is an IPv4 address, which -6 excludes"),
        ("wait -6 a:1 192.0.2.1:80", "target '192.0.2.1:80': is an IPv4 address, which -6 excludes"),
        ("status -4 [2001:db8::1]:80", "target '[2001:db8::1]:80': is an IPv6 address, which -4 excludes"),
        ("watch -4 -6", "-4 -6: they exclude each other; leave both out for both families"),
        ("watch --interface a/b", "--interface 'a/b': not the name of an interface: 1 to 127 characters"),
        ("watch --netns ..", "--netns '..': neither the name nor the path of a network namespace"),
        ("wait --any --all a:1", "--any --all: they exclude each other"),
        (
            "status --fail-on gatewaysilent a:1",
            "--fail-on gatewaysilent: 'gatewaysilent' is no code of a cause; near it is gateway-silent"
        ),
        ("why --fail-on tsl/reset a:1", "--fail-on tsl/reset: 'tsl' is no layer of a cause; near it is tls"),
        (
            "wait --fail-on loss,frobnicate a:1",
            "--fail-on loss,frobnicate: 'frobnicate' is no code of a cause; docs/command-line.md lists them"
        ),
        (
            "status --fail-on http/certificate-expiring a:1",
            "--fail-on http/certificate-expiring: no cause is 'http/certificate-expiring'; write tls/certificate-expiring"
        ),
        ("wait --fail-on loss,link/loss a:1", "--fail-on loss,link/loss: no cause is 'link/loss'; write quality/loss"),
        (
            "why --fail-on tls/timeout a:1",
            "--fail-on tls/timeout: no cause is 'tls/timeout'; write tcp/timeout or http/timeout or dialogue/timeout"
        ),
        ("status --fail-on loss, a:1", "--fail-on loss,: write codes of causes, as in certificate-expiring,quality/loss"),
        ("watch --time local --json", "--time --json: the times of JSON are always UTC"),
        (
            "probe --time gmt a:1",
            "probe: the value 'gmt' is invalid for '--time <when>'. Please provide one of 'relative', 'local' or 'utc'; see 'netwatch probe --help'"
        ),
        ("wait a:1 ./migrate", "wait './migrate': it is no target; a command follows '--': write -- ./migrate"),
        ("wait ./migrate", "wait './migrate': it is no target; a command follows '--': write -- ./migrate"),
        (
            "wait --timeout 30s a:1 b:2 /bin/echo hi",
            "wait '/bin/echo': it is no target; a command follows '--': write -- /bin/echo"
        ),
        ("wait a:1 make", "target 'make': port: is missing; write make:PORT; a command follows '--': write -- make"),
        ("wait a:1 kubectl apply -f x", "wait 'kubectl': it is no target; a command follows '--': write -- kubectl"),
        ("wait a:1 ./serve --port 1", "wait './serve': it is no target; a command follows '--': write -- ./serve"),
        ("wait make", "target 'make': port: is missing; write make:PORT"),
        ("wait a:1 make -- true", "target 'make': port: is missing; write make:PORT"),
        ("wait --timeout 30s --ani a:1", "wait: unknown option '--ani'. Did you mean '--any'? See 'netwatch wait --help'"),
        ("wait --key=k.pem https://a", "--key k.pem: it needs --cert"),
        (
            "probe --proxy socks5://bob:secret@p:1 https://a",
            "--proxy: probes use proxies of HTTP only; give http:// and a host"
        ),
        ("watch --noproxy * https://a", "--noproxy: it needs --proxy: probes do not use the proxies of the environment"),
        ("wait a:1 --", "wait --: the command is missing; write -- COMMAND"),
        ("record", "record: missing expected argument '<file>'; see 'netwatch record --help'"),
        ("status a:1 b", "target 'b': port: is missing; write b:PORT"),
        ("status a:0", "target 'a:0': port: 0 is not between 1 and 65535"),
        ("status a:65536", "target 'a:65536': port: 65536 is not between 1 and 65535"),
        ("watch ::1:80", "target '::1:80': host: an IPv6 address needs brackets; write [ADDRESS]:PORT"),
        (
            "http://bob:secret@a/",
            "http://bob:***@a/: unknown command; the commands are watch, status, probe, why, wait, get, put, beat, serve, history, report, config, record, replay, schema, help"
        ),
        ("status http://bob:secret@a/", "target 'http://bob:***@a/': host: a user name or password in a URL is not accepted"),
        (
            "watch --json tls://bob:secret@a:1",
            "target 'tls://bob:***@a:1': host: a user name or password does not belong to a TLS target; write tls://HOST:PORT"
        ),
        (
            "probe bob:secret@a:1",
            "target 'bob:***@a:1': host: a user name or password does not belong to a TCP target; write HOST:PORT"
        ),
        ("why a:1 http://bob:secret@a/", "why: unexpected argument 'http://bob:***@a/'; see 'netwatch why --help'"),
        (
            "watch --count http://bob:secret@a/",
            "watch: the value 'http://bob:***@a/' is invalid for '--count <n>'; see 'netwatch watch --help'"
        ),
        (
            "watch --interface http://bob:secret@a/",
            "--interface 'http://bob:***@a/': not the name of an interface: 1 to 127 characters"
        ),
        (
            "status --expect-status 99 https://a",
            "--expect-status: '99' is neither a status code from 100 to 599 nor a range like 200-299"
        ),
        ("status -H Accept https://a", "-H 'Accept': write a field as 'Name: value'"),
        ("status -H Accept: https://a", "-H 'Accept…': the value is missing; 'Accept;' sends the field without one"),
        ("why -H Host:b https://a", "-H 'Host…': header: the probe itself sends 'Host'"),
        (
            "wait --user ada:secret https://a",
            "--user: other users can read a password among the arguments; write --user NAME or --user @FILE"
        ),
        ("why --expect-not-body ( https://a", "--expect-not-body: expression '(': missing ): ("),
        ("why --expect-header Server https://a", "--expect-header Server: write NAME: EXPRESSION"),
        (
            "why --expect-json /a https://a",
            "--expect-json /a: write POINTER equals|differs|above|below|matches VALUE, or POINTER exists [true|false]"
        ),
        ("status --connect /none --expect-size 1-2 a:1", "--connect: --expect-size has no effect on the monitor of the service"),
        (
            "watch --connect /none --expect-header a:b a:1",
            "--connect: --expect-header has no effect on the monitor of the service"
        ),
        ("why --expect-size 3-2 https://a", "--expect-size 3-2: write MIN-MAX, MIN- or -MAX"),
        ("why --expect-body ( https://a", "--expect-body: expression '(': missing ): ("),
        ("status --canary a:1", "--canary 'a:1': write a URL with http or https"),
        ("watch --canary tls://a", "--canary 'tls://a': write a URL with http or https"),
        (
            "why --canary http://bob:secret@a/",
            "--canary 'http://bob:***@a/': host: a user name or password in a URL is not accepted"
        ),
        ("why -6 --canary http://192.0.2.1", "--canary 'http://192.0.2.1': is an IPv4 address, which -6 excludes"),
        ("record -4 --canary http://[::1]/ x", "--canary 'http://[::1]/': is an IPv6 address, which -4 excludes"),
        ("status --canary-body x", "--canary-body: needs --canary"),
        ("wait --canary http://a", "wait: unknown option '--canary'. Did you mean '--any'? See 'netwatch wait --help'"),
        ("watch --certificate-days -1 https://a", "--certificate-days -1: must be from 0 to 36500"),
        ("probe --set ping.count ping://a", "--set ping.count: write KIND.KEY=VALUE, as in ping.count=3"),
        ("probe --set ping.count=0 ping://a", "--set ping.count=0: must be from 1 to 100"),
        ("probe --set http.method=A=B http://a", "--set http.method=A=B: method: 'A=B' is not a method"),
        ("probe --set ping.size=x ping://a", "--set ping.size=x: must be from 0 to 65000"),
        ("probe --set ping.spacing=1h ping://a", "--set ping.spacing=1h: must be from 1ms to 10s"),
        ("probe --set ping.dont_fragment=yes ping://a", "--set ping.dont_fragment=yes: write true or false"),
        ("probe --mark 0x100000000 a:1", "--mark '0x100000000': must be a number from 0 to 0xffffffff"),
        ("why --mark -1 a:1", "--mark '-1': must be a number from 0 to 0xffffffff"),
        (
            "wait --source-address eth0 a:1", "--source-address 'eth0': not the address of a host; write one such as 192.0.2.2"
        ),
        (
            "watch --resolver dns.example a:1",
            "--resolver 'dns.example': not the address of a name server; write one such as 192.0.2.53 or 192.0.2.53:5353"
        ),
        (
            "why --source-address 192.0.2.2 [2001:db8::1]:80",
            "target '[2001:db8::1]:80': has an IPv6 address, and its source address 192.0.2.2 is an IPv4 address"
        ),
        (
            "probe -4 --source-address 2001:db8::2 a:1",
            "target 'a:1': is probed over IPv4 alone, and its source address 2001:db8::2 is an IPv6 address"
        ),
        (
            "status --source-address 192.0.2.2 --canary http://[::1]/",
            "--canary 'http://[::1]/': has an IPv6 address, and its source address 192.0.2.2 is an IPv4 address"
        ),
        ("status --connect /none --mark 7", "--connect: --mark has no effect on the monitor of the service"),
    ])
    func `invalid arguments are usage errors`(line: String, message: String) {
        #expect(throws: Failure(64, message)) {
            try Netwatch.run(line.split(separator: " ").map(String.init))
        }
    }

    @Test(arguments: [
        ("watch ftp://a", "target 'ftp://a': scheme: 'ftp' is not known; write HOST:PORT, or tcp://, tls://, "),
        ("probe --set dialogue.preset=x a:1", "--set dialogue.preset=x: 'x' is not known; write smtp, imap"),
        (
            "probe --set dialogue.steps=hello a:1",
            "--set dialogue.steps=hello: write KEY: VALUE with one of expect, send, starttls"
        ),
        ("probe dialogue://a:1", "target 'dialogue://a:1': needs a dialogue: dialogue.preset or dialogue.steps"),
        ("probe --set ping.cuont=3 ping://a", "--set ping.cuont=3: there is no such key; the keys are tls.server_name, "),
    ])
    func `an unknown kind of target and an unknown key are refused with the known ones`(line: String, beginning: String) {
        let failure = #expect(throws: Failure.self) { try Netwatch.run(line.split(separator: " ").map(String.init)) }
        expectEqual(failure?.message.hasPrefix(beginning), true, "\(String(describing: failure))")
    }

    @Test func `an empty --exec command is refused`() {
        #expect(throws: Failure(64, "--exec: the command is empty")) { try Netwatch.run(["watch", "--exec", " "]) }
    }

    @Test func `a canary body that is empty or too long is refused`() {
        for (text, reason) in [
            ("", "the text is empty"), (String(repeating: "x", count: 2049), "the text is longer than 2048 bytes"),
        ] {
            #expect(throws: Failure(64, "--canary-body: \(reason)")) {
                try Netwatch.run(["status", "--canary", "http://a", "--canary-body", text])
            }
        }
    }

    @Test func `a missing file exits with 66`() {
        #expect(throws: Failure(66, "/nowhere/x: cannot open: No such file or directory")) {
            try Netwatch.run(["replay", "-q", "/nowhere/x"])
        }
    }

    @Test func `a failure is one line whatever its text contains`() {
        expectEqual(Failure(64, "a\nb\u{1b}[2J").line, "netwatch: a b\u{fffd}[2J")
    }

    @Test func `every monitor error has its exit code and remedy`() {
        expectEqual(
            Failure(.noSuchNamespace(.init("x"))),
            Failure(66, "--netns x: no network namespace 'x'; 'ip netns' lists them"))
        expectEqual(Failure(.notPermitted(.init("x"))).code, 77)
        expectEqual(Failure(.system(call: "socket", errno: 1)), Failure(71, "socket: Operation not permitted"))
        expectEqual(
            Failure(.recording(path: "/x/y", errno: ELOOP)).message,
            "/x/y: cannot create: it is a symbolic link, which is not followed; name the file itself")
        expectEqual(Failure(.recording(path: "/x/y", errno: 2)), Failure(73, "/x/y: cannot create: No such file or directory"))
    }
}
