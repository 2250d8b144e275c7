import Expectations
import Foundation
import Testing

@testable import netwatch_service

@Suite struct WebTextTests {
    @Test(arguments: [
        (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
        (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"), (Int.max, "Thu, 01 Jan 1970 00:00:00 GMT"),
    ])
    func `a date has the form of RFC 9110`(seconds: Int, text: String) {
        expectEqual(HTTPDate.text(seconds), text)
    }

    @Test(arguments: WebProblem.Kind.allCases) func `an error is a document with escaped text`(kind: WebProblem.Kind) throws {
        let hostile = "\"</script>\u{0}\u{202e}\n\\"
        let problem = WebProblem(kind, hostile)
        let object = try #require(try JSONSerialization.jsonObject(with: Data(problem.json)) as? [String: String])
        expectEqual(object, ["error": kind.rawValue, "detail": hostile])
        #expect(problem.json.allSatisfy { 0x20..<0x7f ~= $0 })
        #expect((400..<600).contains(problem.status))
    }
}
