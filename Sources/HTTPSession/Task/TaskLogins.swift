/// The credentials of one task: those in use and those refused.
struct TaskLogins {
    @BoxedOptional private(set) var server: TransferPlan.Login?
    @BoxedOptional private(set) var proxy: TransferPlan.Login?
    /// The credentials that will be stored when the server accepts them.
    private(set) var unconfirmed: [AuthenticationChallenge.ProtectionSpace: Credential] = [:]
    private var refused: Set<RefusedCredential> = []
    private var failures: [AuthenticationChallenge.ProtectionSpace: Int] = [:]
    private var inUse: [AuthenticationChallenge.ProtectionSpace: (credential: Credential, scheme: AuthenticationScheme)] = [:]
    /// The origin to which ``server`` belongs.
    @BoxedOptional private var origin: Origin?

    /// The credentials sent since a server last accepted one. The limit stops a server that challenges with a new realm each
    /// time.
    private(set) var answerCount = 0
    static let maximumAnswers = 20

    private struct RefusedCredential: Hashable {
        let space: AuthenticationChallenge.ProtectionSpace
        let credential: Credential
        let scheme: AuthenticationScheme
    }

    /// Marks the credential in use for the space as refused: the server has challenged it again.
    mutating func refuse(_ space: AuthenticationChallenge.ProtectionSpace) {
        guard let (credential, scheme) = inUse.removeValue(forKey: space) else { return }
        refused.insert(RefusedCredential(space: space, credential: credential, scheme: scheme))
        unconfirmed[space] = nil
        failures[space, default: 0] += 1
        if space.isProxy { proxy = nil } else { server = nil }
    }

    /// Records that the request carried the credential preemptively, so that this challenge is its refusal.
    mutating func noteSent(_ credential: Credential, for challenge: AuthenticationChallenge) {
        if inUse[challenge.protectionSpace] == nil { inUse[challenge.protectionSpace] = (credential, challenge.scheme) }
    }

    func failureCount(_ space: AuthenticationChallenge.ProtectionSpace) -> Int { failures[space] ?? 0 }

    func mayTry(_ credential: Credential, for challenge: AuthenticationChallenge) -> Bool {
        credential.schemes.contains(challenge.scheme)
            && !refused.contains { $0.space == challenge.protectionSpace && $0.credential == credential }
    }

    /// Whether the credential has been refused for this challenge's scheme.
    func wasRefused(_ credential: Credential, for challenge: AuthenticationChallenge) -> Bool {
        refused.contains(RefusedCredential(space: challenge.protectionSpace, credential: credential, scheme: challenge.scheme))
    }

    mutating func use(_ credential: Credential, for challenge: AuthenticationChallenge) {
        answerCount += 1
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

    /// Prepares a request to another origin or through another proxy. Credentials of one origin are not sent to another.
    mutating func move(to next: Origin?, through nextProxy: Origin?) {
        if let space = inUse.keys.first(where: \.isProxy), space.origin != nextProxy {
            proxy = nil
            inUse[space] = nil
        }
        guard next != origin else { return }
        server = nil
        inUse = inUse.filter(\.key.isProxy)
    }

    /// Returns the credentials that the server has now accepted.
    mutating func takeConfirmed() -> [AuthenticationChallenge.ProtectionSpace: Credential] {
        answerCount = 0
        defer { unconfirmed = [:] }
        return unconfirmed
    }
}
