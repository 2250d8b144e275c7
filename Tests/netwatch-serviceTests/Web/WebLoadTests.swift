import Console
import EventLoop
import Expectations
import Foundation
import NetworkLab
import Testing

@testable import netwatch_service

/// Clients that take places and do not use them.
@Suite(.timeLimit(.minutes(5))) struct WebLoadTests {
    @Test func `200 idle connections and 200 unfinished requests do not keep a client out`() async throws {
        var limits = WebLimits()
        (limits.waiting, limits.connections) = (64, 64)
        // Only the arrival of others ends a connection.
        (limits.headTime, limits.idleTime) = (3_600 * WebLimits.second, 3_600 * WebLimits.second)
        let site = try Site(limits: limits)
        try await site.with { site in
            var clients: [RawClient] = []
            for number in 0..<400 {
                let client = try site.client()
                if number % 2 == 1 { client.send("GET /-/healthy HTTP/1.1\r\nHo") }
                clients.append(client)
            }
            try expectEqual(site.client().get("/-/healthy").status, 200)
            try expectEqual(site.client().get("/").status, 200)
            #expect(site.server.connectionCount <= 80)
            // The oldest ones were closed for the others.
            try expectEqual(clients[0].readToEnd(), "")
        }
        try await site.stop()
    }

    @Test func `a connection that ends before its first request is complete is closed at once`() async throws {
        let site = try Site()
        try await site.with { site in
            for part in ["", "G", "GET / HTTP/1.1\r\nHost: localhost\r\n"] {
                let client = try site.client()
                client.send(part)
                client.endInput()
                try expectEqual(client.readToEnd(), "")
            }
            let complete = try site.client()
            complete.send("GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n")
            complete.endInput()
            try expectEqual(complete.response().status, 200)
        }
        try await site.stop()
    }

    @Test func `the kernel keeps as many connections for the server as it asked for`() async throws {
        let site = try Site()
        let program = try Program(["ss", "-H", "-l", "-t", "-n", "sport = :\(site.port)"], output: .file)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        // The third column of a listening socket is its backlog (`man 8 ss`).
        let backlog = program.output.split(separator: " ").dropFirst(2).first.flatMap { Int32($0) }
        let maximum = try String(contentsOfFile: "/proc/sys/net/core/somaxconn", encoding: .utf8)
        expectEqual(backlog, min(ListeningSocket.backlog, Int32(maximum.prefix { $0.isNumber }) ?? 0), "\(program.output)")
        try await site.stop()
    }

    @Test func `if all connections answer requests, the reserve still answers for the state of the service`() async throws {
        var limits = WebLimits()
        limits.connections = 2
        limits.reserve = 2
        let site = try Site(limits: limits)
        try await site.with { site in
            let busy = try (0..<2).map { _ in try site.client() }
            for client in busy { client.send("GET /api/v1/history?hold HTTP/1.1\r\nHost: localhost\r\n\r\n") }
            let deadline = Date(timeIntervalSinceNow: 120)
            while site.held.withLock({ $0.count }) < 2, Date() < deadline { sched_yield() }
            // Idle connections take the reserve, and are replaced.
            let idle = try (0..<8).map { _ in try site.client() }
            try expectEqual(site.client().get("/-/healthy").status, 200)
            let refused = try site.client().get("/")
            #expect(refused.status == 503 && refused.body.contains("too many connections"))
            site.release()
            for client in busy { try expectEqual(client.response().status, 200) }
            try expectEqual(site.client().get("/").status, 200)
            withExtendedLifetime(idle) {}
        }
        try await site.stop()
    }

    @Test func `documents wait while others are unread, and the client that reads nothing for the longest time is closed`()
        async throws
    {
        let site = try Site(unread: RenderQueue.UnreadLimit(documents: 2, bytes: 1 << 20))
        try await site.with { site in
            // More than the kernel's buffers can have.
            let deaf = try (0..<3).map { _ in
                let client = try site.client()
                client.send("GET /?large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                return client
            }
            // Each of the others can only be rendered if one of those is closed.
            try expectEqual(site.client().get("/").status, 200)
            #expect(site.rendered.withLock { $0 } >= 3)
            #expect(try deaf.contains { try $0.readToEnd().utf8.count < 32 << 20 })
            #expect(site.server.connectionCount <= 4)
        }
        try await site.stop()
    }

    @Test func `documents of clients that read nothing are counted until the kernel has them, and do not stop others`()
        async throws
    {
        let site = try Site(unread: RenderQueue.UnreadLimit(documents: 1, bytes: 1))
        try await site.with { site in
            // A client asks for one document after another, until the kernel takes no more. The last ones are complete, and in the channel.
            let deaf = try site.client()
            let request = "GET /?medium HTTP/1.1\r\nHost: localhost\r\n\r\n"
            deaf.send(String(repeating: request, count: 20))
            for _ in 0..<5 { try expectEqual(site.client().get("/").status, 200) }
            withExtendedLifetime(deaf) {}
        }
        try await site.stop()
    }

    @Test func `a client that reads nothing gives its place to another`() async throws {
        var limits = WebLimits()
        (limits.connections, limits.streams, limits.reserve) = (2, 1, 0)
        let site = try Site(limits: limits, log: EventLog.Limits(bytes: 4 << 20, records: 10_000, unread: 4 << 20))
        try await site.with { site in
            let silent = try (0..<2).map { _ in
                // A connection without a request would be closed while the other tests have all threads.
                let client = try RawClient(path: site.path)
                client.send("GET /script.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
                _ = try client.read(until: "\r\n\r\n")
                return client
            }
            #expect(try site.retried { try site.client().get("/").status == 200 })
            let reader = try RawClient(path: site.path)
            _ = try reader.stream()
            for _ in 0..<3_000 { site.change(2) }
            #expect(try site.retried { try site.client().stream().status == 200 })
            withExtendedLifetime(silent) {}
        }
        try await site.stop()
    }

    @Test func `connections without a complete request are closed after a time`() async throws {
        var limits = WebLimits()
        (limits.headTime, limits.contentTime, limits.idleTime) = (
            WebLimits.second / 5, WebLimits.second / 5, WebLimits.second / 5
        )
        (limits.checkTime, limits.lingerTime) = (WebLimits.second / 20, WebLimits.second / 20)
        let site = try Site(limits: limits)
        try await site.with { site in
            let silent = try site.client()
            try expectEqual(silent.readToEnd(), "")
            let unfinished = try site.client()
            unfinished.send("GET / HTTP/1.1\r\n")
            try expectEqual(unfinished.readToEnd(), "")
            let content = try site.client()
            content.send("POST /-/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nab")
            try expectEqual(content.readToEnd(), "")
            let idle = try site.client()
            try expectEqual(idle.get("/-/healthy").status, 200)
            try expectEqual(idle.readToEnd(), "")
        }
        try await site.stop()
    }

    @Test func `a client that reads nothing is closed`() async throws {
        var limits = WebLimits()
        (limits.stallTime, limits.checkTime) = (WebLimits.second / 5, WebLimits.second / 20)
        let site = try Site(limits: limits)
        try await site.with { site in
            let client = try RawClient(path: site.path)
            client.send(String(repeating: "GET /script.js HTTP/1.1\r\nHost: localhost\r\n\r\n", count: 9))
            _ = try client.read(until: "\r\n\r\n")
            let deadline = Date(timeIntervalSinceNow: 120)
            while site.server.connectionCount > 0, Date() < deadline { sched_yield() }
            expectEqual(site.server.connectionCount, 0)
        }
        try await site.stop()
    }

    @Test func `a content of a gigabyte is refused at its head, and its client can read why`() async throws {
        let site = try Site()
        let status = try await site.with { site in
            let client = try site.client()
            client.send("POST /-/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n")
            // What the server does not read does not hide its answer.
            client.send([UInt8](repeating: 0, count: 1 << 20))
            let status = try client.response().status
            _ = try client.readToEnd()
            return status
        }
        expectEqual(status, 413)
        try await site.stop()
    }

    @Test func `a socket of a former run is replaced, and one in use is an error`() async throws {
        let directory = try ScratchDirectory()
        let path = directory.file("api.sock")
        let first = try ListeningSocket.unix(path: path, mode: 0o600)
        #expect(throws: Failure(71, "\(path): another process listens there")) {
            try ListeningSocket.unix(path: path, mode: 0o600)
        }
        close(first.descriptor)
        let second = try ListeningSocket.unix(path: path, mode: 0o600)
        close(second.descriptor)
        let port = try ListeningSocket.tcp(ListenAddress("127.0.0.1:0"))
        let number = try #require(port.endpoint?.port)
        #expect(throws: Failure(71, "--listen 127.0.0.1:\(number): another process listens there")) {
            try ListeningSocket.tcp(ListenAddress("127.0.0.1:\(number)"))
        }
        // The service manager gives sockets as descriptors.
        let inherited = try ListeningSocket(inherited: port.descriptor)
        #expect(inherited.endpoint?.port == number && inherited.path == nil)
        #expect(throws: Failure.self) { try ListeningSocket(inherited: 0) }
        close(port.descriptor)
    }
}
