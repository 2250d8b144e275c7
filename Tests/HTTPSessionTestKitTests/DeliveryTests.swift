import EventLoop
import Expectations
import FoundationEssentials
import HTTPSessionTestKit
import Testing

@Suite(.timeLimit(.minutes(20)))
struct DeliveryTests {
    @Test func `the delivery of each response is reported once, with the bytes that the other side's kernel has`() async throws {
        let reported = Locked<[String]>([])
        let bytes = Locked<[TestServer.Delivery]>([])
        var configuration = TestServer.Configuration()
        configuration.onDelivery = { request, delivery in
            reported.withLock { $0.append(request.path) }
            bytes.withLock { $0.append(delivery) }
        }
        let server = try TestServer(configuration: configuration) { request in
            switch request.path {
            case "/whole": StubResponse(body: .pattern(1_000))
            case "/cut": StubResponse(body: .pattern(1_000)).cut(afterBodyBytes: 300)
            default: StubResponse(body: .pattern(1 << 30))
            }
        }
        do {
            let client = try RawClient(server)
            try client.get("/whole")
            _ = client.read(until: "\r\n\r\n")
            try client.get("/endless")
            // More than a kernel takes for a client that reads nothing.
            try await server.awaitSeen { $0.sentBodyBytes > 400_000 }
            expectEqual(reported.withLock { $0 }, ["/whole"])
        }
        try await server.awaitOpenConnections(0)
        do {
            let client = try RawClient(server)
            try client.get("/cut")
            expectEqual(client.readToEnd().end, .closed)
        }
        try await server.awaitOpenConnections(0)
        expectEqual(reported.withLock { $0 }, ["/whole", "/endless", "/cut"])
        let deliveries = bytes.withLock { $0 }
        expectEqual(deliveries.map(\.sentBytes).reduce(0, +), server.seen.sentBodyBytes)
        expectEqual(deliveries[0], .init(sentBytes: 1_000, transmittedBytes: 1_000, acknowledgedBytes: 1_000))
        #expect((1..<deliveries[1].sentBytes).contains(deliveries[1].transmittedBytes), "\(deliveries[1])")
        #expect((1...deliveries[1].transmittedBytes).contains(deliveries[1].acknowledgedBytes), "\(deliveries[1])")
        expectEqual(deliveries[2], .init(sentBytes: 300, transmittedBytes: 300, acknowledgedBytes: 300))
    }
}
