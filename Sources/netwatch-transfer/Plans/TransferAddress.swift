import Console
import FoundationEssentials
import HTTPSession
import Reachability

/// The parsing of URLs as people type them after `get` and `put`.
enum TransferAddress {
    /// Parses an http or https URL.
    static func url(_ text: String) throws(Failure) -> URL {
        let shown = ShortURL.text(UserInformation.withoutPassword(withoutUser(text)))
        guard let colon = text.firstRange(of: "://") else {
            throw .usage("URL '\(shown)'", "the scheme is missing; write http:// or https:// before it")
        }
        let scheme = text[..<colon.lowerBound].lowercased()
        guard scheme == "http" || scheme == "https" else {
            let name = UserInformation.withoutPassword(scheme)
            throw .usage("URL '\(shown)'", "scheme: '\(name)' is not supported; use http or https")
        }
        do {
            return try TransferRequest(urlString: text).url
        } catch {
            throw .usage("URL '\(shown)'", error.reason)
        }
    }

    /// Returns the URL without user and password, so that it may be logged.
    static func withoutUser(_ text: String) -> String {
        guard let start = text.firstRange(of: "://")?.upperBound else { return text }
        let authority = text[start...].prefix { !"/?#".contains($0) }
        guard let sign = authority.lastIndex(of: "@") else { return text }
        return String(text[..<start] + text[text.index(after: sign)...])
    }
}
