import Expectations
import Foundation
import HTTPTypes
import Testing

@testable import HTTPSession

@Suite struct RecentResponsesTests {
    private func response(bytes: Int = 1) throws -> TransferResponse {
        TransferResponse(
            head: ResponseHead(HTTPResponse(status: .ok)), url: try #require(URL(string: "https://example.com/")),
            data: Data(count: bytes))
    }

    @Test func `a response is kept for at least the duration, and for less than three times that`() throws {
        var responses = RecentResponses(duration: 10)
        responses.add(try response(), now: 100)
        expectEqual(responses.deadline, 110)
        responses.add(try response(), now: 109)
        responses.expire(now: 109)
        #expect(responses.count == 2 && responses.deadline == 110)
        responses.expire(now: 110)
        #expect(responses.count == 2 && responses.deadline == 120)
        responses.add(try response(), now: 119)
        responses.expire(now: 120)
        #expect(responses.count == 1 && responses.deadline == 130)
        responses.expire(now: 130)
        #expect(responses.count == 0 && responses.deadline == nil)
    }

    @Test func `a large response is not kept`() throws {
        var responses = RecentResponses(duration: 10)
        responses.add(try response(bytes: 64 << 10), now: 100)
        responses.add(try response(bytes: (64 << 10) + 1), now: 100)
        expectEqual(responses.count, 1)
    }

    @Test func `at most 1,024 responses are kept`() throws {
        var responses = RecentResponses(duration: 10)
        let response = try response()
        for _ in 0..<5_000 {
            responses.add(response, now: 100)
            #expect(responses.count <= 1_024)
        }
        #expect(responses.count > 512)
    }

    @Test func `all responses are released when no task is under way`() throws {
        var responses = RecentResponses(duration: 10)
        responses.add(try response(), now: 100)
        responses.expire(now: 110)
        responses.add(try response(), now: 111)
        responses.removeAll()
        #expect(responses.count == 0 && responses.deadline == nil)
        responses.add(try response(), now: 200)
        expectEqual(responses.deadline, 210)
    }

    @Test func `a session without a delay keeps no response`() throws {
        var responses = RecentResponses(duration: 0)
        responses.add(try response(), now: 100)
        #expect(responses.count == 0 && responses.deadline == nil)
    }
}
