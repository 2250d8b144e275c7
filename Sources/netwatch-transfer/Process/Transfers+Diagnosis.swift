import Console
import FoundationEssentials
import HTTPSession
import Pacing
import Reachability

/// The diagnosis of missing connections: it starts probes and applies their results.
extension Transfers {
    func connect(_ index: Int, to url: URL) {
        running[index].address = url
        statuses[index].usesTLS = url.scheme?.lowercased() == "https"
        statuses[index].proxy = session?.firstEndpoint(for: url).flatMap { $0.isProxy ? $0.endpoint.text : nil }
    }

    func remaining(_ now: Moment) -> Duration? { settings.deadline.map { $0.elapsed(since: now) } }

    func probe(_ index: Int, _ now: Moment) {
        guard let url = running[index].address, let first = session?.firstEndpoint(for: url) else { return }
        diagnoses?.begin(index, first.endpoint, remaining: remaining(now))
    }

    /// Starts and ends probes, reports silence, and reports held failures that have waited long enough for a probe's result.
    func diagnose(_ now: Moment) {
        for index in statuses.indices {
            if let limit = running[index].heldUntil, now.monotonicNanoseconds >= limit || ending != nil { reportHeld(index) }
            if running[index].heldUntil == nil {
                let isDue = statuses[index].probesAt.map { $0 <= now.monotonicNanoseconds } ?? false
                if isDue, ending == nil { probe(index, now) } else { diagnoses?.end(index) }
            }
            let cause = statuses[index].cause?.name ?? ""
            if statuses[index].unansweredTime(at: now) == nil {
                if statuses[index].phase == .moving { running[index].reportedSilence = nil }
            } else if running[index].reportedSilence != cause {
                running[index].reportedSilence = cause
                publish(.silent, index, now)
            }
        }
    }

    func diagnosisDeadline(_ index: Int, _ now: Moment) -> Int64? {
        if let limit = running[index].heldUntil { return limit }
        guard statuses[index].phase == .connecting else { return nil }
        let silence = statuses[index].since.advanced(by: TransferStatus.silenceLimit).monotonicNanoseconds
        return [statuses[index].probesAt, silence].compactMap { $0 }.filter { $0 > now.monotonicNanoseconds }.min()
    }

    func receive(_ result: EventInbox.ProbeResult) {
        // A failure that waits for this result is reported with it, so the result needs no record of its own.
        guard running[result.place].heldUntil == nil else {
            _ = statuses[result.place].apply(.diagnosed(result.diagnosis), at: result.moment)
            return reportHeld(result.place)
        }
        publish(.diagnosed(result.diagnosis), result.place, result.moment)
    }

    private func reportHeld(_ index: Int) {
        let held = running[index].held
        (running[index].held, running[index].heldUntil) = ([], nil)
        let now = Clock.now
        for var entry in held {
            entry.moment = now
            act(on: entry, index)
        }
    }

    /// Returns whether the event is a failure without a connection whose cause no probe has found yet.
    func isUnexplained(_ event: TransferEvent, _ index: Int) -> Bool {
        switch event {
        case .failedForNow(let problem), .networkGone(let problem), .failed(let problem):
            problem.connectionFailure != nil && !problem.hasFoundCause && statuses[index].stage < .connected
                && statuses[index].diagnosis == nil && ending == nil
        default: false
        }
    }
}
