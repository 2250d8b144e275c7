import EventLoop
import Expectations
import Foundation
import Glibc
import NIOCore
import Testing

@testable import netwatch_service

/// Clients that send many requests without waiting for answers.
@Suite(.timeLimit(.minutes(5))) struct WebPipeliningTests {
    private func requests(_ line: String, _ count: Int) -> String {
        String(repeating: "\(line) HTTP/1.1\r\nHost: localhost\r\n\r\n", count: count)
    }

    @Test func `a connection has one request in flight, and its answers are in order`() async throws {
        let site = try Site()
        try await site.with { site in
            let client = try site.client()
            client.send(requests("GET /api/v1/history?hold", 3) + requests("GET /api/v1/history?last", 1))
            for _ in 0..<3 {
                site.awaitHeld(1)
                // The thread of the server has read the connection before it answers this one.
                try expectEqual(site.client().get("/").status, 200)
                expectEqual(site.held.withLock { $0.count }, 1)
                site.release()
                try expectEqual(client.response().body, #"{"query":"hold"}"#)
            }
            try expectEqual(client.response().body, #"{"query":"last"}"#)
        }
        try await site.stop()
    }

    @Test func `a burst of 1,300 HEAD requests renders nothing, and health is answered`() async throws {
        let site = try Site(board: Site.board(targets: 1_000))
        try await site.with { site in
            let clients = try (0..<4).map { _ in try site.client() }
            for client in clients { client.send(requests("HEAD /api/v1/status?limit=1000", 1_300)) }
            for path in ["/-/healthy", "/-/ready"] { try expectEqual(site.client().get(path).status, 200) }
            for client in clients {
                for _ in 0..<10 { try expectEqual(client.response(toHead: true).status, 200) }
            }
            for client in clients { client.send(requests("HEAD /", 1)) }
            expectEqual(site.rendered.withLock { $0 }, 0)
        }
        try await site.stop()
    }

    @Test func `health and refusals are answered while the thread of documents is busy`() async throws {
        let site = try Site()
        try await site.with { site in
            let waiting = try (0..<20).map { _ in try site.client() }
            try site.block.withLock { _ in
                for client in waiting { client.send(requests("GET /?block", 1) + requests("GET /-/healthy", 1)) }
                let client = try site.client()
                for path in ["/-/healthy", "/-/ready"] {
                    try expectEqual(client.get(path).status, 200)
                    try expectEqual(client.get(path, method: "HEAD").fields["content-length"], "3")
                }
                site.isHealthy.withLock { $0 = false }
                let unhealthy = try client.get("/-/healthy", "Accept: text/html")
                #expect(unhealthy.status == 503 && unhealthy.fields["content-type"] == "application/json")
                try expectEqual(client.get("/-/ready?x=1").status, 200)
                site.isHealthy.withLock { $0 = true }
                expectEqual(site.rendered.withLock { $0 }, 0)
            }
            for client in waiting {
                try expectEqual(client.response().body, "<p>3 block")
                try expectEqual(client.response().body, "ok\n")
            }
        }
        try await site.stop()
    }

    @Test func `documents of closed connections are not rendered`() async throws {
        let queue = try RenderQueue()
        let (client, closed) = (RenderClient(.connection(1), .loopback), RenderClient(.connection(2), .loopback))
        closed.end()
        let document = WholeDocument { [1] }
        await expectEqual(queue.render(document, for: client).map { Array($0.buffer.readableBytesView) }, [1])
        await expectNil(queue.render(document, for: closed))
        await expectNil(queue.run(for: closed) { Issue.record("rendered") })
    }

    @Test func `requests beyond the rate are delayed and answered`() async throws {
        var limits = WebLimits()
        (limits.requestRate, limits.requestBurst) = (1_000, 1)
        let site = try Site(limits: limits)
        try await site.with { site in
            let client = try site.client()
            let began = ContinuousClock.now
            client.send(requests("GET /-/healthy", 200))
            for _ in 0..<200 { try expectEqual(client.response().status, 200) }
            #expect(ContinuousClock.now - began >= .milliseconds(190))
        }
        try await site.stop()
    }

    @Test func `pipelined requests before the end of the input are all answered`() async throws {
        let site = try Site()
        let received = try await site.with { site in
            let client = try site.client()
            client.send(
                requests("GET /", 7) + "POST /-/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"
                    + requests("GET /?end", 2))
            client.endInput()
            return try client.readToEnd()
        }
        expectEqual(received.matches(of: #/HTTP/1\.1 200/#).count, 10)
        #expect(received.hasSuffix("<p>3 end"))
        try await site.stop()
    }

    @Test func `users of the socket share, and connections by TCP do not`() async throws {
        let site = try Site()
        try await site.with { site in
            for _ in 0..<2 {
                let local = try RawClient(path: site.path)
                local.send("GET /api/v1/history HTTP/1.1\r\n\r\n")
                try expectEqual(local.response().status, 200)
                try expectEqual(site.client().get("/api/v1/history").status, 200)
            }
        }
        let clients = site.clients.withLock { $0 }
        expectEqual(clients.filter { $0 == .user(geteuid()) }.count, 2)
        expectEqual(Set(clients).count, 3)
        try await site.stop()
    }

    @Test func `300 streams that begin at once leave health answered`() async throws {
        let site = try Site(board: Site.board(targets: 2_000))
        try await site.with { site in
            let clients = try (0..<300).map { _ in try site.client() }
            for client in clients { client.send(requests("GET /api/v1/events", 1)) }
            for path in ["/-/healthy", "/-/ready"] { try expectEqual(site.client().get(path).status, 200) }
            for client in clients { try expectEqual(client.head().status, 200) }
        }
        try await site.stop()
    }
}
