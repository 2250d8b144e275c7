import EventLoop
import FoundationEssentials
import HTTPSession
import Reachability

/// The engine of a scripted session. A ``ScriptedTransport`` answers its transfers, and its event loop watches only its waker.
final class ScriptedEngine: TransferEngine {
    /// The number of steps of each transfer in a turn. Commands to the session come between turns.
    private static let roundsPerTurn = 64

    let transport: ScriptedTransport
    // Unchecked, as in the engine of libcurl: calls of the loop return before another one begins.
    @exclusivity(unchecked) private var loop: EventLoop
    let path: PathMonitor?
    private var transfers: [ScriptedTransfer] = []
    /// Whether a transfer has been started, held or resumed since the last turn, or could take more steps.
    private var isDirty = false
    private var isClosed = false

    var waker: Waker { loop.waker }
    var now: Int64 { transport.clock.now }

    init(_ transport: ScriptedTransport, path: PathMonitor?) throws(HTTPSessionError) {
        do { loop = try EventLoop() } catch {
            throw HTTPSessionError(.transferFailed, "\(error.call) failed", context: .init(systemError: error.errno))
        }
        self.transport = transport
        self.path = path
        guard transport.clock.attach(loop.waker) else {
            isClosed = true
            throw HTTPSessionError(.invalidConfiguration, "the scripted transport carries another session already")
        }
    }

    deinit { _ = close() }

    func start(
        _ plan: TransferPlan, for receiver: any TransferReceiver, trust: ServerTrust?, now: Int64
    ) throws(HTTPSessionError) -> any Transfer {
        try plan.checkHead()
        let transfer = ScriptedTransfer(plan, receiver: receiver, engine: self, now: now)
        transfers.append(transfer)
        isDirty = true
        return transfer
    }

    func advance() {
        isDirty = false
        var rounds = 0
        repeat {
            var hasMoved = false
            let (path, now) = (path?.currentPath, now)
            for transfer in transfers where transfer.step(now: now, path: path) { hasMoved = true }
            guard hasMoved else { return }
            rounds += 1
        } while rounds < ScriptedEngine.roundsPerTurn
        isDirty = true
    }

    func wait(until deadline: Int64?, idleness: () -> SessionIdleness, hasCommands: () -> Bool, awake: () -> Void) {
        defer { awake() }
        let due = transfers.lazy.compactMap(\.deadline).min() ?? .max
        if isDirty || min(deadline ?? .max, due) <= now { return look() }
        switch transport.clock.step(idleness(), hasCommands: hasCommands, until: deadline ?? .max, due: due) {
        case .look: look()
        case .wait: _ = loop.wait(until: nil)
        }
    }

    private func look() { _ = loop.wait(until: 0) }

    // Each transfer has a connection of its own, and no connection is kept.
    func allowMultiplexing() {}
    func allowConnections(beyondLimit count: Int) {}
    func networkChanged() {}

    func close() -> [any Sendable] {
        guard !isClosed else { return [] }
        isClosed = true
        transport.clock.detach()
        defer { transfers = [] }
        return transfers.map(\.receiver.userObjects)
    }

    // MARK: Called by transfers

    func noteChange() { isDirty = true }

    func remove(_ transfer: ScriptedTransfer) { transfers.removeAll { $0 === transfer } }
}
