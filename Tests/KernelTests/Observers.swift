import Dispatch
import Foundation
import Glibc
import NetworkLab
import Reachability
import EventLoop

/// The longest time that a test waits for an expected event.
let patience = Duration.seconds(120)

/// An observer of paths.
protocol Observer: AnyObject {
    /// The observer's name in messages of failed tests.
    var name: String { get }
    /// The next published path; `nil` at the end. - Throws: if no path comes in time.
    func nextPath() throws -> Seen?
}

/// A monitor of the library in this process.
final class LibraryObserver: Observer {
    let name = "library"
    let session: MonitorSession
    private let events: EventQueue
    private var latestLine: String?

    init(_ configuration: MonitorConfiguration) throws {
        let events = EventQueue()
        self.events = events
        session = try MonitorSession(configuration) { events.put($0) }
    }

    deinit { session.stop() }

    /// The next event of any kind.
    func nextEvent() throws -> MonitorEvent { try events.next() }

    func nextPath() throws -> Seen? {
        while true {
            switch try nextEvent() {
            case .path(let update): return Seen(update)
            case .ended: return nil
            case .server, .probe, .incident, .resync, .gap: continue
            }
        }
    }

    /// The monitor's state after it has read all that the kernel sent before this call.
    func state() throws -> MonitorState {
        // The first answer comes at a turn's end. Messages that the kernel sent before it are read in the turn of the second
        // answer.
        _ = try answer { session.withState($0) }
        return try answer { session.withState($0) }
    }
}

/// A queue of events. Another thread puts them in, and a test takes them out in order.
final class EventQueue: Sendable {
    private let events = Locked<[MonitorEvent]>([])
    private let count = DispatchSemaphore(value: 0)

    func put(_ event: MonitorEvent) {
        events.withLock { $0.append(event) }
        count.signal()
    }

    /// The next event, or `nil` if none has arrived.
    func takeNow() -> MonitorEvent? {
        guard count.wait(timeout: .now()) == .success else { return nil }
        return events.withLock { $0.removeFirst() }
    }

    func next(within limit: Duration = patience) throws -> MonitorEvent {
        guard count.wait(timeout: .now() + limit / .seconds(1)) == .success else { throw LabError("no event within \(limit)") }
        return events.withLock { $0.removeFirst() }
    }
}

/// Waits for the value that `ask` passes to its closure on another thread.
func answer<Value: Sendable>(_ ask: (@escaping @Sendable (Value) -> Void) -> Void) throws -> Value {
    let box = Box<Value>()
    ask { box.fill($0) }
    return try box.wait()
}

private final class Box<Value: Sendable>: Sendable {
    private let value = Locked<Value?>(nil)
    private let isFilled = DispatchSemaphore(value: 0)

    func fill(_ value: Value) {
        self.value.withLock { $0 = value }
        isFilled.signal()
    }

    func wait() throws -> Value {
        guard isFilled.wait(timeout: .now() + patience / .seconds(1)) == .success, let value = value.withLock({ $0 }) else {
            throw LabError("no answer of the monitor within \(patience)")
        }
        return value
    }
}

/// The built program: `netwatch watch --json`.
final class ProgramObserver: Observer {
    let name = "program"
    let program: Program
    /// The first record.
    private(set) var hello: [String: Any] = [:]
    private var upcoming: Seen?
    private var nextSeq = 0

    init(watching namespace: String, _ options: [String] = [], command: String = "watch") throws {
        program = try Program([Programs.netwatch, command, "--json", "--netns", namespace] + options)
        guard let hello = try nextRecord(), let path = hello["path"] as? [String: Any] else {
            throw LabError("no hello; stderr: \(program.standardError)")
        }
        self.hello = hello
        upcoming = try Seen(record: path)
    }

    /// The next record of any type; `nil` at the end of the output.
    func nextRecord() throws -> [String: Any]? {
        guard let line = try program.nextLine(within: patience) else { return nil }
        guard let record = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] else {
            throw LabError("not a JSON object: \(line)")
        }
        guard record["v"] as? Int == 1, record["seq"] as? Int == nextSeq, record["ts"] is String, record["mono_ns"] is Int else {
            throw LabError("not the record number \(nextSeq): \(line)")
        }
        nextSeq += 1
        return record
    }

    func nextPath() throws -> Seen? {
        if let path = upcoming {
            upcoming = nil
            return path
        }
        while let record = try nextRecord() {
            if record["type"] as? String == "path" { return try Seen(record: record) }
        }
        return nil
    }
}

extension LibraryObserver {
    /// The line of the last path published so far.
    func latestPath() throws -> String? {
        while let event = events.takeNow() {
            if case .path(let update) = event { latestLine = Seen(update).line }
        }
        return latestLine
    }

    /// The monitor's state once it is settled: it has read the kernel's messages and completed its dumps and queries.
    func settledState(within limit: Duration = patience) throws -> MonitorState {
        let end = ContinuousClock.now + limit
        while true {
            let state = try state()
            if state.isIdle { return state }
            guard ContinuousClock.now < end else { throw LabError("the monitor did not settle within \(limit)") }
            // The monitor runs again at its deadline, and ends a turn there.
            let left = (state.deadline ?? 0) - monotonicNanoseconds()
            poll(nil, 0, Int32(clamping: max(1, min(left / 1_000_000 + 1, 100))))
        }
    }

    private func monotonicNanoseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
