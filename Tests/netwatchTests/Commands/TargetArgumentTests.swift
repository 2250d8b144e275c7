import Expectations
import Testing

@testable import Console
@testable import netwatch

/// Long lists of targets on a command line, which the parser receives as one argument.
@Suite struct TargetArgumentTests {
    /// Returns the targets that `status` has parsed. One of them must be malformed, so that the command ends before any work.
    private func parsed(_ arguments: [String]) -> [String] {
        var targets: [String] = []
        #expect(throws: Failure.self) {
            try CommandProgram.run(Netwatch.self, TargetArguments.join(["status"] + arguments)) { command in
                targets = (command as? StatusCommand)?.targets.targets ?? []
                return command
            }
        }
        return targets
    }

    @Test func `arguments are joined from the third in a row`() {
        expectEqual(TargetArguments.join(["status", "a:1", "b:1", "c:1"]), ["status", "a:1", "b:1\0c:1"])
        expectEqual(TargetArguments.join(["status", "a:1"]), ["status", "a:1"])
        expectEqual(TargetArguments.join(["status"]), ["status"])
        expectEqual(TargetArguments.join([]), [])
    }

    @Test func `options and their values, and the file of record, stay arguments of their own`() {
        expectEqual(
            TargetArguments.join(["record", "--for", "1s", "file", "a:1", "b:1", "--json", "c:1"]),
            ["record", "--for", "1s", "file", "a:1\0b:1", "--json", "c:1"])
        expectEqual(TargetArguments.join(["record", "-", "a:1", "b:1", "c:1"]), ["record", "-", "a:1", "b:1", "c:1"])
        expectEqual(TargetArguments.join(["status", "--", "-a:1", "-b:1", "-c:1"]), ["status", "--", "-a:1", "-b:1", "-c:1"])
    }

    @Test(arguments: [
        ["replay", "f", "g", "h", "i"], ["get", "http://a", "http://b", "http://c"], ["help", "status", "x", "y"],
    ])
    func `arguments of commands without targets are not joined`(arguments: [String]) {
        expectEqual(TargetArguments.join(arguments), arguments)
    }

    @Test func `the targets keep their order among options, and empty ones remain`() {
        expectEqual(
            parsed(["a:1", "", "", "b:1", "--interface", "lo", "c:1", "d:1", "\u{301}e:1", "--json", "f:1"]),
            ["a:1", "", "", "b:1", "c:1", "d:1", "\u{301}e:1", "f:1"])
    }

    @Test func `a wrong target among many is named alone`() {
        #expect(throws: Failure(64, "target 'c': port: is missing; write c:PORT")) {
            try Netwatch.run(["status", "a:1", "b:1", "c", "d:1"])
        }
        #expect(throws: Failure(64, "why: unexpected argument 'b:1'; see 'netwatch why --help'")) {
            try Netwatch.run(["why", "a:1", "b:1", "c:1", "d:1"])
        }
    }

    // One by one, the parser takes a minute for them in a release build.
    @Test(.timeLimit(.minutes(1))) func `50,000 targets are parsed`() {
        let targets = (1..<50_000).map { "n\($0).example:9" } + ["malformed"]
        expectEqual(parsed(targets), targets)
    }
}
