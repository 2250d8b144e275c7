internal import FoundationEssentials
internal import Reachability

/// The properties of a session on which a ``TaskMachine`` decides.
final class SessionRules: Sendable {
    let configuration: SessionConfiguration
    let proxies: ProxyOrigins
    /// The credentials by protection space: the only mutable state here.
    let credentials: CredentialStore

    init(_ configuration: SessionConfiguration, proxies: ProxyOrigins, credentials: CredentialStore = CredentialStore()) {
        self.configuration = configuration
        self.proxies = proxies
        self.credentials = credentials
    }

    /// Checks whether the request may be sent. - Returns: the origin that receives it.
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

/// The properties of a task on which a ``TaskMachine`` decides. They are fixed when the task is made.
struct TaskRules {
    /// The destination of the response's body.
    enum Kind: Hashable, Sendable {
        case data, download, stream
    }

    /// The handlers that the task or its session has.
    struct Handlers: OptionSet, Hashable, Sendable {
        let rawValue: UInt8
        static let response = Handlers(rawValue: 1 << 0)
        static let redirect = Handlers(rawValue: 1 << 1)
        static let challenge = Handlers(rawValue: 1 << 2)
        static let serverTrust = Handlers(rawValue: 1 << 3)
        static let clientCertificate = Handlers(rawValue: 1 << 4)
        static let interceptors = Handlers(rawValue: 1 << 5)
        /// A closure that approves each request before it is sent.
        static let sendApproval = Handlers(rawValue: 1 << 6)
    }

    let session: SessionRules
    /// The task's first request.
    let request: TransferRequest
    let kind: Kind
    let destination: BodyDestination
    /// The status codes whose responses go to a file or a reader; any other code ends the task. It is `nil` if all are acceptable.
    let acceptableStatusCodes: ClosedRange<Int>?
    let handlers: Handlers
    let limits: TaskStateMachine.Limits
    let retryPolicy: RetryPolicy
    /// Whether the download continues from resume data.
    let hasResumeData: Bool
}

extension TaskRules.Handlers {
    init(_ handlers: TransferHandlers, hasSendApproval: Bool) {
        self = []
        if handlers.response != nil { insert(.response) }
        if handlers.redirect != nil { insert(.redirect) }
        if handlers.challenge != nil { insert(.challenge) }
        if handlers.serverTrust != nil { insert(.serverTrust) }
        if handlers.clientCertificate != nil { insert(.clientCertificate) }
        if !handlers.interceptors.isEmpty { insert(.interceptors) }
        if hasSendApproval { insert(.sendApproval) }
    }
}
