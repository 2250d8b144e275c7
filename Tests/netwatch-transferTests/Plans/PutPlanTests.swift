import Console
import Expectations
import Foundation
import Testing

@testable import netwatch_transfer

@Suite struct PutPlanTests {
    @Test(arguments: [
        ("http://h/a/b", "http://h/a/b"), ("http://h/a/", "http://h/a/my%20file"), ("http://h", "http://h/my%20file"),
        ("http://h/a/?x=1", "http://h/a/my%20file?x=1"), ("http://u:p@h/", "http://u:p@h/my%20file"),
    ]) func `the file's name is appended to a URL that ends with a slash`(address: String, target: String) throws {
        let plan = try PutPlan(file: "dir/my file", url: address)
        expectEqual(plan.target.absoluteString, target)
        expectEqual(plan.name, "my file")
    }

    @Test func `users and passwords are not shown`() throws {
        try expectEqual(PutPlan(file: "a", url: "http://user:word@h/a").address, "http://h/a")
    }

    @Test(arguments: [
        ("", "http://h/a", "FILE ''"), ("-", "http://h/a", "FILE '-'"), ("a", "h/a", "URL 'h/a'"),
        ("a", "ftp://h/a", "URL 'ftp://h/a'"),
    ]) func `invalid arguments of put are usage errors`(file: String, url: String, subject: String) {
        let failure = #expect(throws: Failure.self) { try PutPlan(file: file, url: url) }
        expectEqual(failure?.code, ExitCode.usage)
        expectEqual(failure?.line.hasPrefix("netwatch: \(subject): "), true)
    }
}
