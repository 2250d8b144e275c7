/// The checks of a request before any resource sees it. A web page of another origin can make a browser send requests to this machine,
/// also under a name that it controls (DNS rebinding).
///
/// The host name of this machine is no name of the service: on other machines of its network, that name is resolved by servers, or by
/// whoever answers first (mDNS, LLMNR). Whoever answers for it gives it the address of a server whose page the browser loads, and then
/// 127.0.0.1. Names that `localhost` resolves to, and addresses, cannot be moved in this way.
struct RequestCheck: Hashable, Sendable {
    /// The head of a request.
    struct Head: Hashable, Sendable {
        var method: String
        /// `nil` if the target is no path and no URI.
        var target: RequestTarget?
        /// The values of the fields, by their names in lower case.
        var fields: [String: [String]]

        /// The authority of the request: that of its target if it has one, else `Host` (RFC 9112 section 3.3).
        var authority: String? { target?.origin?.authority ?? fields["host"]?.first }
    }

    /// The names that `Host` may have, in lower case, without a port. IPv6 addresses have brackets.
    private let names: Set<String>

    /// Creates the check. - Parameter names: the names and addresses beside those of loopback: those of the sockets and of `allowed_hosts`.
    init(names: [String]) {
        self.names = Set(["localhost", "127.0.0.1", "[::1]"] + names.compactMap { Self.name(of: $0) })
    }

    /// Returns the reason why the request is refused; `nil` if it is accepted. No browser connects to a Unix socket, whose connections are
    /// local.
    func problem(_ head: Head, isLocal: Bool) -> WebProblem? {
        guard let target = head.target else {
            return WebProblem(.badRequest, "the request target must be a path or a URI with http")
        }
        if let origin = target.origin, let problem = problem(of: origin) { return problem }
        if !isLocal, let problem = problemOfHost(head) { return problem }
        guard ["GET", "HEAD", "POST"].contains(head.method) else {
            let methods = WebRoute.route(String(target.path))?.methods ?? .read
            return WebProblem(.methodNotAllowed, "the method \(head.method) is not supported", allow: methods.rawValue)
        }
        return problem(ofSite: head, target.path)
    }

    /// Returns why a page of another site may not send the request.
    ///
    /// The pages of this service may be linked, and its badges and assets be shown; everything else costs work, so other sites get none of it.
    private func problem(ofSite head: Head, _ path: Substring) -> WebProblem? {
        let role = WebRoute.role(of: String(path))
        if head.method == "POST" || role == .api { return problem(ofOrigin: head) }
        guard role != .shared, !isFromOwnSite(head) else { return nil }
        // A navigation of the whole window; a browser names its kind with the site (W3C Fetch Metadata).
        let isNavigation =
            (head.fields["sec-fetch-mode"] ?? []).allSatisfy { $0 == "navigate" }
            && (head.fields["sec-fetch-dest"] ?? []).allSatisfy { $0 == "document" }
        return isNavigation ? nil : Self.foreignSite
    }

    /// Returns the sentence for a person who opens the page by another name.
    private static func advice(_ authority: String) -> String {
        guard let name = name(of: authority) else { return "'\(authority)' is no name of this service" }
        return
            "'\(name)' is no name of this service: open it as 'localhost', or add '\(name)' to 'allowed_hosts' in the configuration "
            + "if nobody else can answer for that name"
    }

    private static let foreignSite = WebProblem(.forbidden, "the request comes from another site")

    private func isFromOwnSite(_ head: Head) -> Bool {
        (head.fields["sec-fetch-site"] ?? []).allSatisfy { $0 == "same-origin" || $0 == "none" }
    }

    private func problem(of origin: RequestTarget.Origin) -> WebProblem? {
        // RFC 9110 section 4.2.4: user information in a URI hides which host it names.
        guard !origin.authority.contains("@") else {
            return WebProblem(.badRequest, "the request target has user information")
        }
        // RFC 9110 section 7.4: this connection is not secured, so it serves no resource of https.
        guard origin.scheme == "http" else {
            return WebProblem(.misdirectedRequest, "'\(origin.scheme)' is no scheme of this service")
        }
        return nil
    }

    /// `Host` must be present also if the target has an authority, which replaces its value (RFC 9112 section 3.2.2).
    private func problemOfHost(_ head: Head) -> WebProblem? {
        let values = head.fields["host"] ?? []
        guard values.count < 2 else { return WebProblem(.badRequest, "the request has several Host fields") }
        guard values.first != nil, let authority = head.authority, !authority.isEmpty else {
            return WebProblem(.misdirectedRequest, "the request has no Host field")
        }
        guard let name = Self.name(of: authority), names.contains(name) else {
            return WebProblem(.misdirectedRequest, Self.advice(authority))
        }
        return nil
    }

    private func problem(ofOrigin head: Head) -> WebProblem? {
        guard isFromOwnSite(head) else { return Self.foreignSite }
        guard let origins = head.fields["origin"] else { return nil }
        let own = head.authority?.lowercased()
        let isOwn = origins.allSatisfy { origin in
            let parts = origin.lowercased().split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
            return parts.count == 3 && ["http:", "https:"].contains(parts[0]) && parts[1].isEmpty && String(parts[2]) == own
        }
        return isOwn ? nil : WebProblem(.forbidden, "the request comes from another origin")
    }

    /// Returns the name or address of an authority, as `Host` has it (RFC 9110 section 7.2), in lower case; `nil` if the value is malformed.
    static func name(of host: String) -> String? {
        let lower = host.lowercased()
        var name = lower[...]
        if lower.utf8.first == UInt8(ascii: "[") {
            guard let end = lower.firstIndex(of: "]") else { return nil }
            name = lower[...end]
        } else if let colon = lower.firstIndex(of: ":") {
            name = lower[..<colon]
        }
        let port = lower[name.endIndex...]
        guard port.isEmpty || (port.first == ":" && port.dropFirst().utf8.allSatisfy { 0x30...0x39 ~= $0 }), port.utf8.count <= 6
        else { return nil }
        if name.last == "." { name = name.dropLast() }
        return name.isEmpty ? nil : String(name)
    }
}
