internal import ByteComparison
internal import EventLoop
internal import FoundationEssentials
internal import Synchronization

/// The certificates of a server about which a handler decides.
public struct ServerTrustChallenge: Sendable {
    /// The host of the request, in lower case, without a dot at its end or the brackets of an IPv6 address; `nil` if it is not known.
    public let host: String?
    /// The certificates that the server sent, its own certificate first.
    public let certificates: [Certificate]
    /// The error of the session's ``SecurityPolicy``; `nil` if the policy trusts the server.
    public let policyError: HTTPSessionError?

    let key: ServerTrustDecisions.Key
}

extension ServerTrustChallenge {
    /// Creates a challenge, for tests of handlers.
    ///
    /// - Parameters:
    ///   - host: The host of the request.
    ///   - certificates: The certificates of the server, its own certificate first.
    ///   - policyError: The error of the policy; `nil` if the policy trusts the server.
    public init(host: String?, certificates: [Certificate], policyError: HTTPSessionError? = nil) {
        let key = ServerTrustDecisions.Key(policy: 0, host: host, chain: Data())
        self.init(host: host, certificates: certificates, policyError: policyError, key: key)
    }
}

/// The decision of a handler for a ``ServerTrustChallenge``.
@nonexhaustive public enum ServerTrustDisposition: Sendable, Hashable {
    /// The policy decides.
    case performDefaultHandling
    /// The server is trusted, regardless of the policy.
    case accept
    /// The server is refused, regardless of the policy.
    case reject
}

/// The decisions of handlers, by policy, host and presented chain, so that the next attempt does not ask again.
///
/// OpenSSL's callback must return at once (SSL_set_retry_verify ends in libcurl's error 35), and a handler needs time. So the first attempt is
/// refused, the handler is asked, and the attempt is repeated.
package final class ServerTrustDecisions: Sendable {
    struct Key: Hashable, Sendable {
        let policy: Int
        let host: ExactString?
        /// The SHA-256 of the certificates' lengths and bytes.
        let chain: Data

        init(policy: Int, host: String?, chain: Data) {
            self.policy = policy
            self.host = host.map { ExactString($0) }
            self.chain = chain
        }
    }

    private struct Entry {
        let disposition: ServerTrustDisposition
        /// Whether the server was trusted when the handler decided.
        let isTrusted: Bool
        let expiry: ContinuousClock.Instant
    }
    private struct Table {
        var entries: [Key: Entry] = [:]
        var generation = 0
    }
    private let table = Locked(Table())
    /// The number of this object, unique in this process, because a decision of one handler does not apply to another handler.
    let number = lastNumber.add(1, ordering: .relaxed).newValue
    private static let lastNumber = Atomic(0)
    private let capacity: Int
    private let lifetime: Duration

    /// Stores at most `capacity` decisions for `lifetime` each; those that expire first are evicted first.
    package init(capacity: Int = 256, lifetime: Duration = .seconds(3600)) {
        self.capacity = max(1, capacity)
        self.lifetime = lifetime
    }

    /// Stores the decision of a handler.
    package func record(
        _ disposition: ServerTrustDisposition, of challenge: ServerTrustChallenge, at now: ContinuousClock.Instant
    ) {
        let isTrusted =
            switch disposition {
            case .accept: true
            case .reject: false
            case .performDefaultHandling: challenge.policyError == nil
            }
        table.withLock { table in
            table.entries = table.entries.filter { $0.value.expiry > now }
            while table.entries.count >= capacity, let oldest = table.entries.min(by: { $0.value.expiry < $1.value.expiry }) {
                table.entries[oldest.key] = nil
            }
            let previous = table.entries.updateValue(
                Entry(disposition: disposition, isTrusted: isTrusted, expiry: now + lifetime), forKey: challenge.key)
            // A TLS session that was made while the server was trusted must not be resumed afterwards.
            if previous?.isTrusted == true && !isTrusted { table.generation += 1 }
        }
    }

    /// Removes all decisions. The handler is asked about every server again, and no earlier TLS session is resumed.
    package func removeAll() {
        table.withLock { table in
            table.entries = [:]
            table.generation += 1
        }
    }

    /// Whether the server is trusted; `nil` if the handler has not decided, or its decision has expired.
    ///
    /// `byPolicy`: whether the policy trusts the server now. A certificate may have expired since the handler left the decision to the policy.
    func isTrusted(_ key: Key, byPolicy: Bool, at now: ContinuousClock.Instant) -> Bool? {
        table.withLock { table in
            guard let entry = table.entries[key], entry.expiry > now else { return nil }
            return switch entry.disposition {
            case .accept: true
            case .reject: false
            case .performDefaultHandling: byPolicy
            }
        }
    }

    /// A number that increases when a server is no longer trusted.
    var generation: Int { table.withLock { $0.generation } }
    /// The number of stored decisions.
    package var count: Int { table.withLock { $0.entries.count } }
}
