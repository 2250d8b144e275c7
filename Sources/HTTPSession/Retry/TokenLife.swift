internal import Foundation
internal import Pacing

/// A token, and when another one is due and may be fetched.
struct TokenLife: Hashable, Sendable {
    private(set) var token: BearerToken?
    let renewal: TokenRenewal
    /// When the last ones were fetched, on the monotonic clock, in nanoseconds; the oldest first.
    private var fetches: [Int64] = []

    init(_ token: BearerToken?, _ renewal: TokenRenewal) {
        self.token = token
        self.renewal = renewal
    }

    /// The token, unless it is about to expire or is the one that was refused.
    func usable(insteadOf refused: String?, at date: Date) -> BearerToken? {
        let ahead = Double(max(0, renewal.ahead.saturatingNanoseconds)) / 1e9
        return unexpired(at: date.addingTimeInterval(ahead)).flatMap { $0.value == refused ? nil : $0 }
    }

    /// The token, unless it has expired.
    func unexpired(at date: Date) -> BearerToken? {
        token.flatMap { token in token.expiry.map { $0 > date } ?? true ? token : nil }
    }

    /// Counts one more fetch. - Returns: whether it may be made.
    mutating func mayFetch(now: Int64) -> Bool {
        let period = max(0, renewal.period.saturatingNanoseconds)
        fetches.removeAll { now - $0 >= period }
        guard fetches.count < max(1, renewal.maximumCount) else { return false }
        fetches.append(now)
        return true
    }

    mutating func take(_ token: BearerToken) { self.token = token }
}
