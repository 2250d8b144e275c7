package import Wire

/// The redirects of one probe: whether the next one is followed, and where they led (RFC 9110 section 15.4).
package struct Redirects: Hashable, Sendable, Codable {
    /// The decision about a response.
    package enum Step: Hashable, Sendable {
        /// The response is the last one.
        case final
        /// The request to send next, on a connection of its own.
        case follow(HTTPProbeRequest)
        /// The redirect cannot be followed.
        case failed(RedirectFailure)
    }

    /// Whether redirects are followed, up to 10 (``HTTPLimit/redirects``).
    package let isFollowing: Bool
    /// The URLs to which the probe was redirected, in order; shortened.
    package private(set) var locations: [String] = []
    /// The first other host to which a response redirects, also if that is not followed.
    package private(set) var otherHost: String?
    /// Whether the certificate of the server that redirects to ``otherHost`` is verified; `nil` if there is no such redirect.
    package private(set) var isRedirectAuthentic: Bool?
    /// Whether a redirect leads from https to http.
    package private(set) var isDowngraded = false

    private struct Visit: Hashable, Sendable, Codable {
        let method: String
        let url: HTTPURL
    }

    /// The host of the first request's URL, and that of its field Host if it differs. Its secrets are not kept: recordings have this
    /// value.
    private let firstHosts: [String]
    private var visits: [Visit]

    /// The host of the first request's URL.
    package var firstHost: String { firstHosts.first ?? "" }

    /// Creates the chain of a probe that begins with a request.
    package init(of request: HTTPProbeRequest, isFollowing: Bool = true) {
        let name = Self.comparable(HTTPURL.text(request.url.endpoint.host))
        // Without its port.
        let field = request.host.map { host in
            Self.comparable(String(host.hasPrefix("[") ? host.prefix { $0 != "]" } + "]" : host.prefix { $0 != ":" }))
        }
        firstHosts = [name] + (field.map { [$0] } ?? [])
        self.isFollowing = isFollowing
        visits = [Visit(method: request.method, url: request.url)]
    }

    /// Returns the decision about the response to `request`, which is the first request or the one that the last step returned.
    ///
    /// A response is the last one if it is no redirect, has no `Location`, or has a status that the expectation declares. `isVerified`:
    /// whether the certificate of the server that sent it is verified.
    package mutating func next(
        after head: HTTPResponseReader.Head, to request: HTTPProbeRequest, isVerified: Bool = false,
        expecting expectation: HTTPExpectation = HTTPExpectation()
    ) -> Step {
        guard [301, 302, 303, 307, 308].contains(head.status), let location = head.value(of: "location"),
            expectation.statuses?.contains(head.status) != true
        else { return .final }
        let shown = ExternalText.shortened(UserInformation.hidden(in: location))
        guard location.count <= HTTPLimit.location.value else {
            return isFollowing ? .failed(RedirectFailure(.limit, location: shown, limit: .location)) : .final
        }
        let url: HTTPURL
        do {
            url = try request.url.resolving(location)
            if url.endpoint.host != request.url.endpoint.host { try url.requireAddressOfServer() }
        } catch {
            return isFollowing ? .failed(RedirectFailure(.location, location: shown, reason: error.description)) : .final
        }
        if otherHost == nil, !isSameSite(url) {
            (otherHost, isRedirectAuthentic) = (HTTPURL.text(url.endpoint.host), isVerified)
        }
        guard isFollowing else { return .final }
        var next = request.redirected(to: url, status: head.status)
        next.cookies = ProbeCookies()
        if url.endpoint.host == request.url.endpoint.host {
            next.cookies = request.cookies
            next.cookies.store(from: head)
            // With another cookie, the same URL may answer otherwise.
            if next.cookies != request.cookies { visits = [] }
        }
        let visit = Visit(method: next.method, url: url)
        guard !visits.contains(visit) else {
            return .failed(RedirectFailure(.loop, location: ExternalText.shortened(url.description)))
        }
        guard locations.count < HTTPLimit.redirects.value else {
            return .failed(RedirectFailure(.limit, location: ExternalText.shortened(url.description), limit: .redirects))
        }
        visits.append(visit)
        locations.append(ExternalText.shortened(url.description))
        if request.url.scheme == .https, url.scheme == .http { isDowngraded = true }
        return .follow(next)
    }

    /// Returns whether the host of a URL belongs to the first request: it has the host of the URL or of `Host`, or one of the two names
    /// is a subdomain of the other, as `www.example.com` is of `example.com`. No portal uses such a name.
    private func isSameSite(_ url: HTTPURL) -> Bool {
        let name = Self.comparable(HTTPURL.text(url.endpoint.host))
        return firstHosts.contains { name == $0 || Self.isSubdomain(name, of: $0) || Self.isSubdomain($0, of: name) }
    }

    private static func comparable(_ host: String) -> String {
        let name = host.lowercased()
        return name.hasSuffix(".") ? String(name.dropLast()) : name
    }

    private static func isSubdomain(_ name: String, of domain: String) -> Bool {
        // A single label is no site of its own: `com` has all subdomains. An address ends with a number.
        guard domain.utf8.contains(UInt8(ascii: ".")), domain.utf8.last.map(HTTPGrammar.isDigit) == false else { return false }
        return name.hasSuffix("." + domain)
    }
}

/// A redirect to another host. Its request needs a lookup, a route and a connection of its own.
package struct HTTPRedirection: Hashable, Sendable, Codable {
    /// The method of the request.
    package let method: String
    package let url: HTTPURL
    /// The redirects so far, with this one.
    package let redirects: Redirects
    /// Whether all URLs up to this one have the scheme, the host and the port of the target; `nil` in recordings of earlier versions.
    var keepsOrigin: Bool?
    /// Whether all URLs up to this one have the host of the target; `nil` in recordings of earlier versions.
    var keepsHost: Bool?
    /// The cookies of the host. They may be secrets, and are not recorded.
    var cookies = ProbeCookies()

    private enum CodingKeys: String, CodingKey { case method, url, redirects, keepsOrigin, keepsHost }
}
