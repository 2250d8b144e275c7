import Console
import Reachability

/// States in words. `offset` is what the local time is ahead of UTC, in seconds.
struct StateWords: Hashable {
    var offset: Int

    /// What the transfer does, or waits for; `nil` while bytes come or go.
    func words(_ status: TransferStatus, at now: Moment) -> String? {
        switch status.phase {
        case .queued: return "waits for its turn"
        case .connecting:
            if let silence = silence(status, at: now) { return silence }
            return status.attempt > 1 ? "connecting again" : "connecting"
        case .moving:
            let isUpload = status.direction == .upload
            if status.isWhole { return isUpload ? "all has gone, waiting for the answer" : "all is here, checking it" }
            return status.silence(at: now).map { "nothing has \(isUpload ? "gone" : "come") for \(Self.seconds($0))" }
        case .waitingForNetwork(let trouble):
            return "waiting for the network: \(trouble.words), since \(clock(status.since))"
        case .backingOff(let trouble):
            guard let wait = status.timeToNextAttempt(at: now), wait >= .milliseconds(500) else {
                return "trying again: \(trouble.words)"
            }
            return "trying again in \(Self.seconds(wait)): \(trouble.words)"
        case .finished: return "done"
        case .failed(let trouble): return "failed: \(trouble.words)"
        case .stopped: return "stopped"
        }
    }

    /// How long an attempt has been without an answer, and why if that is known; `nil` while that is not worth a word.
    func silence(_ status: TransferStatus, at now: Moment) -> String? {
        status.unansweredTime(at: now).map { time in
            "no answer for \(Self.seconds(time))\(status.cause.map { ": \($0)" } ?? "")"
        }
    }

    /// How it ended, once it has.
    func ending(_ status: TransferStatus) -> String {
        if status.isUnchanged { return "complete and unchanged, \(ByteCount.text(status.bytes))" }
        let time = status.startedAt.map { status.since.elapsed(since: $0) } ?? .zero
        let fresh = max(0, status.bytes - status.keptBefore)
        let seconds = time.milliseconds / 1000
        let rate = seconds > 0.001 ? ", \(ByteCount.rate(Int64(Double(fresh) / seconds)))" : ""
        let kept =
            status.keptBefore > 0 ? "\(ByteCount.text(fresh)) of \(ByteCount.text(status.bytes))" : ByteCount.text(fresh)
        return "\(kept) in \(TimeSpan.rough(time))\(rate)"
    }

    /// `12:03`, local time.
    func clock(_ moment: Moment) -> String {
        let minutes = (moment.wallClockNanoseconds / 1_000_000_000 + Int64(offset)) / 60
        return "\(Self.twoDigits(minutes / 60 % 24)):\(Self.twoDigits(minutes % 60))"
    }

    /// `8 s`, `2 min 03 s`, `1 h 02 min`: rounded, for what changes every second.
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
