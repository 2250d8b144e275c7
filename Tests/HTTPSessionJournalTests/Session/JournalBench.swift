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

/// For sessions with a server on loopback.
func localConfiguration() -> SessionConfiguration {
    var configuration = SessionConfiguration()
    configuration.insecureHTTP = .allowed
    configuration.proxy = .none
    configuration.requestTimeout = .seconds(600)
    configuration.connectTimeout = .seconds(600)
    return configuration
}

/// Hears events, acknowledges them or not, and lets tests wait for them.
final class Listener: Sendable {
    private struct Heard: Sendable {
        var events: [DurableEvent] = []
        var order: [String] = []
    }

    private let heard = Locked(Heard())
    private let news = AsyncStream<Void>.makeStream()
    let acknowledges: Bool
    private let onEvent: (@Sendable (DurableEvent) async -> Void)?

    init(acknowledges: Bool = true, onEvent: (@Sendable (DurableEvent) async -> Void)? = nil) {
        self.acknowledges = acknowledges
        self.onEvent = onEvent
    }

    var events: [DurableEvent] { heard.withLock { $0.events } }
    /// The contexts of the events, and `former` where those of earlier processes ended.
    var order: [String] { heard.withLock { $0.order } }

    func handlers(_ names: String...) -> DurableHandlers {
        var handlers = DurableHandlers()
        for name in names {
            handlers.register(name) { [self] event in
                await onEvent?(event)
                if acknowledges {
                    do { try await event.acknowledge() } catch { Issue.record(error) }
                }
                heard.withLock { heard in
                    heard.events.append(event)
                    heard.order.append(String(decoding: event.task.context, as: UTF8.self))
                }
                news.continuation.yield()
            }
        }
        handlers.didFinishEvents = { [self] in
            heard.withLock { $0.order.append("former") }
            news.continuation.yield()
        }
        return handlers
    }

    /// Waits until ``order`` has so many entries.
    func await(_ count: Int) async throws {
        while order.count < count { try await next() }
    }

    /// Waits for so many events.
    func await(events count: Int) async throws {
        while events.count < count { try await next() }
    }

    private func next() async throws {
        for await _ in news.stream { break }
        try Task.checkCancellation()
    }
}

/// Ends the work of a session before one of its steps, as a kill would.
final class Fuse: Sendable {
    private let left: Locked<Int>
    let burnt = AsyncStream<Void>.makeStream()

    /// `steps` are done, and no other.
    init(_ steps: Int) { left = Locked(steps) }

    var surroundings: Keeper.Surroundings {
        var surroundings = Keeper.Surroundings()
        surroundings.mayStep = { [self] in
            let may = left.withLock { left in
                left -= 1
                return left >= 0
            }
            if !may { burnt.continuation.yield() }
            return may
        }
        return surroundings
    }
}

extension DurableEvent.Outcome {
    /// By its code alone.
    var word: String {
        if case .failed(let error) = self { "failed \(error.code.rawValue)" } else { line }
    }
}
