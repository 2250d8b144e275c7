internal import EventLoop
internal import FoundationEssentials
internal import Synchronization

/// A server whose certificates wait for a handler's word.
public struct ServerTrustChallenge: Sendable {
    /// The host that was asked for, as it is compared.
    public let host: String?
    /// What the server sent, its own certificate first.
    public let certificates: [Certificate]
    /// Why the session's ``SecurityPolicy`` does not believe the server; `nil` where it does.
    public let policyError: HTTPSessionError?

    let key: ServerTrustDecisions.Key
}

/// What a handler says to a ``ServerTrustChallenge``.
@nonexhaustive public enum ServerTrustDisposition: Sendable, Hashable {
    /// As the policy says.
    case performDefaultHandling
    /// The server is believed, whatever the policy says.
    case accept
    /// It is not, whatever the policy says.
    case reject
}

/// What handlers have decided, so that the attempt that follows goes through without asking: by policy, host and the chain that
/// was shown. Another chain, another host, another policy is asked anew.
///
/// OpenSSL wants its answer at once (SSL_set_retry_verify ends in libcurl's error 35), and a handler takes its time. So the first
/// attempt is refused, the handler asked, and the attempt repeated.
package final class ServerTrustDecisions: Sendable {
    struct Key: Hashable, Sendable {
        let policy: Int
        let host: String?
        /// SHA-256 over the certificates' lengths and bytes.
        let chain: Data
    }

    private struct Entry {
        let disposition: ServerTrustDisposition
        /// At the moment of the handler's word.
        let isBelieved: Bool
        let expiry: ContinuousClock.Instant
    }
    private struct Table {
        var entries: [Key: Entry] = [:]
        var generation = 0
    }
    private let table = Locked(Table())
    /// Unique in this process: what one handler believes is not what another does.
    let number = lastNumber.add(1, ordering: .relaxed).newValue
    private static let lastNumber = Atomic(0)
    private let capacity: Int
    private let lifetime: Duration

    /// At most `capacity` decisions (those that expire first give way), each for `lifetime`.
    package init(capacity: Int = 256, lifetime: Duration = .seconds(3600)) {
        self.capacity = max(1, capacity)
        self.lifetime = lifetime
    }

    /// Keeps what a handler has said.
    package func record(
        _ disposition: ServerTrustDisposition, of challenge: ServerTrustChallenge, at now: ContinuousClock.Instant
    ) {
        let isBelieved =
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
                Entry(disposition: disposition, isBelieved: isBelieved, expiry: now + lifetime), forKey: challenge.key)
            // A TLS session that was made while the server was believed must not outlive that.
            if previous?.isBelieved == true && !isBelieved { table.generation += 1 }
        }
    }

    /// Forgets everything: every server is asked about anew, and no TLS session of before is resumed.
    package func removeAll() {
        table.withLock { table in
            table.entries = [:]
            table.generation += 1
        }
    }

    /// `byPolicy`: whether the policy believes the server now; a certificate may have expired since a handler left it to the policy.
    func isBelieved(_ key: Key, byPolicy: Bool, at now: ContinuousClock.Instant) -> Bool? {
        table.withLock { table in
            guard let entry = table.entries[key], entry.expiry > now else { return nil }
            return switch entry.disposition {
            case .accept: true
            case .reject: false
            case .performDefaultHandling: byPolicy
            }
        }
    }

    /// Grows when a server that was believed is so no longer.
    var generation: Int { table.withLock { $0.generation } }
    /// How many decisions are held.
    package var count: Int { table.withLock { $0.entries.count } }
}
