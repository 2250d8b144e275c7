internal import FoundationEssentials
internal import Reachability

/// What the tasks of one session have in common where a ``TransferMachine`` decides.
final class SessionRules: Sendable {
    let configuration: SessionConfiguration
    let proxies: ProxyOrigins
    /// Kept for protection spaces: the one thing here that changes.
    let credentials: CredentialStore

    init(_ configuration: SessionConfiguration, proxies: ProxyOrigins, credentials: CredentialStore = CredentialStore()) {
        self.configuration = configuration
        self.proxies = proxies
        self.credentials = credentials
    }

    /// Whether the request may be sent at all. - Returns: where to.
    func check(_ request: TransferRequest) throws(HTTPSessionError) -> Origin {
        let origin = try request.validate()
        guard origin.scheme == "https" || configuration.insecureHTTP.allows(origin.host) else {
            throw HTTPSessionError(
                .insecureConnectionRefused, "http is not allowed for '\(origin.host)': see SessionConfiguration.insecureHTTP",
                context: .init(of: request))
        }
        return origin
    }

    /// Whether the origin is reached through a proxy on this machine.
    func hasLoopbackProxy(before origin: Origin) -> Bool {
        guard let host = proxies.proxyURL(for: origin)?.host(percentEncoded: false) else { return false }
        let name = host.withoutBrackets.lowercased()
        return Origin.isLoopback(name) || IPAddress(name)?.isLoopback == true
    }
}

/// What is fixed when a task is made, where a ``TransferMachine`` decides.
struct TransferRules {
    /// What becomes of the response.
    enum Kind: Hashable, Sendable {
        case data, download, stream
    }

    /// Which questions somebody answers.
    struct Handlers: OptionSet, Hashable, Sendable {
        let rawValue: UInt8
        static let response = Handlers(rawValue: 1 << 0)
        static let redirect = Handlers(rawValue: 1 << 1)
        static let challenge = Handlers(rawValue: 1 << 2)
        static let serverTrust = Handlers(rawValue: 1 << 3)
        static let clientCertificate = Handlers(rawValue: 1 << 4)
        static let interceptors = Handlers(rawValue: 1 << 5)
        /// Whoever has to know that a request leaves.
        static let departure = Handlers(rawValue: 1 << 6)
    }

    let session: SessionRules
    /// What was asked for at first.
    let request: TransferRequest
    let kind: Kind
    let destination: BodyDestination
    /// Statuses that a file or a reader is given; others end the task. `nil`: all.
    let acceptableStatusCodes: ClosedRange<Int>?
    let handlers: Handlers
    let limits: TaskMachine.Limits
    let retryPolicy: RetryPolicy
    /// Whether the download goes on from resume data.
    let hasRecord: Bool
}

extension TransferRules.Handlers {
    init(_ handlers: TransferHandlers, hasDeparture: Bool) {
        self = []
        if handlers.response != nil { insert(.response) }
        if handlers.redirect != nil { insert(.redirect) }
        if handlers.challenge != nil { insert(.challenge) }
        if handlers.serverTrust != nil { insert(.serverTrust) }
        if handlers.clientCertificate != nil { insert(.clientCertificate) }
        if !handlers.interceptors.isEmpty { insert(.interceptors) }
        if hasDeparture { insert(.departure) }
    }
}
