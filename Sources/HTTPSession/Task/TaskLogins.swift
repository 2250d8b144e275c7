/// The credentials of one task: which are in use, and which have been refused.
struct TaskLogins {
    private(set) var server: TransferPlan.Login?
    private(set) var proxy: TransferPlan.Login?
    /// Kept when they have been accepted.
    private(set) var unconfirmed: [AuthenticationChallenge.ProtectionSpace: Credential] = [:]
    private var refused: Set<Tried> = []
    private var failures: [AuthenticationChallenge.ProtectionSpace: Int] = [:]
    private var inUse: [AuthenticationChallenge.ProtectionSpace: (credential: Credential, scheme: AuthenticationScheme)] = [:]
    /// The origin that ``server`` is for.
    private var origin: Origin?

    /// How often somebody has answered since the last answer that was good. A server that asks in another realm's name each time would
    /// be answered for ever.
    private(set) var answers = 0
    static let maximumAnswers = 20

    private struct Tried: Hashable {
        let space: AuthenticationChallenge.ProtectionSpace
        let credential: Credential
        let scheme: AuthenticationScheme
    }

    /// The space has been asked about again: what was said is not good.
    mutating func refuse(_ space: AuthenticationChallenge.ProtectionSpace) {
        guard let (credential, scheme) = inUse.removeValue(forKey: space) else { return }
        refused.insert(Tried(space: space, credential: credential, scheme: scheme))
        unconfirmed[space] = nil
        failures[space, default: 0] += 1
        if space.isProxy { proxy = nil } else { server = nil }
    }

    /// The request has carried the credential before it was asked for: the challenge is its answer.
    mutating func noteSent(_ credential: Credential, for challenge: AuthenticationChallenge) {
        if inUse[challenge.protectionSpace] == nil { inUse[challenge.protectionSpace] = (credential, challenge.scheme) }
    }

    func failureCount(_ space: AuthenticationChallenge.ProtectionSpace) -> Int { failures[space] ?? 0 }

    func mayTry(_ credential: Credential, for challenge: AuthenticationChallenge) -> Bool {
        credential.schemes.contains(challenge.scheme)
            && !refused.contains { $0.space == challenge.protectionSpace && $0.credential == credential }
    }

    /// Whether the same words have been said by the same scheme, and were not good.
    func wasRefused(_ credential: Credential, for challenge: AuthenticationChallenge) -> Bool {
        refused.contains(Tried(space: challenge.protectionSpace, credential: credential, scheme: challenge.scheme))
    }

    mutating func use(_ credential: Credential, for challenge: AuthenticationChallenge) {
        answers += 1
        let space = challenge.protectionSpace
        inUse[space] = (credential, challenge.scheme)
        unconfirmed[space] = credential
        let login = TransferPlan.Login(user: credential.user, password: credential.secret, schemes: [challenge.scheme])
        if space.isProxy {
            proxy = login
        } else {
            server = login
            origin = space.origin
        }
    }

    /// The next request goes elsewhere: what was said to one origin is not said to another.
    mutating func move(to next: Origin?, through nextProxy: Origin?) {
        if let space = inUse.keys.first(where: \.isProxy), space.origin != nextProxy {
            proxy = nil
            inUse[space] = nil
        }
        guard next != origin else { return }
        server = nil
        inUse = inUse.filter(\.key.isProxy)
    }

    /// The server answered: what was said is good.
    mutating func takeConfirmed() -> [AuthenticationChallenge.ProtectionSpace: Credential] {
        answers = 0
        defer { unconfirmed = [:] }
        return unconfirmed
    }
}
