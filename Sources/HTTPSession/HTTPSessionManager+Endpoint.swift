package import FoundationEssentials

extension HTTPSessionManager {
    /// Returns the endpoint of a connection for a request to the URL; `nil` for a Unix domain socket and for a URL without a host.
    package func firstEndpoint(for url: URL) -> FirstEndpoint? {
        Origin(url).flatMap { core.settings.firstEndpoint(for: $0) }
    }
}
