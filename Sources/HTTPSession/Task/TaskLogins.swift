/// The credentials of one task: those in use and those refused.
struct TaskLogins {
    @BoxedOptional private(set) var server: TransferPlan.Login?
    @BoxedOptional private(set) var proxy: TransferPlan.Login?
    /// The answers to Digest challenges, which the session makes.
    private var digests: [DigestLogin] = []
    /// The credentials that will be stored when the server accepts them.
    private(set) var unconfirmed: [AuthenticationChallenge.ProtectionSpace: Credential] = [:]
    private var refused: Set<RefusedCredential> = []
    private var failures: [AuthenticationChallenge.ProtectionSpace: Int] = [:]
    /// The credentials whose nonce the server has declared too old, for an answer with a new nonce.
    private var renewed: [AuthenticationChallenge.ProtectionSpace: Credential] = [:]
    private var inUse: [AuthenticationChallenge.ProtectionSpace: (credential: Credential, scheme: AuthenticationScheme)] = [:]
    /// The origin to which ``server`` belongs.
    @BoxedOptional private var origin: Origin?

    /// The credentials sent since a server last accepted one. The limit stops a server that challenges with a new realm each
    /// time.
    private(set) var answerCount = 0
    static let maximumAnswers = 20

    /// A credential in use that answers a Digest challenge.
    struct DigestLogin {
        let challenge: DigestChallenge
        let user: String
        let password: String
        let isProxy: Bool
        /// The number of requests with the challenge's nonce.
        var count: UInt32 = 0
    }

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
        digests.removeAll { $0.isProxy == space.isProxy }
        renewed[space] = nil
    }

    /// Records a challenge that refuses only the age of the nonce (RFC 7616 section 3.3). - Returns: Whether it does.
    mutating func renewNonce(_ challenge: AuthenticationChallenge) -> Bool {
        let space = challenge.protectionSpace
        guard DigestChallenge.isStale(challenge), let (credential, scheme) = inUse[space], scheme == .digest else { return false }
        renewed[space] = credential
        return true
    }

    /// The credential in use, if the challenge only renews its nonce.
    func renewedCredential(for challenge: AuthenticationChallenge) -> Credential? {
        challenge.scheme == .digest ? renewed[challenge.protectionSpace] : nil
    }

    /// Whether the server's challenge is answered by ``server`` or by Digest.
    var answersServer: Bool { server != nil || digests.contains { !$0.isProxy } }

    /// Counts another request of a Digest login. - Returns: The login; `nil` if Digest is not used.
    mutating func nextDigest(isProxy: Bool) -> DigestLogin? {
        guard let index = digests.firstIndex(where: { $0.isProxy == isProxy }) else { return nil }
        digests[index].count += 1
        return digests[index]
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
        renewed[space] = nil
        digests.removeAll { $0.isProxy == space.isProxy }
        if !space.isProxy { origin = space.origin }
        if let digest = DigestChallenge(challenge) {
            digests.append(
                DigestLogin(challenge: digest, user: credential.user, password: credential.secret, isProxy: space.isProxy))
            if space.isProxy { proxy = nil } else { server = nil }
            return
        }
        let login = TransferPlan.Login(user: credential.user, password: credential.secret, schemes: [challenge.scheme])
        if space.isProxy {
            proxy = login
        } else {
            server = login
        }
    }

    /// Prepares a request to another origin or through another proxy. Credentials of one origin are not sent to another.
    mutating func move(to next: Origin?, through nextProxy: Origin?) {
        if let space = inUse.keys.first(where: \.isProxy), space.origin != nextProxy {
            proxy = nil
            digests.removeAll(where: \.isProxy)
            inUse[space] = nil
        }
        guard next != origin else { return }
        server = nil
        digests.removeAll { !$0.isProxy }
        inUse = inUse.filter(\.key.isProxy)
    }

    /// Removes and returns the credentials that the server has now accepted.
    mutating func removeConfirmed() -> [AuthenticationChallenge.ProtectionSpace: Credential] {
        answerCount = 0
        defer { unconfirmed = [:] }
        return unconfirmed
    }
}
