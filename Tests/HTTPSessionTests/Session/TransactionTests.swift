import Foundation
import HTTPSessionTestKit
import HTTPTypes
import Testing

@testable import HTTPSession

/// What is measured of one transaction. ``LifeCycleTests`` has a task's whole.
@Suite(.timeLimit(.minutes(20))) struct TransactionTests {
    @Test func `a body is counted as it came and as it was decoded`() async throws {
        let body = StubBody.gzipBomb(inflatedBytes: 500_000)
        let server = try TestServer { _ in .gzip(body) }
        let transaction = try #require(
            try await localSession().data(TransferRequest(url: server.url())).value.metrics.transactions.first)
        #expect(transaction.countOfResponseBodyBytesReceived == body.count)
        #expect(transaction.countOfResponseBodyBytesAfterDecoding == 500_000)
        #expect(transaction.countOfRequestBodyBytesBeforeEncoding == 0)
    }

    @Test func `a body is counted as its source gave it, and with its framing as it went`() async throws {
        let server = try TestServer { _ in StubResponse() }
        let body = RequestBody.stream(length: nil) {
            let made = Counter()
            return AsyncThrowingStream { made.add() > 5 ? nil : Data(count: 1_000) }
        }
        let request = TransferRequest(url: server.url(), method: .post, body: body)
        let transaction = try #require(try await localSession().data(request).value.metrics.transactions.first)
        #expect(transaction.countOfRequestBodyBytesBeforeEncoding == 5_000)
        #expect(transaction.countOfRequestBodyBytesSent > 5_000)
        #expect(server.requests.first?.bodyLength == 5_000)
    }

    @Test func `a look-up begins and ends where there is one`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let port = Int(server.port)
        let session = try localSession {
            $0.hostOverrides = [.init(host: "known.example", port: port, addresses: ["127.0.0.1"])]
        }
        func transaction(_ host: String) async throws -> TransactionMetrics {
            let url = try #require(URL(string: "http://\(host):\(port)/"))
            return try #require(try await session.data(TransferRequest(url: url)).value.metrics.transactions.first)
        }
        let first = try await transaction("localhost")
        let (start, end) = (try #require(first.domainLookupStart), try #require(first.domainLookupEnd))
        #expect(first.fetchStart <= start && start <= end && first.connectStart == end)
        let literal = try await transaction("127.0.0.1")
        #expect(literal.domainLookupStart != nil && !literal.isReusedConnection)
        // On the same connection, and by an address that is known.
        for transaction in [try await transaction("localhost"), try await transaction("known.example")] {
            #expect(transaction.domainLookupStart == nil && transaction.domainLookupEnd == nil)
        }
    }

    @Test func `the end of the request is told by a libcurl that knows it`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x").delayed(.milliseconds(20)) }
        let request = TransferRequest(url: server.url(), method: .put, body: .data(Data(count: 10_000)))
        let transaction = try #require(try await localSession().data(request).value.metrics.transactions.first)
        guard CurlLibrary.hasPostTransferTime else {
            #expect(transaction.requestEnd == nil)
            return
        }
        let (start, end) = (try #require(transaction.requestStart), try #require(transaction.requestEnd))
        let answer = try #require(transaction.responseStart)
        #expect(start <= end && end <= answer)
    }
}
