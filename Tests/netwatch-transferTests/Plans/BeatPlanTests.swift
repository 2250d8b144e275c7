import Console
import Expectations
import Foundation
import Testing

@testable import netwatch_transfer

/// The arguments of `beat`, and what they ask for.
@Suite struct BeatPlanTests {
    private func plan(
        _ name: String? = "backup", service: String? = nil, variable: String? = nil, options: BeatPlan.Options = .init(),
        command: [String] = []
    ) throws(Failure) -> BeatPlan {
        try BeatPlan(name: name, service: (service, variable), options: options, command: command)
    }

    private func message(_ body: () throws(Failure) -> BeatPlan) -> String {
        do throws(Failure) {
            _ = try body()
            return ""
        } catch {
            return error.code == ExitCode.usage ? error.message : "\(error)"
        }
    }

    @Test func `a command is run with its output kept, unless --no-output is given`() throws {
        try expectEqual(plan(command: ["a", "--b"]).action, .run(["a", "--b"], keepsOutput: true))
        try expectEqual(plan(options: .init(dropsOutput: true), command: ["a"]).action, .run(["a"], keepsOutput: false))
    }

    @Test func `without a command an event is reported`() throws {
        try expectEqual(plan().action, .report(.success, .text("")))
        try expectEqual(plan(options: .init(start: true)).action, .report(.start, .text("")))
        try expectEqual(plan(options: .init(fail: true, message: "full")).action, .report(.fail, .text("full")))
        try expectEqual(plan(options: .init(code: 255, readsInput: true)).action, .report(.code(255), .standardInput))
    }

    @Test(
        arguments: [
            (BeatPlan.Options(start: true, fail: true), [], "--start --fail: they exclude each other"),
            (.init(fail: true, code: 0), [], "--fail --code: they exclude each other"),
            (.init(code: 256), [], "--code 256: an exit code is 0 to 255"),
            (.init(code: -1), [], "--code -1: an exit code is 0 to 255"),
            (.init(message: "a", readsInput: true), [], "--message --stdin: they exclude each other"),
            (.init(dropsOutput: true), [], "--no-output: it needs a command; write -- COMMAND"),
            (.init(start: true), ["true"], "--start: it excludes a command, whose exit code and output are reported"),
            (.init(message: ""), ["true"], "--message: it excludes a command, whose exit code and output are reported"),
            (.init(readsInput: true), ["true"], "--stdin: it excludes a command, whose exit code and output are reported"),
        ] as [(BeatPlan.Options, [String], String)])
    func `options that exclude each other are a usage error`(options: BeatPlan.Options, command: [String], expected: String) {
        expectEqual(message { () throws(Failure) in try plan(options: options, command: command) }, expected)
    }

    @Test(arguments: ["", "a b", "a/b", "ä", "a~b", "a%2f", ".", "..", ".a", "123", String(repeating: "a", count: 65)])
    func `a name that a service cannot have is a usage error`(name: String) {
        expectEqual(
            message { () throws(Failure) in try plan(name) },
            "NAME '\(name)': write 1 to 64 letters, digits, dots, underscores or hyphens, no dot first, and not digits alone")
    }

    @Test func `a name is one that a target of a service can have`() throws {
        for name in ["a", "a.B_c-9", "-", "start", String(repeating: "z", count: 64)] {
            try expectEqual(plan(name).name, name)
        }
        expectEqual(
            message { () throws(Failure) in try plan(nil) }, "beat: the name is missing; write: netwatch beat NAME [-- COMMAND]")
    }

    // MARK: The service

    @Test func `a service is a URL, a socket, or that of this machine`() throws {
        try expectEqual(plan(service: "https://h/netwatch//").service, .url("https://h/netwatch"))
        try expectEqual(plan(service: "http://h:9130", variable: "https://other").service, .url("http://h:9130"))
        try expectEqual(plan(variable: "https://other").service, .url("https://other"))
        try expectEqual(plan(service: "/run/a.sock").service, .socket("/run/a.sock"))
        try expectEqual(plan(variable: "").service, .local)
        try expectEqual(plan().service, .local)
    }

    @Test(arguments: [
        ("h:9130", "--service: write http://HOST:PORT, https://HOST, or the absolute path of the service's socket"),
        ("a.sock", "--service: write http://HOST:PORT, https://HOST, or the absolute path of the service's socket"),
        ("", "--service: write http://HOST:PORT, https://HOST, or the absolute path of the service's socket"),
        ("https://ada:secret@h", "--service: the URL has a user; the service takes a token, see --token-file"),
        ("https://h/?a=b", "--service: the URL ends with its path: it has neither '?' nor '#'"),
        ("/" + String(repeating: "a", count: 107), "--service: the path of a socket has at most 107 bytes"),
    ])
    func `a malformed service is a usage error without its secrets`(service: String, expected: String) {
        expectEqual(message { () throws(Failure) in try plan(service: service) }, expected)
        expectEqual(
            message { () throws(Failure) in try plan(service: nil, variable: service.isEmpty ? "x" : service) },
            "NETWATCH_SERVICE" + expected.dropFirst("--service".count))
    }

    @Test func `another scheme is a usage error`() {
        #expect(message { () throws(Failure) in try plan(service: "ftp://h") }.contains("scheme: 'ftp' is not supported"))
    }

    @Test func `the service of this machine is the system's socket, or else that of the user`() {
        expectEqual(
            HeartbeatService.local.sockets(["XDG_RUNTIME_DIR": "/run/user/7"]),
            ["/run/netwatch/api.sock", "/run/user/7/netwatch/api.sock"])
        expectEqual(HeartbeatService.local.sockets(["XDG_RUNTIME_DIR": "relative"]), ["/run/netwatch/api.sock"])
        expectEqual(HeartbeatService.socket("/a").sockets([:]), ["/a"])
        expectEqual(HeartbeatService.url("http://h").sockets([:]), [])
    }

    @Test func `a path is appended to the URL of the service`() {
        expectEqual(
            HeartbeatService.url("https://h/netwatch").url(of: "/api/v1/x?at=1")?.absoluteString,
            "https://h/netwatch/api/v1/x?at=1")
        expectEqual(HeartbeatService.local.url(of: "/api/v1/x")?.absoluteString, "http://localhost/api/v1/x")
    }
}
