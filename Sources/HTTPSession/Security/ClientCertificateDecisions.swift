internal import EventLoop
internal import FoundationEssentials
internal import Synchronization

/// A request of a server for a client certificate, after the server's own certificate has been trusted.
public struct ClientCertificateChallenge: Sendable {
    /// The host of the request, in lower case, without a dot at its end or the brackets of an IPv6 address.
    public let host: String
    /// The port of the request.
    public let port: Int
    /// The subjects of the authorities whose certificates the server accepts, in its order and in the form of ``Certificate/subject``. Servers may
    /// name none (RFC 8446 section 4.2.4).
    public let authorities: [String]

    /// Creates a challenge, for tests of handlers.
    public init(host: String, port: Int = 443, authorities: [String] = []) {
        self.host = host
        self.port = port
        self.authorities = authorities
    }
}

/// The decision of a handler for a ``ClientCertificateChallenge``.
@nonexhaustive public enum ClientCertificateDisposition: Sendable, Hashable {
    /// The identity is sent to the server.
    case use(ClientIdentity)
    /// No certificate is sent; the server may accept or refuse that.
    case performDefaultHandling
    /// The task fails with ``HTTPSessionError/Code/clientCertificateRequired``.
    case cancel
}

/// The identities that handlers have chosen, by host and port, so that the next attempt sends one at once.
///
/// An identity that its server refuses is removed. As with ``ServerTrustDecisions``, OpenSSL's callback cannot wait for a handler: the first
/// attempt is ended, the handler is asked, and the attempt is repeated.
package final class ClientCertificateDecisions: Sendable {
    private struct Entry {
        let identity: ClientIdentity?
        let expiry: ContinuousClock.Instant
    }
    private let entries = Locked<[Origin: Entry]>([:])
    private let capacity: Int
    private let lifetime: Duration

    /// Stores at most `capacity` choices for `lifetime` each; those that expire first are evicted first.
    package init(capacity: Int = 256, lifetime: Duration = .seconds(3600)) {
        self.capacity = max(1, capacity)
        self.lifetime = lifetime
    }

    /// Stores the choice of a handler; `nil` for no identity.
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

    /// The choice for an origin; `nil` if there is none or it has expired.
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
