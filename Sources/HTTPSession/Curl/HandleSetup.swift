/// What an easy handle is set up for, but for what every attempt says anew: the address, the fields, how long a
/// connection may have been idle, and who is told.
///
/// Most attempts of a session ask for the same as the one before. They find their handle as it was; for any other it is reset, so that
/// nothing of an earlier attempt is left on it.
final class HandleSetup: Equatable {
    private let plan: TransferPlan
    private let connectionTag: String?
    private let proxyConnectionTag: String?

    /// `nil` for attempts of which libcurl keeps more than their options: a login leaves its nonce, a body its place.
    init?(_ plan: TransferPlan, trust: ServerTrust?) {
        guard plan.login == nil, plan.proxyLogin == nil, plan.body == .none else { return nil }
        self.plan = plan.lasting
        connectionTag = trust?.connectionTag
        proxyConnectionTag = trust?.proxyConnectionTag
    }

    static func == (one: HandleSetup, other: HandleSetup) -> Bool {
        one.plan == other.plan && one.connectionTag == other.connectionTag && one.proxyConnectionTag == other.proxyConnectionTag
    }
}
