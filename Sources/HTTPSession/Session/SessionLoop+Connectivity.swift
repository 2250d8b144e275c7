internal import EventLoop
internal import Foundation
internal import Reachability

/// What the path monitor tells.
extension SessionLoop {
    func serverChanged(_ origin: Origin, watch: UInt64, _ update: ServerUpdate) {
        guard let gate else { return }
        obey(gate.changed(origin, watch: watch, update, draw: SessionLoop.draw))
    }

    /// The task has had an answer.
    func answered(_ id: UInt64, at origin: Origin) {
        guard let gate else { return }
        obey(gate.answered(id, at: origin, draw: SessionLoop.draw))
    }

    private static func draw(below limit: Int64) -> Int64 { .random(in: 0..<max(1, limit)) }

    private func obey(_ orders: [ReachabilityGate.Order]) {
        for order in orders {
            switch order {
            case .hold(let id, let cause): run(id)?.networkIsGone(cause)
            case .release(let id, let delay): run(id)?.networkIsBack(delay: delay)
            }
        }
    }

    func pathChanged(_ path: NetworkPath) {
        // What has ended already is not judged.
        engine.advance()
        if ways.update(path, now: now) {
            waysChangedAt = now
            engine.networkChanged()
            queue.forgetNames()
        }
        judgeConnections()
        for run in allRuns { run.networkMayBeAllowed() }
        if path.status == .satisfied, let gate { obey(gate.pathIsBack(draw: SessionLoop.draw)) }
    }

    /// Ends what goes over a way that is gone, or that another is better than.
    func judgeConnections() {
        judgesAt = nil
        for run in allRuns {
            let fate: TransferWays.Fate
            if let connection = run.connection {
                fate = ways.fate(of: connection, now: now)
            } else if let start = run.connectingSince {
                fate = ways.fate(ofAttemptSince: start, now: now)
                if case .gone = fate, !run.mayWaitForWay { continue }
            } else {
                continue
            }
            switch fate {
            case .fine: break
            case .lost(let until): judgesAt = min(judgesAt ?? until, until)
            case .doubtful(let reason): run.connectionIsDoubtful(reason)
            case .gone(let reason): run.connectionIsGone(reason)
            }
        }
        wakes(at: judgesAt)
    }

    /// An attempt has begun.
    func judgesAttempt() {
        guard ways.areLost else { return }
        let until = now + TransferWays.patience
        judgesAt = min(judgesAt ?? until, until)
        wakes(at: judgesAt)
    }

    /// How long a connection of HTTP/2, which ``IdleSockets`` does not know, may have been idle to be used again, in whole seconds; 0: none
    /// may. What was idle at the network's last change is too old.
    var maximumIdleSeconds: Int? {
        guard let waysChangedAt else { return nil }
        let seconds = (now - waysChangedAt) / 1_000_000_000
        // libcurl drops what has been idle for 118 s in any case.
        return seconds > 120 ? nil : max(0, Int(seconds) - 2)
    }

    /// How old a look-up may be, in whole seconds: another network's name servers may say something else.
    var maximumLookupSeconds: Int? {
        guard let waysChangedAt else { return nil }
        let seconds = (now - waysChangedAt) / 1_000_000_000
        // libcurl forgets what is older in any case.
        return seconds > 61 ? nil : max(0, Int(seconds) - 1)
    }
}
