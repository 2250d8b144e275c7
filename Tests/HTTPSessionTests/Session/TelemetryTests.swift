import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import Metrics
import MetricsTestKit
import NetworkLab
import Testing

/// Values that the metrics back end receives. Each test runs in its own process, because a process chooses its back end once.
@Suite(.timeLimit(.minutes(20))) struct TelemetryTests {
    @Test func `tasks are counted by kind and outcome, and the duration of successful tasks is recorded`() async {
        await #expect(processExitsWith: .success) {
            let metrics = TestMetrics()
            MetricsSystem.bootstrap(metrics)
            let server = try TestServer { request in
                request.path == "/lost" ? .none() : StubResponse(Int(request.path.dropFirst()) ?? 200, body: "x")
            }
            let (log, folder) = (EventLog(), try ScratchDirectory())
            let session = try HTTPSessionManager(configuration: localConfiguration(), eventMonitors: [log])
            for path in ["/200", "/204", "/404", "/lost"] {
                _ = await failure(session.dataTask(for: TransferRequest(url: server.url(path))))
            }
            let body = RequestBody.data(Data("y".utf8))
            _ = try await session.dataTask(for: TransferRequest(url: server.url("/500"), method: .put, body: body)).response
            let refused = session.downloadTask(for: TransferRequest(url: server.url("/403")), to: .init(folder.url("file")))
            try #require(await failure(refused)?.code == .unacceptableStatus)
            session.cancel(afterTasks: true)
            // The invalidation is delivered after the counters are updated.
            _ = await log.awaitInvalidation()
            func count(_ kind: String, _ outcome: String) throws -> Int64 {
                try metrics.expectCounter("http_session_tasks_total", [("kind", kind), ("outcome", outcome)]).totalValue
            }
            try #require(count("data", "2xx") == 2)
            try #require(count("data", "4xx") == 1)
            try #require(count("data", "connection-lost") == 1)
            try #require(count("upload", "5xx") == 1)
            try #require(count("download", "unacceptable-status") == 1)
            try #require(metrics.counterTotal(label: "http_session_tasks_total") == 6)
            let durations = try metrics.expectTimer("http_session_task_duration", [("kind", "data")])
            try #require(durations.values.count == 3 && durations.values.allSatisfy { $0 > 0 && $0 < 600_000_000_000 })
            try #require(try metrics.expectTimer("http_session_task_duration", [("kind", "upload")]).values.count == 1)
            try #require(metrics.timers.count == 2)
            try #require(metrics.counters(label: "http_session_tasks_total").count == 5)
        }
    }

    @Test func `retries and resumed bytes are counted`() async {
        await #expect(processExitsWith: .success) {
            let metrics = TestMetrics()
            MetricsSystem.bootstrap(metrics)
            let server = try TestServer { request in
                let part = request["range"] != nil
                let reply = StubResponse(
                    part ? 206 : 200, fields: ["ETag": "\"1\""],
                    body: StubBody([.pattern(from: part ? 50_000 : 0, count: 50_000)]))
                return part
                    ? reply.field("Content-Range", "bytes 50000-99999/100000")
                    : reply.declaredLength(100_000)
            }
            let (log, folder) = (EventLog(), try ScratchDirectory())
            let session = try HTTPSessionManager(
                configuration: localConfiguration {
                    $0.retryPolicy = RetryPolicy(baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
                }, eventMonitors: [log])
            _ = try await session.downloadTask(for: TransferRequest(url: server.url()), to: .init(folder.url("file"))).response
            session.cancel(afterTasks: true)
            _ = await log.awaitInvalidation()
            try #require(try Data(contentsOf: folder.url("file")) == pattern(100_000))
            try #require(try metrics.expectCounter("http_session_retries_total").totalValue == 1)
            try #require(try metrics.expectCounter("http_session_resumed_bytes_total").totalValue == 50_000)
            let tasks = try metrics.expectCounter(
                "http_session_tasks_total", [("kind", "download"), ("outcome", "2xx")])
            try #require(tasks.totalValue == 1)
        }
    }

    @Test func `the labels of metrics do not depend on hosts, URLs or status codes`() async {
        await #expect(processExitsWith: .success) {
            let metrics = TestMetrics()
            MetricsSystem.bootstrap(metrics)
            let server = try TestServer { StubResponse(Int($0.path.dropFirst()) ?? 200, body: "x") }
            let log = EventLog()
            let session = try HTTPSessionManager(configuration: localConfiguration(), eventMonitors: [log])
            for status in Array(200...299).filter({ $0 != 204 }) + Array(404..<504) {
                _ = try await session.dataTask(for: TransferRequest(url: server.url("/\(status)?s3cret=\(status)"))).response
            }
            session.cancel(afterTasks: true)
            _ = await log.awaitInvalidation()
            let dimensions = metrics.counters.map(\.dimensions) + metrics.timers.map(\.dimensions)
            try #require(dimensions.count == 4)
            let values = Set(dimensions.flatMap { $0.map { "\($0.0)=\($0.1)" } })
            try #require(values == ["kind=data", "outcome=2xx", "outcome=4xx", "outcome=5xx"])
        }
    }
}
