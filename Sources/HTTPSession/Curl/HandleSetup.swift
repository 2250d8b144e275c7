/// The options of an easy handle that stay set between attempts. Every attempt sets the others: the URL, the fields, the ages of connections and
/// lookups, and its receiver.
///
/// Most attempts of a session have the same options as an earlier one, and use its handle unchanged. For others a handle is reset or made, so
/// that no option of an earlier attempt remains.
final class HandleSetup {
    private let plan: TransferPlan
    private let contexts: TrustParameters.SessionContexts?

    /// The setup of an attempt; `nil` if libcurl keeps more of it than options: the nonce of a login, or the position in a body.
    init?(_ plan: TransferPlan, trust: ServerTrust?) {
        guard Self.isLasting(plan) else { return nil }
        self.plan = plan.withoutAttemptDetails
        contexts = trust?.parameters.sessionContexts
    }

    private static func isLasting(_ plan: TransferPlan) -> Bool {
        plan.login == nil && plan.proxyLogin == nil && plan.body == .none
    }

    /// Whether the handle can be used for this attempt without a reset.
    func fits(_ other: TransferPlan, trust: ServerTrust?) -> Bool {
        Self.isLasting(other) && plan.isSetUpLike(other) && contexts == trust?.parameters.sessionContexts
    }
}
