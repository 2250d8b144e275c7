import EventLoop
import Expectations
import Foundation
import NetworkLab
import Reachability
import Testing

@testable import netwatch_service

/// A keeper with a real monitor and a real history.
@Suite(.timeLimit(.minutes(5))) struct KeeperWatchdogTests {
    /// The calls that the keeper has made, and a way to wait for more.
    private final class Calls: Sendable {
        struct Counts: Sendable {
            /// The boards that the waits have seen.
            var boards = 0
            var watchdogs = 0
            var ready = 0
        }

        private let counts = Locked(Counts())

        func count(_ body: (inout Counts) -> Void) { counts.withLock { body(&$0) } }

        /// Waits until a condition holds. - Throws: if it does not hold in a minute.
        func await(_ service: RunningKeeper, _ condition: (Counts) -> Bool) throws -> Counts {
            let deadline = ContinuousClock.now + .seconds(60)
            var moment = service.boards.current()?.moment
            while true {
                let next = service.boards.current()?.moment
                if next != moment { counts.withLock { $0.boards += 1 } }
                moment = next
                let present = counts.withLock { $0 }
                if condition(present) { return present }
                guard ContinuousClock.now < deadline else { throw LabError("the keeper does not call: \(present)") }
                usleep(10_000)
            }
        }
    }

    @Test func `the manager is notified while both loops turn, and not after the monitor's loop has stopped`() throws {
        let calls = Calls()
        let service = try RunningKeeper(
            watchdogInterval: .milliseconds(100),
            notify: { notification in
                calls.count { counts in
                    switch notification {
                    case .watchdog: counts.watchdogs += 1
                    case .ready: counts.ready += 1
                    default: break
                    }
                }
            })
        _ = try calls.await(service) { $0.watchdogs >= 3 && $0.ready == 1 }

        let gate = DispatchSemaphore(value: 0)
        let hasStopped = DispatchSemaphore(value: 0)
        service.session.withState { _ in
            hasStopped.signal()
            gate.wait()
        }
        hasStopped.wait()
        // The keeper's own turns continue. One notification may still follow a turn of the monitor before its stop.
        let before = try calls.await(service) { _ in true }
        let stopped = try calls.await(service) { $0.boards >= before.boards + 2 }
        #expect(stopped.watchdogs <= before.watchdogs + 1)
        let later = try calls.await(service) { $0.boards >= stopped.boards + 2 }
        expectEqual(later.watchdogs, stopped.watchdogs)

        gate.signal()
        _ = try calls.await(service) { $0.watchdogs > later.watchdogs }
        service.stop()
    }
}
