import EventLoop
import Foundation
import Reachability
import Synchronization

@testable import HTTPSession

/// libcurl's transport, with a clock that a test advances beyond the kernel's. Timeouts of minutes pass when the test says so, and not while the
/// machine is busy.
///
/// libcurl's own limits, such as the connect timeout, are on the kernel's clock.
final class ManualClock: SessionTransport {
    private let transport = CurlTransport()
    private let lead = Atomic<Int64>(0)
    private let wakers = Locked<[Waker]>([])

    var probesServers: Bool { transport.probesServers }
    var verifiesCertificates: Bool { transport.verifiesCertificates }
    var handoverDelay: Int64 { transport.handoverDelay }
    var seed: UInt64 { transport.seed }

    func now() -> Int64 { transport.now() + lead.load(ordering: .sequentiallyConsistent) }
    func date() -> Date { transport.date() }
    func sleep(for duration: Duration) async throws { try await transport.sleep(for: duration) }

    func makeEngine(
        _ network: EngineConfiguration, path: PathMonitor?
    ) throws(HTTPSessionError) -> any TransferEngine {
        let engine = try transport.makeEngine(network, path: path)
        let waker = engine.waker
        wakers.withLock { $0.append(waker) }
        return Engine(engine, clock: self)
    }

    /// Advances the clock, and lets the sessions handle what is due then.
    func advance(by duration: Duration) {
        let (seconds, attoseconds) = duration.components
        lead.add(seconds * 1_000_000_000 + attoseconds / 1_000_000_000, ordering: .sequentiallyConsistent)
        for waker in wakers.withLock({ $0 }) { waker.wake() }
    }

    /// libcurl's engine, whose waits end at deadlines of this clock.
    private final class Engine: TransferEngine {
        private let engine: any TransferEngine
        private let clock: ManualClock

        init(_ engine: any TransferEngine, clock: ManualClock) { (self.engine, self.clock) = (engine, clock) }

        var waker: Waker { engine.waker }

        func start(
            _ plan: TransferPlan, for receiver: any TransferReceiver, trust: ServerTrust?, now: Int64
        ) throws(HTTPSessionError) -> any Transfer {
            try engine.start(plan, for: receiver, trust: trust, now: now)
        }

        func advance() { engine.advance() }

        func wait(until deadline: Int64?, idleness: () -> SessionIdleness, hasCommands: () -> Bool, awake: () -> Void) {
            let lead = clock.lead.load(ordering: .sequentiallyConsistent)
            engine.wait(
                until: deadline.map { $0 == .max ? $0 : $0 - lead }, idleness: idleness, hasCommands: hasCommands, awake: awake)
        }

        func allowMultiplexing() { engine.allowMultiplexing() }
        func allowConnections(beyondLimit count: Int) { engine.allowConnections(beyondLimit: count) }
        func networkChanged() { engine.networkChanged() }
        func close() -> [any Sendable] { engine.close() }
    }
}
