import Expectations
import Foundation
import Testing

@testable import netwatch_service

@Suite struct WebTextTests {
    @Test(arguments: WebProblem.Kind.allCases) func `an error is a document with escaped text`(kind: WebProblem.Kind) throws {
        let hostile = "\"</script>\u{0}\u{202e}\n\\"
        let problem = WebProblem(kind, hostile)
        let object = try #require(try JSONSerialization.jsonObject(with: Data(problem.json)) as? [String: String])
        expectEqual(object, ["error": kind.rawValue, "detail": hostile])
        #expect(problem.json.allSatisfy { 0x20..<0x7f ~= $0 })
        #expect((400..<600).contains(problem.status))
    }
}
