internal import EventLoop
internal import FoundationEssentials
internal import Synchronization

/// A server that asks for a certificate of this side's, after its own has been believed.
public struct ClientCertificateChallenge: Sendable {
    /// The host that was asked for, as it is compared.
    public let host: String
    /// And its port.
    public let port: Int
    /// The subjects of the authorities that the server names, in the form of ``Certificate/subject`` and in its order: whose certificates it
    /// takes. Servers may name none (RFC 8446 section 4.2.4).
    public let authorities: [String]
}

/// What a handler says to a ``ClientCertificateChallenge``.
@nonexhaustive public enum ClientCertificateDisposition: Sendable, Hashable {
    /// This one is shown.
    case use(ClientIdentity)
    /// None is shown, and the server decides what becomes of that.
    case performDefaultHandling
    /// The task ends as ``HTTPSessionError/Code/clientCertificateRequired``.
    case cancel
}

/// What handlers have chosen, by host and port, so that the attempt that follows shows it at once. An identity that its server refuses is
/// forgotten.
///
/// As with ``ServerTrustDecisions``, OpenSSL's question cannot wait: the first attempt is broken off, the handler asked, and the attempt
/// made again.
package final class ClientCertificateDecisions: Sendable {
    private struct Entry {
        let identity: ClientIdentity?
        let expiry: ContinuousClock.Instant
    }
    private let entries = Locked<[Origin: Entry]>([:])
    private let capacity: Int
    private let lifetime: Duration

    /// At most `capacity` choices (those that expire first give way), each for `lifetime`.
    package init(capacity: Int = 256, lifetime: Duration = .seconds(3600)) {
        self.capacity = max(1, capacity)
        self.lifetime = lifetime
    }

    /// Keeps what a handler has chosen; `nil`: none.
    package func record(_ identity: ClientIdentity?, for origin: Origin, at now: ContinuousClock.Instant) {
        entries.withLock { entries in
            entries = entries.filter { $0.value.expiry > now }
            while entries.count >= capacity, let oldest = entries.min(by: { $0.value.expiry < $1.value.expiry }) {
                entries[oldest.key] = nil
            }
            entries[origin] = Entry(identity: identity, expiry: now + lifetime)
        }
    }

    package func forget(_ origin: Origin) { entries.withLock { $0[origin] = nil } }

    /// `nil`: nothing has been chosen yet, or too long ago.
    package func choice(for origin: Origin, at now: ContinuousClock.Instant) -> Choice? {
        entries.withLock { entries in
            guard let entry = entries[origin], entry.expiry > now else { return nil }
            return entry.identity.map { .identity($0) } ?? Choice.none
        }
    }

    package enum Choice: Hashable, Sendable {
        case none
        case identity(ClientIdentity)
    }
}
