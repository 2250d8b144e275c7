import Dispatch
import EventLoop
import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import Logging
import Testing

@testable import HTTPSession

/// The items that an outbox hands over at once, and those that wait for later ones.
@Suite(.timeLimit(.minutes(5))) struct SessionOutboxTests {
    private let session: HTTPSessionManager
    private let telemetry: Telemetry
    private let lines = Locked<[String]>([])

    init() throws {
        session = try localSession()
        telemetry = Telemetry(logger: Logger(label: "test") { [lines] _ in LogLines(lines: lines) })
    }

    private func outbox(_ eventMonitors: any EventMonitor...) -> SessionOutbox {
        SessionOutbox(name: "outbox", isInOtherNamespace: false, telemetry: telemetry, eventMonitors: eventMonitors, delay: 10)
    }

    private func task() throws -> TransferTask {
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        return session.dataTask(for: TransferRequest(url: url), startsImmediately: false)
    }

    private func success(of task: TransferTask) -> Result<TransferResponse, HTTPSessionError> {
        .success(TransferResponse(head: ResponseHead(HTTPResponse(status: .ok)), url: task.request.url))
    }

    /// The log lines after everything that has been handed over.
    private func loggedLines(_ outbox: SessionOutbox) -> [String] {
        outbox.queue.sync {}
        return lines.withLock { $0 }
    }

    private func flush(_ outbox: SessionOutbox, now: Int64?) -> Int64? {
        var objects: [any Sendable] = []
        return outbox.flush(releasing: &objects, now: now)
    }

    @Test func `a successful task has its result at once, and its log line when the delay has passed`() throws {
        let (outbox, tasks) = (outbox(), [try task(), try task()])
        outbox.complete(tasks[0], success(of: tasks[0]))
        expectEqual(flush(outbox, now: 100), 110)
        #expect(tasks[0].result != nil)
        outbox.complete(tasks[1], success(of: tasks[1]))
        expectEqual(flush(outbox, now: 109), 110)
        expectEqual(loggedLines(outbox), [])
        expectNil(flush(outbox, now: 110))
        expectEqual(loggedLines(outbox), ["task completed", "task completed"])
        expectNil(flush(outbox, now: 111))
    }

    @Test(arguments: ["failure", "callback", "progress callback", "monitor", "sequence", "another event", "no other task"])
    func `items that somebody may wait for are handed over at once, after earlier ones`(_ kind: String) throws {
        let log = EventLog()
        let outbox = kind == "monitor" ? outbox(log) : outbox()
        let (first, second) = (try task(), try task())
        outbox.complete(first, success(of: first))
        expectEqual(flush(outbox, now: 100), (kind == "monitor" ? nil : 110))
        let called = Counter()
        var events: EventSubscription?
        switch kind {
        case "callback": second.onCompletion(.init(group: nil) { _, _, _ in called.add() })
        case "progress callback": second.onProgress { _ in called.add() }
        case "sequence": events = EventSubscription(outbox)
        case "another event": outbox.announce(.willRetry(second, HTTPSessionError(.timedOut, "test")))
        default: break
        }
        if kind != "another event" {
            outbox.complete(second, kind == "failure" ? .failure(HTTPSessionError(.timedOut, "test")) : success(of: second))
        }
        expectNil(flush(outbox, now: kind == "no other task" ? nil : 101))
        let last = ["failure": "task failed", "another event": "attempt repeated"][kind] ?? "task completed"
        expectEqual(loggedLines(outbox), ["task completed", last])
        switch kind {
        case "callback": expectEqual(called.count, 1)
        case "progress callback":
            // Called on the queue of the task's session.
            session.core.outbox.queue.sync {}
            #expect(called.count <= 1)
        case "monitor": expectEqual(log.names, ["completed", "completed"])
        default: break
        }
        withExtendedLifetime(events) {}
    }

    @Test func `a sequence of events receives none that occurred before it was made`() async throws {
        let (outbox, tasks) = (outbox(), [try task(), try task()])
        outbox.complete(tasks[0], success(of: tasks[0]))
        expectEqual(flush(outbox, now: 100), 110)
        let events = SessionEvents(outbox)
        outbox.complete(tasks[1], success(of: tasks[1]))
        expectNil(flush(outbox, now: 100))
        var iterator = events.makeAsyncIterator()
        guard case .taskCompleted(let task, .success) = await iterator.next() else {
            Issue.record("another event")
            return
        }
        #expect(task === tasks[1])
    }

    @Test func `512 tasks and objects are handed over at once`() throws {
        let outbox = outbox()
        var objects: [any Sendable] = (0..<510).map { $0 }
        expectEqual(outbox.flush(releasing: &objects, now: 100), 110)
        expectEmpty(objects)
        let tasks = [try task(), try task()]
        outbox.complete(tasks[0], success(of: tasks[0]))
        expectEqual(flush(outbox, now: 101), 110)
        outbox.complete(tasks[1], success(of: tasks[1]))
        expectNil(flush(outbox, now: 102))
        expectEqual(loggedLines(outbox).count, 2)
    }

    @Test func `the delay begins with the first item and ends when all are handed over`() {
        var delay = HandoverDelay(duration: 5)
        delay.add(0, now: 1)
        #expect(delay.deadline == nil && !delay.isDue(now: .max))
        delay.add(1, now: 10)
        delay.add(1, now: 14)
        #expect(delay.deadline == 15 && !delay.isDue(now: 14) && delay.isDue(now: 15))
        delay.end()
        #expect(delay.deadline == nil && !delay.isDue(now: .max))
        var none = HandoverDelay(duration: 0)
        none.add(1, now: 10)
        #expect(none.isDue(now: 10))
    }
}
