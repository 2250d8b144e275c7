import Console
import Reachability

/// The text of states for people. `offset` is the local time's offset from UTC in seconds.
struct StateText: Hashable {
    var offset: Int

    /// Returns what the transfer does or waits for; `nil` while bytes are transferred.
    func text(_ status: TransferStatus, at now: Moment) -> String? {
        switch status.phase {
        case .queued: return "queued"
        case .connecting:
            if let silence = silence(status, at: now) { return silence }
            return status.attempt > 1 ? "connecting again" : "connecting"
        case .moving:
            let isUpload = status.direction == .upload
            if status.isComplete {
                return isUpload ? "all bytes sent, waiting for the response" : "all bytes received, verifying"
            }
            return status.silence(at: now).map { "no bytes \(isUpload ? "sent" : "received") for \(Self.seconds($0))" }
        case .waitingForNetwork(let problem):
            return "waiting for the network: \(problem.message), since \(clock(status.since))"
        case .backingOff(let problem):
            guard let wait = status.timeToNextAttempt(at: now), wait >= .milliseconds(500) else {
                return "trying again: \(problem.message)"
            }
            return "trying again in \(Self.seconds(wait)): \(problem.message)"
        case .finished: return "done"
        case .failed(let problem): return "failed: \(problem.message)"
        case .stopped: return "stopped"
        }
    }

    /// Returns for how long an attempt has had no response, and the cause if it is known; `nil` before
    /// ``TransferStatus/silenceLimit``.
    func silence(_ status: TransferStatus, at now: Moment) -> String? {
        status.unansweredTime(at: now).map { time in
            "no answer for \(Self.seconds(time))\(status.cause.map { ": \($0)" } ?? "")"
        }
    }

    /// Returns the summary of a finished transfer.
    func ending(_ status: TransferStatus) -> String {
        if status.isUnchanged { return "complete and unchanged, \(ByteCount.text(status.bytes))" }
        let time = status.startedAt.map { status.since.elapsed(since: $0) } ?? .zero
        let fresh = max(0, status.bytes - status.bytesOfEarlierRuns)
        let seconds = time.milliseconds / 1000
        let rate = seconds > 0.001 ? ", \(ByteCount.rate(Int64(Double(fresh) / seconds)))" : ""
        let kept =
            status.bytesOfEarlierRuns > 0 ? "\(ByteCount.text(fresh)) of \(ByteCount.text(status.bytes))" : ByteCount.text(fresh)
        return "\(kept) in \(TimeSpan.rough(time))\(rate)"
    }

    /// Returns the local time as `12:03`.
    func clock(_ moment: Moment) -> String {
        let minutes = (moment.wallClockNanoseconds / 1_000_000_000 + Int64(offset)) / 60
        return "\(Self.twoDigits(minutes / 60 % 24)):\(Self.twoDigits(minutes % 60))"
    }

    /// Returns a duration as `8 s`, `2 min 03 s` or `1 h 02 min`, rounded, for values that change every second.
    static func seconds(_ duration: Duration) -> String {
        let seconds = Int64((duration.milliseconds / 1000).rounded())
        switch seconds {
        case ..<60: return "\(seconds) s"
        case ..<3600: return "\(seconds / 60) min \(twoDigits(seconds % 60)) s"
        default: return "\(seconds / 3600) h \(twoDigits(seconds / 60 % 60)) min"
        }
    }

    private static func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
