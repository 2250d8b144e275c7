import Pacing

/// The numbers of targets that a reload adds, removes and changes.
struct ReloadCounts: Hashable, Sendable, CustomStringConvertible {
    var added = 0
    var removed = 0
    var changed = 0

    /// The counts for people: `+2 −1 ~3`.
    var description: String { "+\(added) \u{2212}\(removed) ~\(changed)" }
}

/// The decision whether a reload that removes many targets is applied: all of them, or more than half of four or more.
///
/// An empty or incomplete file would otherwise end the monitoring, and the incidents, of everything. A request confirms the number of removed
/// targets. A signal has no number, so a second one confirms the first, if the files are the same and the user had time to read the log:
///
/// ```
/// signal ── refused, remembered ── signal within 5 s: refused
///                               ├─ signal within 10 min, same files: applied
///                               └─ signal later, or with other files: refused, remembered
/// ```
struct ReloadGuard: Hashable, Sendable {
    /// The source of a reload.
    enum Request: Hashable, Sendable {
        /// SIGHUP.
        case signal
        /// `POST /-/reload` with the number of removed targets that the user expects; `nil` without one.
        case post(confirmed: Int?)
    }

    /// A reload that needs a confirmation.
    struct Refusal: Hashable, Sendable {
        var counts: ReloadCounts
        /// The number of targets of the present configuration.
        var total: Int
        var request: Request
    }

    /// The time after which a second signal confirms the first, in nanoseconds.
    static let pause: Int64 = 5_000_000_000
    /// The time after which it no longer does: it may be one that a timer sends.
    static let validity: Int64 = 600_000_000_000

    /// A refused signal.
    private struct Refused: Hashable, Sendable {
        var fingerprint: Int
        var removed: Int
        /// The time in nanoseconds.
        var time: Int64
    }

    private var refused: Refused?

    /// Returns the reason why a reload is not applied; `nil` if it is.
    ///
    /// - Parameters:
    ///   - counts: the changes of the targets.
    ///   - total: the number of targets of the present configuration.
    ///   - fingerprint: a number that other contents of the files change.
    ///   - request: the source of the reload.
    ///   - now: the present time in nanoseconds.
    /// - Returns: the reason and the remedy.
    mutating func refusal(
        _ counts: ReloadCounts, of total: Int, fingerprint: Int, _ request: Request, at now: Int64
    ) -> Refusal? {
        guard Self.needsConfirmation(removed: counts.removed, of: total) else {
            refused = nil
            return nil
        }
        let isConfirmed: Bool
        switch request {
        case .post(let confirmed): isConfirmed = confirmed == counts.removed
        case .signal: isConfirmed = confirms(fingerprint, counts.removed, at: now)
        }
        if isConfirmed { refused = nil }
        return isConfirmed ? nil : Refusal(counts: counts, total: total, request: request)
    }

    private static func needsConfirmation(removed: Int, of total: Int) -> Bool {
        removed > 0 && (removed >= total || total >= 4 && 2 * removed > total)
    }

    /// Returns whether a signal confirms an earlier one; otherwise it is remembered.
    private mutating func confirms(_ fingerprint: Int, _ removed: Int, at now: Int64) -> Bool {
        if let refused, refused.fingerprint == fingerprint, refused.removed == removed, now - refused.time <= Self.validity {
            return now - refused.time >= Self.pause
        }
        refused = Refused(fingerprint: fingerprint, removed: removed, time: now)
        return false
    }
}

extension ReloadGuard.Refusal {
    /// The reason and the remedy, in one line.
    var sentence: String {
        let targets =
            counts.removed < total
            ? "\(counts.removed) of \(total) targets" : total == 1 ? "the only target" : "all \(total) targets"
        let removal = "the new one removes \(targets) (\(counts))"
        let confirmation = "POST /-/reload?confirm=\(counts.removed)"
        switch request {
        case .signal: return "\(removal); to confirm it, send SIGHUP again after 5 s, or \(confirmation)"
        case .post(nil): return "\(removal); to confirm it, \(confirmation)"
        case .post(let number?): return "\(removal), and not \(number); to confirm it, \(confirmation)"
        }
    }
}
