import Console
import Expectations
import Foundation
import NetworkLab
import Reachability
import Testing

@testable import netwatch

@Suite struct TargetFileTests {
    private func targets(_ text: String) throws -> [String] {
        let directory = try Directory()
        let path = "\(directory.path)/targets"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        return try TargetFile.read(path).map(\.text)
    }

    private func failure(_ text: String) throws -> Failure {
        try #require(throws: Failure.self) { try targets(text) }
    }

    @Test func `each line has one target, and comments, blanks and empty lines are ignored`() throws {
        let text = "# servers\n\ndb.example:5432\n  [2001:db8::1]:443\t# the web\r\n\ttcp://192.0.2.1:22   \n#192.0.2.9:1\n"
        try expectEqual(targets(text), ["db.example:5432", "[2001:db8::1]:443", "tcp://192.0.2.1:22"])
        try expectEqual(targets("a:1"), ["a:1"])
    }

    @Test func `a malformed line is an error with code 65 that names the line`() throws {
        let failure = try failure("a:1\n# b\nc:0 # no port\n")
        expectEqual(failure.code, ExitCode.badData)
        #expect(failure.message.contains("line 3: 'c:0': port:"), "\(failure.message)")
    }

    @Test func `the password of a malformed line is not shown`() throws {
        // A quote of a line ends after 100 characters, also within a password.
        for password in ["secret", String(repeating: "secret", count: 40)] {
            let failure = try failure("http://bob:\(password)@host/\n")
            #expect(failure.message.contains("line 1: 'http://bob:***@host/': host: "), "\(failure.message)")
        }
    }

    @Test func `an address of a family that the options exclude is an error that names the line, and a name is not`() throws {
        let directory = try Directory()
        let path = "\(directory.path)/targets"
        try Data("a:1\n[2001:db8::1]:2\n192.0.2.1:3\n".utf8).write(to: URL(fileURLWithPath: path))
        for (families, message) in [
            (Set([IPAddress.Family.v6]), "line 3: '192.0.2.1:3': is an IPv4 address, which -6 excludes"),
            (Set([IPAddress.Family.v4]), "line 2: '[2001:db8::1]:2': is an IPv6 address, which -4 excludes"),
        ] {
            let failure = try #require(throws: Failure.self) { try TargetFile.read(path, families: families) }
            #expect(failure.code == ExitCode.badData && failure.message.hasSuffix(message), "\(failure.message)")
        }
    }

    @Test func `two targets on one line are an error`() throws {
        try expectEqual(failure("a:1 b:2\n").code, ExitCode.badData)
    }

    @Test func `a file without a target is an error with code 65`() throws {
        try expectEqual(failure("# none\n\n").code, ExitCode.badData)
        try expectEqual(failure("").code, ExitCode.badData)
    }

    @Test func `a missing file is an error with code 66`() throws {
        let failure = try #require(throws: Failure.self) { try TargetFile.read("/nonexistent/targets") }
        expectEqual(failure.code, ExitCode.noInput)
    }

    @Test func `text that is not UTF-8 is an error that names the line`() throws {
        let directory = try Directory()
        try Data([0x61, 0x3a, 0x31, 0x0a, 0xff, 0x0a]).write(to: URL(fileURLWithPath: "\(directory.path)/targets"))
        let failure = try #require(throws: Failure.self) { try TargetFile.read("\(directory.path)/targets") }
        #expect(failure.code == ExitCode.badData && failure.message.contains("line 2"))
    }
}
