/// What an easy handle is set up for, but for what every attempt says anew: the address, the fields, how long a
/// connection may have been idle, and who is told.
///
/// Most attempts of a session ask for the same as the one before. They find their handle as it was, with the object that stands for that; for
/// any other it is reset, so that nothing of an earlier attempt is left on it.
final class HandleSetup {
    private let plan: TransferPlan
    private let trust: ServerTrust.SessionContexts?

    /// `nil` for attempts of which libcurl keeps more than their options: a login leaves its nonce, a body its place.
    init?(_ plan: TransferPlan, trust: ServerTrust?) {
        guard Self.isLasting(plan) else { return nil }
        self.plan = plan.withoutItsOwn
        self.trust = trust?.sessionContexts
    }

    private static func isLasting(_ plan: TransferPlan) -> Bool {
        plan.login == nil && plan.proxyLogin == nil && plan.body == .none
    }

    /// Whether the handle is set up for this attempt too.
    func fits(_ other: TransferPlan, trust: ServerTrust?) -> Bool {
        Self.isLasting(other) && plan.isSetUpLike(other) && self.trust == trust?.sessionContexts
    }
}
