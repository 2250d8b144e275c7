public import Dispatch
public import HTTPSession
public import Reachability

extension HTTPSessionManager {
    /// Makes a session on a scripted transport: no socket is opened and no name is resolved.
    ///
    /// - Parameters:
    ///   - baseURL: the URL that paths are relative to; `nil` if all URLs are absolute.
    ///   - configuration: how the session behaves; ``ScriptedTransport`` lists what has no effect.
    ///   - handlers: the handlers of tasks that bring none of their own.
    ///   - requestSerializer: makes requests of parameters.
    ///   - validation: the checks of a response before a value is made of it; by default status 200 to 299.
    ///   - completionQueue: the queue of callbacks; `nil` for a queue of the session's own.
    ///   - completionGroup: entered by every callback until it has run.
    ///   - credentials: the store of credentials.
    ///   - reachability: the path monitor, such as that of a `ScriptedNetwork`.
    ///   - monitors: receive every event, in this order.
    ///   - transport: the transport, which carries no other session meanwhile.
    /// - Throws: `HTTPSessionError.Code.invalidConfiguration` with the part at fault, such as a transport that carries another session.
    public convenience init(
        baseURL: String? = nil, configuration: SessionConfiguration = .default, handlers: TransferHandlers = TransferHandlers(),
        requestSerializer: any RequestSerializer = HTTPRequestSerializer(),
        validation: ResponseValidation = ResponseValidation(), completionQueue: DispatchQueue? = nil,
        completionGroup: DispatchGroup? = nil, credentials: CredentialStore = CredentialStore(), reachability: PathMonitor? = nil,
        monitors: [any EventMonitor] = [], transport: ScriptedTransport
    ) throws(HTTPSessionError) {
        try self.init(
            baseURL: baseURL, configuration: configuration, handlers: handlers, requestSerializer: requestSerializer,
            validation: validation, completionQueue: completionQueue, completionGroup: completionGroup, credentials: credentials,
            reachability: reachability, monitors: monitors, carriedBy: transport)
    }
}
