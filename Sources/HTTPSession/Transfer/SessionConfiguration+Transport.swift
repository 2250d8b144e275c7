extension SessionConfiguration {
    /// The transport of sessions with this configuration; `nil` for libcurl.
    package var transport: (any SessionTransport)? {
        get { storedTransport as? any SessionTransport }
        set { storedTransport = newValue }
    }
}
