import Expectations
import Foundation
import Testing

@testable import netwatch_service

@Suite(.timeLimit(.minutes(5))) struct WebStreamTests {
    @Test func `a new stream begins with hello and the present targets, and continues with changes`() async throws {
        let site = try Site()
        try await site.with { site in
            let client = try site.client()
            let head = try client.stream()
            #expect(head.status == 200 && head.fields["content-type"] == "text/event-stream")
            #expect(head.fields["x-accel-buffering"] == "no" && head.fields["cache-control"] == "no-store")
            let first = try client.event()
            #expect(first.type == "hello" && first.id == nil)
            expectEqual(first.data?.contains(#""targets":["a1:80","a2:80","a3:80"]"#), true)
            let targets = try (0..<3).map { _ in try client.event() }
            #expect(targets.map(\.type) == ["target", "target", "target"] && targets.map(\.id) == [nil, nil, "0"])
            let names = #""id":"office","name":null,"group":null,"labels":null"#
            expectEqual(
                targets[0].data?.contains(
                    #"\#(names),"phase":null,"pending":false,"flapping":false,"paused":false,"initial":true"#), true)
            site.appendPath()
            site.change(2)
            let (path, change) = (try client.event(), try client.event())
            #expect(path.type == "path" && path.id == "0")
            #expect(change.type == "target" && change.id == "1" && change.data?.contains(#""seq":1,"#) == true)
        }
        try await site.stop()
    }

    @Test func `a reader that names its last record receives the ones after it`() async throws {
        let site = try Site(board: Site.board(sequence: 4))
        for _ in 0..<5 { site.change(2) }
        for field in ["Last-Event-ID: 2", "X: y"] {
            let ids = try await site.with { site in
                let client = try site.client()
                _ = try client.stream(field == "X: y" ? "/api/v1/events?last_event_id=2" : "/api/v1/events", field)
                return [try client.event(), try client.event()].map(\.id)
            }
            expectEqual(ids, ["3", "4"])
        }
        // The last record is there: the stream is silent until the next one.
        let next = try await site.with { site in
            let client = try site.client()
            _ = try client.stream("/api/v1/events", "Last-Event-ID: 4")
            site.change(3)
            return try client.event()
        }
        expectEqual(next.id, "5")
        try await site.stop()
    }

    @Test(arguments: [
        "0", "-1", "9223372036854775808", "9223372036854775807", "18446744073709551616", "5", "x", "2 ", "", "1.0", "+2", "٣",
        "3",
    ])
    func `a last record that the log does not have begins a new stream`(id: String) async throws {
        // The log has the records 5 and 6 only.
        let site = try Site(log: EventLog.Limits(bytes: 1 << 20, records: 2), board: Site.board(sequence: 6))
        for _ in 0..<7 { site.change(2) }
        let first = try await site.with { site in
            let client = try site.client()
            _ = try client.stream("/api/v1/events", "Last-Event-ID: \(id)")
            return try client.event()
        }
        // A field value has no spaces at its ends.
        #expect(id == "5" ? first.id == "6" : first.type == "hello", "\(first)")
        try await site.stop()
    }

    @Test func `a record of an earlier run of the service begins a new stream`() async throws {
        let (first, second) = (EventFeed(of: 1_795_608_000_000), EventFeed(of: 1_795_608_000_001))
        let site = try Site(events: second, board: Site.board(sequence: 9))
        for _ in 0..<10 { site.change(2) }
        for feed in [first, second] {
            let id = feed.firstID + 4
            let event = try await site.with { site in
                let client = try site.client()
                _ = try client.stream("/api/v1/events", "Last-Event-ID: \(id)")
                return try client.event()
            }
            #expect(feed === second ? event.id == "\(id + 1)" : event.type == "hello", "\(event)")
        }
        try await site.stop()
    }

    @Test(arguments: ["office", "a1:80", "a1"]) func `a stream of one target leaves out the others`(key: String) async throws {
        let site = try Site()
        let events = try await site.with { site in
            let client = try site.client()
            _ = try client.stream("/api/v1/events?target=\(key)")
            var events = [try client.event(), try client.event()]
            site.change(2)
            site.appendPath()
            site.change(1)
            events += [try client.event(), try client.event()]
            return events
        }
        expectEqual(events.map(\.type), ["hello", "target", "path", "target"])
        expectEqual(events[0].data?.contains(#""targets":["a1:80"]"#), true)
        expectEqual(events[3].data?.contains(#""target":"a1:80""#), true)
        try await site.stop()
    }

    @Test func `a silent stream has comments`() async throws {
        var limits = WebLimits()
        limits.keepAliveTime = WebLimits.second / 20
        let site = try Site(limits: limits)
        try await site.with { site in
            let client = try site.client()
            _ = try client.stream()
            _ = try client.read(until: ": nothing new\n\n")
            _ = try client.read(until: ": nothing new\n\n")
        }
        try await site.stop()
    }

    @Test func `a slow reader loses the records that newer ones replace, and receives their number`() async throws {
        let log = EventLog.Limits(bytes: 4 << 20, records: 100_000, unread: 1 << 16)
        let site = try Site(log: log)
        let (records, superseded, last) = try await site.with { site in
            // The kernel keeps less of a Unix socket than of a TCP connection.
            let client = try RawClient(path: site.path)
            _ = try client.stream()
            for _ in 0..<4 { _ = try client.event() }
            for _ in 0..<3_000 { site.change(2) }
            site.change(3)
            var (records, superseded) = (0, 0)
            while true {
                let event = try client.event()
                guard event.type == "target" else { continue }
                records += 1
                if let match = event.data?.firstMatch(of: #/"superseded":(\d+)}/#) { superseded += Int(match.1) ?? 0 }
                if event.data?.contains("a3:80") == true { return (records, superseded, event.id) }
            }
        }
        #expect(records + superseded == 3_001 && records < 3_001, "\(records) received, \(superseded) superseded")
        expectEqual(last, "3000")
        try await site.stop()
    }

    @Test func `a reader that is too slow for the log begins again`() async throws {
        let site = try Site(log: EventLog.Limits(bytes: 1 << 16, records: 100, unread: 1 << 20))
        let types = try await site.with { site in
            // The kernel keeps less of a Unix socket than of a TCP connection.
            let client = try RawClient(path: site.path)
            _ = try client.stream()
            for _ in 0..<4 { _ = try client.event() }
            for _ in 0..<3_000 { site.change(2) }
            site.boards.publish(Site.board(sequence: site.events.last))
            var types: [String] = []
            while true {
                let event = try client.event()
                if event.type == "hello" { return types + ["hello"] }
                types.append(event.type ?? "")
            }
        }
        expectEqual(types.last, "hello")
        try await site.stop()
    }

    @Test func `streams above their number are refused, and a closed stream frees its place`() async throws {
        var limits = WebLimits()
        limits.streams = 2
        let site = try Site(limits: limits)
        try await site.with { site in
            var open = try (0..<2).map { _ in
                let client = try site.client()
                try expectEqual(client.stream().status, 200)
                return client
            }
            let refused = try site.client().stream()
            #expect(refused.status == 503 && refused.fields["retry-after"] == "1")
            // Documents have places of their own.
            try expectEqual(site.client().get("/api/v1/status").status, 200)
            open.removeLast()
            // The server learns of it from the kernel, at some time.
            let deadline = Date(timeIntervalSinceNow: 120)
            var status = 503
            while status == 503, Date() < deadline { status = try site.client().stream().status }
            expectEqual(status, 200)
        }
        try await site.stop()
    }

    @Test func `stopping ends streams and refuses connections`() async throws {
        var limits = WebLimits()
        limits.drainTime = 60 * WebLimits.second
        let site = try Site(limits: limits)
        let client = try await site.with { site in
            let client = try site.client()
            _ = try client.stream()
            for _ in 0..<4 { _ = try client.event() }
            return client
        }
        // The server waits until the client, which sees the end of the stream, ends the connection too.
        async let end = onThread {
            let text = try client.readToEnd()
            client.endInput()
            return text
        }
        try await site.stop()
        #expect(try await end.hasSuffix("0\r\n\r\n"))
        await #expect(throws: RawClient.ClientError.self) { try await site.with { try $0.client() } }
    }
}
