internal import FoundationEssentials
internal import HTTPTypes

/// What a 3xx response makes of a request (RFC 9110 section 15.4), before anybody is asked.
package enum RedirectRules {
    package enum Decision: Sendable {
        /// The response is the answer.
        case none
        case follow(TransferRequest)
        case refuse(HTTPSessionError)
    }

    /// What follows after `request`, which was asked at its last URL; `allowsInsecure`: https may lead to http.
    package static func decide(_ head: ResponseHead, for request: TransferRequest, allowsInsecure: Bool) -> Decision {
        guard [301, 302, 303, 307, 308].contains(head.statusCode), let location = head.firstValue(of: "location"),
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
        // The user and the password stay with their origin; those that a server puts into an address are not used (RFC 9110 section 4.2.4).
        next.url = target.withUser(of: request.url)
        if changesToGet(head.statusCode, request.method) {
            next.method = .get
            next.body = .none
            for name in contentFields { next.headerFields[name] = nil }
        }
        if Origin(target) != Origin(request.url) {
            for name in privateFields { next.headerFields[name] = nil }
        }
        return .follow(next)
    }

    /// Why nothing follows a reference; what leads there comes before it in the sentence.
    struct Reason: Error {
        let text: String
    }

    /// Where a reference leads that came with the answer to a request for `url` (RFC 3986 section 5), if anything may follow it there.
    static func resolve(_ reference: String, from url: URL, allowsInsecure: Bool) -> Result<URL, Reason> {
        guard !RequestURL.hasBackslash(reference) else {
            return .failure(Reason(text: "leads to an address with a backslash"))
        }
        guard let target = RequestURL.reference(reference, relativeTo: url), let origin = Origin(target) else {
            return .failure(Reason(text: "leads to no http or https address"))
        }
        guard origin.scheme == "https" || Origin(url)?.scheme != "https" || allowsInsecure else {
            return .failure(Reason(text: "leads from https to http"))
        }
        return .success(target)
    }

    /// 301 and 302 change POST to GET, as every client does (sections 15.4.2 and 15.4.3); 303 changes all but HEAD; 307 and 308 none.
    private static func changesToGet(_ status: Int, _ method: HTTPRequest.Method) -> Bool {
        switch status {
        case 301, 302: method == .post
        case 303: method != .head && method != .get
        default: false
        }
    }

    /// What describes a body that is no longer there.
    static let contentFields: [HTTPField.Name] = [
        .contentType, .contentLength, .contentEncoding, .contentLanguage, .contentLocation, .transferEncoding,
    ]

    /// Whether a field was meant for the origin that the task began with, and for no other.
    static func isPrivate(_ name: HTTPField.Name) -> Bool { privateFields.contains(name) }

    /// What was meant for one origin only; also `Referer` and `Origin`, which tell another where the user was, and `Host`, by which
    /// libcurl chooses the cookies to send.
    private static let privateFields: [HTTPField.Name] = [
        .authorization, .proxyAuthorization, .cookie, .origin, .referer, HTTPField.Name("Host"),
    ].compactMap(\.self)

    private static func refusal(_ head: ResponseHead, _ reason: String) -> HTTPSessionError {
        HTTPSessionError(.redirectRefused, reason, context: .init(statusCode: head.statusCode))
    }
}
