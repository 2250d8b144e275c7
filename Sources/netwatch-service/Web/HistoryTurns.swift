import EventLoop
import NIOCore

/// Lets questions about the history begin in the order of ``PeerTurns``.
final class HistoryTurns: Sendable {
    private struct State: Sendable {
        var turns: PeerTurns<RenderClient.Peer>
        var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
        var nextID = 0
    }

    private let state: Locked<State>

    init(limits: PeerTurns<RenderClient.Peer>.Limits = .init()) { state = Locked(State(turns: PeerTurns(limits: limits))) }

    /// The time that a question has taken on the thread of the history. Its wait for others is no work.
    final class Meter: Sendable {
        private let total = Locked<Int64>(0)

        var work: Int64 { total.withLock { $0 } }

        func measure<Value>(_ body: () throws -> Value) rethrows -> Value {
            let began = Connections.now
            defer {
                let ended = Connections.now
                total.withLock { $0 += ended - began }
            }
            return try body()
        }
    }

    /// Runs a question when it is its turn. - Throws: the error of the question, or a ``WebProblem`` if the connection is closed before.
    func run<Value: Sendable>(
        for client: RenderClient, _ question: @Sendable (Meter) async throws -> Value
    ) async throws -> Value {
        let peer = client.peer
        await withCheckedContinuation { continuation in
            let step = state.withLock { state in
                let id = state.nextID
                state.nextID += 1
                state.waiting[id] = continuation
                return state.turns.arrive(id, of: peer, at: Connections.now)
            }
            perform(step, peer)
        }
        let meter = Meter()
        defer { perform(state.withLock { $0.turns.end(of: peer, work: meter.work, at: Connections.now) }, peer) }
        guard client.isOpen else { throw WebProblem(.unavailable, "the connection is closed") }
        return try await question(meter)
    }

    private func perform(_ step: PeerTurns<RenderClient.Peer>.Step, _ peer: RenderClient.Peer) {
        switch step {
        case .begin(let id): state.withLock { $0.waiting.removeValue(forKey: id) }?.resume()
        case .wake(let time):
            Task { [self] in
                try? await Task.sleep(for: .nanoseconds(max(0, time - Connections.now)))
                perform(state.withLock { $0.turns.wake(peer, at: Connections.now) }, peer)
            }
        case .nothing: break
        }
    }
}
