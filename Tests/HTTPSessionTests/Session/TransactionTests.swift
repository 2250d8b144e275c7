import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import Testing

@testable import HTTPSession

/// Metrics of one transaction. ``LifeCycleTests`` has the metrics of a complete task.
@Suite(.timeLimit(.minutes(20))) struct TransactionTests {
    @Test func `metrics count the received bytes of a compressed body before and after decoding`() async throws {
        let body = StubBody.gzipBomb(inflatedBytes: 500_000)
        let server = try TestServer { _ in .gzip(body) }
        let transaction = try #require(
            try await localSession().dataTask(for: TransferRequest(url: server.url())).response.metrics.transactions.first)
        expectEqual(transaction.countOfResponseBodyBytesReceived, body.count)
        expectEqual(transaction.countOfResponseBodyBytesAfterDecoding, 500_000)
        expectEqual(transaction.countOfRequestBodyBytesBeforeEncoding, 0)
    }

    @Test func `metrics count the bytes of a chunked request body before and after framing`() async throws {
        let server = try TestServer { _ in StubResponse() }
        let body = RequestBody.stream(length: nil) {
            let made = Counter()
            return AsyncThrowingStream { made.add() > 5 ? nil : Data(count: 1_000) }
        }
        let request = TransferRequest(url: server.url(), method: .post, body: body)
        let transaction = try #require(try await localSession().dataTask(for: request).response.metrics.transactions.first)
        expectEqual(transaction.countOfRequestBodyBytesBeforeEncoding, 5_000)
        #expect(transaction.countOfRequestBodyBytesSent > 5_000)
        expectEqual(server.requests.first?.bodyLength, 5_000)
    }

    @Test func `metrics have the times of a DNS lookup only if a lookup took place`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let port = Int(server.port)
        let session = try localSession {
            $0.hostOverrides = [.init(host: "known.example", port: port, addresses: ["127.0.0.1"])]
        }
        func transaction(_ host: String) async throws -> TransactionMetrics {
            let url = try #require(URL(string: "http://\(host):\(port)/"))
            return try #require(try await session.dataTask(for: TransferRequest(url: url)).response.metrics.transactions.first)
        }
        let first = try await transaction("localhost")
        let (start, end) = (try #require(first.domainLookupStart), try #require(first.domainLookupEnd))
        #expect(first.fetchStart <= start && start <= end && first.connectStart == end)
        let literal = try await transaction("127.0.0.1")
        #expect(literal.domainLookupStart != nil && !literal.isReusedConnection)
        // The second request reuses the connection, and the overridden name needs no lookup.
        for transaction in [try await transaction("localhost"), try await transaction("known.example")] {
            #expect(transaction.domainLookupStart == nil && transaction.domainLookupEnd == nil)
        }
    }

    @Test func `metrics have the end of the request if libcurl provides it`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x").delayed(.milliseconds(20)) }
        let request = TransferRequest(url: server.url(), method: .put, body: .data(Data(count: 10_000)))
        let transaction = try #require(try await localSession().dataTask(for: request).response.metrics.transactions.first)
        guard CurlLibrary.hasPostTransferTime else {
            expectNil(transaction.requestEnd)
            return
        }
        let (start, end) = (try #require(transaction.requestStart), try #require(transaction.requestEnd))
        let answer = try #require(transaction.responseStart)
        #expect(start <= end && end <= answer)
    }
}
