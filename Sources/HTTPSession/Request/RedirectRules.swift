internal import FoundationEssentials
internal import HTTPTypes
internal import Reachability

/// The rules by which a 3xx response changes a request (RFC 9110 section 15.4), before a handler is asked.
package enum RedirectRules {
    package enum Decision: Sendable {
        /// The response is no redirect, and is the final response.
        case none
        case follow(TransferRequest)
        case refuse(HTTPSessionError)
    }

    /// The decision for a response to `request`, whose URL is the last one. `allowsInsecure`: redirects from https to http are followed.
    /// `further` are the names of ``SessionConfiguration/forwardedHeaderFields``.
    package static func decide(
        _ head: ResponseHead, for request: TransferRequest, allowsInsecure: Bool, forwarding further: Set<HTTPField.Name> = []
    ) -> Decision {
        guard [301, 302, 303, 307, 308].contains(head.statusCode), let location = head.firstReference(of: "location"),
            !location.isEmpty
        else { return .none }
        var target: URL
        switch resolve(location, from: request.url, allowsInsecure: allowsInsecure) {
        case .success(let url): target = url
        case .failure(let reason): return .refuse(refusal(head, "the redirect \(reason.text)"))
        }
        // A reference without a fragment keeps that of the request (section 10.2.2).
        if target.fragment == nil, let fragment = request.url.fragment,
            var parts = URLComponents(url: target, resolvingAgainstBaseURL: true)
        {
            parts.percentEncodedFragment = fragment
            target = parts.url ?? target
        }
        var next = request
        // The user and the password stay with their origin. Those that a server writes into a URL are ignored (RFC 9110 section 4.2.4).
        next.url = target.withUser(of: request.url)
        if changesToGet(head.statusCode, request.method) {
            next.method = .get
            next.body = .none
            next.headerFields.removeContentFields()
        }
        let change = Change(from: Origin(request.url), to: Origin(target))
        for name in Set(next.headerFields.map(\.name)) where !change.mayForward(name, further) { next.headerFields[name] = nil }
        return .follow(next)
    }

    /// The reason why a reference is not followed, as the end of a sentence whose subject names the reference.
    struct Reason: Error {
        let text: String
    }

    /// The URL of a reference in the response to a request for `url` (RFC 3986 section 5), or the reason why it is not followed.
    static func resolve(_ reference: String, from url: URL, allowsInsecure: Bool) -> Result<URL, Reason> {
        guard !RequestURL.hasBackslash(reference) else {
            return .failure(Reason(text: "leads to a URL with a backslash"))
        }
        guard let target = RequestURL.reference(reference, relativeTo: url), let origin = Origin(target) else {
            return .failure(Reason(text: "does not lead to an http or https URL"))
        }
        guard origin.scheme == "https" || Origin(url)?.scheme != "https" || allowsInsecure else {
            return .failure(Reason(text: "leads from https to http"))
        }
        return .success(target)
    }

    /// Whether the status changes the method to GET.
    ///
    /// 301 and 302 change POST to GET, as every client does (sections 15.4.2 and 15.4.3). 303 changes all methods except HEAD; 307 and 308 none.
    private static func changesToGet(_ status: Int, _ method: HTTPRequest.Method) -> Bool {
        switch status {
        case 301, 302: method == .post
        case 303: method != .head && method != .get
        default: false
        }
    }

    /// The origin for which a request was made, and the one to which a redirect or the location of an upload leads.
    struct Change {
        private let isOther: Bool
        private let isDowngrade: Bool

        /// `hasDowngraded`: an earlier redirect led from https to http, so anybody on that route may have chosen `to`.
        init(from: Origin?, to: Origin?, hasDowngraded: Bool = false) {
            isOther = from != to
            isDowngrade = hasDowngraded || from?.scheme == "https" && to?.scheme != "https"
        }

        /// Whether the request has this field there. `further` are the names of ``SessionConfiguration/forwardedHeaderFields``.
        func mayForward(_ name: HTTPField.Name, _ further: Set<HTTPField.Name>) -> Bool {
            !isOther || ForwardedFields.contain(name.canonicalName, isNamed: further.contains(name), isDowngrade: isDowngrade)
        }
    }

    private static func refusal(_ head: ResponseHead, _ reason: String) -> HTTPSessionError {
        HTTPSessionError(.redirectRefused, reason, context: .init(statusCode: head.statusCode))
    }
}

extension HTTPFields {
    /// Removes the fields that describe a request's body, or how it is sent (RFC 9110 section 15.4).
    mutating func removeContentFields() {
        let others = ["digest", "expect", "last-modified", "repr-digest", "trailer", "transfer-encoding"]
        for name in Set(map(\.name)) where name.canonicalName.hasPrefix("content-") || others.contains(name.canonicalName) {
            self[name] = nil
        }
    }
}
