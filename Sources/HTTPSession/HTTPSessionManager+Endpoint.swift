package import FoundationEssentials

extension HTTPSessionManager {
    /// The endpoint that a connection for a request to the URL is made to; `nil` for a Unix domain socket and for a URL without a host.
    package func firstEndpoint(for url: URL) -> FirstEndpoint? {
        Origin(url).flatMap { core.settings.firstEndpoint(for: $0) }
    }
}
