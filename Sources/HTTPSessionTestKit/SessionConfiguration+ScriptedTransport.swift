public import HTTPSession

extension SessionConfiguration {
    /// The scripted transport of sessions with this configuration; `nil` for the network.
    ///
    /// It reaches sessions that other code makes from a configuration, as `protocolClasses` of `URLSessionConfiguration` does. An example
    /// is a `DurableSession` of HTTPSessionJournal:
    ///
    /// ```swift
    /// var configuration = SessionConfiguration.default
    /// configuration.scriptedTransport = transport
    /// let session = try await DurableSession.open(identifier: "test", directory: state, configuration: configuration)
    /// ```
    ///
    /// The transport carries one session at a time: close the first one before you make the next one.
    public var scriptedTransport: ScriptedTransport? {
        get { transport as? ScriptedTransport }
        set { transport = newValue }
    }
}
