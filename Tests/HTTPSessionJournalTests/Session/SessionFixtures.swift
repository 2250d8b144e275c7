import EventLoop
import Foundation
import HTTPSession
import HTTPSessionTestKit
import NetworkLab
import Testing

@testable import HTTPSessionJournal

extension ScratchDirectory {
    func url(_ name: String) -> URL { URL(fileURLWithPath: file(name)) }
}

func pattern(_ count: Int) -> Data { Data(StubBody.patternBytes(from: 0, count: count)) }

/// A configuration for sessions whose server is on loopback.
func localConfiguration() -> SessionConfiguration {
    var configuration = SessionConfiguration()
    configuration.insecureHTTP = .allowed
    configuration.proxy = .none
    configuration.requestTimeout = .seconds(600)
    configuration.connectTimeout = .seconds(600)
    return configuration
}

/// Records the events of handlers, acknowledges them if asked to, and lets tests wait for them.
final class EventRecorder: Sendable {
    private struct Recorded: Sendable {
        var events: [DurableEvent] = []
        var order: [String] = []
    }

    private let recorded = Locked(Recorded())
    private let changes = AsyncStream<Void>.makeStream()
    let acknowledges: Bool
    private let onEvent: (@Sendable (DurableEvent) async -> Void)?

    init(acknowledges: Bool = true, onEvent: (@Sendable (DurableEvent) async -> Void)? = nil) {
        self.acknowledges = acknowledges
        self.onEvent = onEvent
    }

    var events: [DurableEvent] { recorded.withLock { $0.events } }
    /// The contexts of the events, and `finished earlier` at the call of `didFinishEvents`.
    var order: [String] { recorded.withLock { $0.order } }

    func handlers(_ names: String...) -> DurableHandlers {
        var handlers = DurableHandlers()
        for name in names {
            handlers.register(name) { [self] event in await record(event) }
        }
        handlers.didFinishEvents = { [self] in
            recorded.withLock { $0.order.append("finished earlier") }
            changes.continuation.yield()
        }
        return handlers
    }

    func record(_ event: DurableEvent) async {
        await onEvent?(event)
        if acknowledges {
            do { try await event.acknowledge() } catch { Issue.record(error) }
        }
        recorded.withLock { recorded in
            recorded.events.append(event)
            recorded.order.append(String(decoding: event.task.context, as: UTF8.self))
        }
        changes.continuation.yield()
    }

    /// Waits until ``order`` has `count` entries.
    func await(_ count: Int) async throws {
        while order.count < count { try await next() }
    }

    /// Waits for `count` events.
    func await(events count: Int) async throws {
        while events.count < count { try await next() }
    }

    private func next() async throws {
        for await _ in changes.stream { break }
        try Task.checkCancellation()
    }
}

/// Ends the work of a session after a number of steps, as a kill would.
final class StepLimit: Sendable {
    private let remaining: Locked<Int>
    let reached = AsyncStream<Void>.makeStream()

    init(_ steps: Int) { remaining = Locked(steps) }

    var environment: TaskCoordinator.Environment {
        var environment = TaskCoordinator.Environment()
        environment.mayStep = { [self] in
            let mayStep = remaining.withLock { remaining in
                remaining -= 1
                return remaining >= 0
            }
            if !mayStep { reached.continuation.yield() }
            return mayStep
        }
        return environment
    }
}

extension DurableEvent.Outcome {
    /// The outcome with the code of its error alone.
    var summary: String {
        if case .failed(let error) = self { "failed \(error.code.rawValue)" } else { line }
    }
}
