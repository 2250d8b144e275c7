internal import ByteComparison
internal import FoundationEssentials
internal import Pacing

/// A bearer token, with the rules for when another one is due and may be fetched.
struct TokenLife: Hashable, Sendable {
    private(set) var token: BearerToken?
    private var taken: Date
    let renewal: TokenRenewal
    /// The times of the latest fetches in nanoseconds on the monotonic clock, the oldest first.
    private var fetches: [Int64] = []

    init(_ token: BearerToken?, _ renewal: TokenRenewal, at date: Date) {
        self.token = token
        taken = date
        self.renewal = renewal
    }

    /// The token, unless it has expired or equals the refused one.
    func usable(insteadOf refused: String?, at date: Date) -> BearerToken? {
        guard let token, !refused.isExactly(token.value) else { return nil }
        return token.expiry.map { $0 > date } ?? true ? token : nil
    }

    /// Whether another token should be fetched although this one is usable. It never is in the first half of a token's lifetime,
    /// however short that is.
    func isDue(at date: Date) -> Bool {
        guard let expiry = token?.expiry else { return false }
        let ahead = Double(max(0, renewal.ahead.saturatingNanoseconds)) / 1e9
        return expiry.timeIntervalSince(date) <= min(ahead, expiry.timeIntervalSince(taken) / 2)
    }

    /// Counts one more fetch. A fetch ahead of time leaves one fetch for the case that no token is usable. - Returns: whether the
    /// fetch is allowed.
    mutating func mayFetch(now: Int64, isAhead: Bool = false) -> Bool {
        let period = max(0, renewal.period.saturatingNanoseconds)
        fetches.removeAll { now - $0 >= period }
        guard fetches.count < max(1, renewal.maximumCount) - (isAhead ? 1 : 0) else { return false }
        fetches.append(now)
        return true
    }

    mutating func store(_ token: BearerToken, at date: Date) { (self.token, taken) = (token, date) }
}
