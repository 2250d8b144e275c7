public import Dispatch
public import FoundationEssentials
public import HTTPSession
public import Reachability

extension HTTPSessionManager {
    /// Creates a session on a scripted transport: no socket is opened and no name is resolved.
    ///
    /// - Parameters:
    ///   - baseURL: the URL that paths are relative to; `nil` if all URLs are absolute.
    ///   - configuration: the behavior of the session; ``ScriptedTransport`` lists the properties without effect.
    ///   - handlers: the handlers of tasks that have none of their own.
    ///   - requestSerializer: the serializer that puts parameters into requests.
    ///   - validation: the validation of responses; status 200 to 299 by default.
    ///   - completionQueue: the queue of callbacks; `nil` for a queue of the session's own.
    ///   - completionGroup: the group that every callback enters, and leaves when it has run.
    ///   - credentials: the store of credentials.
    ///   - monitor: the path monitor, such as that of a `ScriptedNetwork`.
    ///   - eventMonitors: the monitors that receive every event, in this order.
    ///   - transport: the transport. It carries one session at a time.
    /// - Throws: `HTTPSessionError.Code.invalidConfiguration`, whose reason names the invalid part, such as a transport that carries
    ///   another session.
    public convenience init(
        baseURL: String? = nil, configuration: SessionConfiguration = .default, handlers: TransferHandlers = TransferHandlers(),
        requestSerializer: any RequestSerializer = HTTPRequestSerializer(),
        validation: ResponseValidation = ResponseValidation(), completionQueue: DispatchQueue? = nil,
        completionGroup: DispatchGroup? = nil, credentials: CredentialStore = CredentialStore(), monitor: PathMonitor? = nil,
        eventMonitors: [any EventMonitor] = [], transport: ScriptedTransport
    ) throws(HTTPSessionError) {
        try self.init(
            baseURL: baseURL, configuration: configuration, handlers: handlers, requestSerializer: requestSerializer,
            validation: validation, completionQueue: completionQueue, completionGroup: completionGroup, credentials: credentials,
            monitor: monitor, eventMonitors: eventMonitors, carriedBy: transport)
    }

    /// Creates a session on a scripted transport, as the initializer with a string as the base URL does.
    ///
    /// - Throws: `HTTPSessionError.Code.invalidConfiguration`, whose reason names the invalid part.
    public convenience init(
        baseURL: URL, configuration: SessionConfiguration = .default, handlers: TransferHandlers = TransferHandlers(),
        requestSerializer: any RequestSerializer = HTTPRequestSerializer(),
        validation: ResponseValidation = ResponseValidation(), completionQueue: DispatchQueue? = nil,
        completionGroup: DispatchGroup? = nil, credentials: CredentialStore = CredentialStore(), monitor: PathMonitor? = nil,
        eventMonitors: [any EventMonitor] = [], transport: ScriptedTransport
    ) throws(HTTPSessionError) {
        try self.init(
            baseURL: baseURL.absoluteString, configuration: configuration, handlers: handlers,
            requestSerializer: requestSerializer, validation: validation, completionQueue: completionQueue,
            completionGroup: completionGroup, credentials: credentials, monitor: monitor, eventMonitors: eventMonitors,
            transport: transport)
    }
}
