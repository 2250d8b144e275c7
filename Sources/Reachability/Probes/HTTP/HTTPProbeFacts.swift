/// The facts of the HTTP level of a probe: its redirects, its last response, and the comparison with the expectation.
package struct HTTPProbeFacts: Hashable, Sendable, Codable {
    /// The facts of the last exchange.
    package var response: HTTPResponseFacts
    /// The URLs to which the probe was redirected, in order; shortened, at most 10.
    package var redirects: [String] = []
    /// The reason why a redirect was not followed; `nil` if none is at fault.
    package var redirectFailure: RedirectFailure?
    /// The first other host to which the server redirects; `nil` if there is none.
    package var otherHost: String?
    /// Whether a redirect leads from https to http.
    package var isDowngraded = false
    /// Whether the user has declared an expectation.
    package var isDeclared = false
    /// Whether the URL is the canary, whose response is known.
    package var isCanary = false
    /// `true` if the last server is the target, or one to which the target redirects, by its certificate; otherwise `nil`.
    package var isAuthentic: Bool?
    /// `true` if the server that redirects to ``otherHost`` has a certificate that is verified; otherwise `nil`.
    package var isRedirectAuthentic: Bool?
    /// The first expectation that the response does not meet.
    package var mismatch: HTTPMismatch?
}

extension HTTPProbeFacts {
    /// Creates the facts of an exchange without redirects.
    package init(response: HTTPResponseFacts, mismatch: HTTPMismatch?) {
        self.init(response: response)
        self.mismatch = mismatch
    }
}

/// The reason why a redirect cannot be followed.
package struct RedirectFailure: Hashable, Sendable, Codable {
    package enum Kind: String, Hashable, Sendable, Codable {
        /// The URL was requested before with the same method.
        case loop
        /// The redirect is one more than ``HTTPLimit/redirects``, or its `Location` is longer than ``HTTPLimit/location``.
        case limit
        /// `Location` is not a URL of http or https.
        case location
    }

    package var kind: Kind
    /// The URL of a loop, or the invalid `Location`; shortened.
    package var location: String
    /// The reason why `Location` is invalid; `nil` for other kinds.
    package var reason: String?
    /// The exceeded limit; `nil` for other kinds.
    package var limit: HTTPLimit?

    package init(_ kind: Kind, location: String, reason: String? = nil, limit: HTTPLimit? = nil) {
        self.kind = kind
        self.location = location
        self.reason = reason
        self.limit = limit
    }
}

/// An expectation that a response does not meet.
package struct HTTPMismatch: Hashable, Sendable, Codable {
    package enum Kind: String, Hashable, Sendable, Codable {
        case status
        case version
        /// A required field is missing or does not match.
        case header
        /// A field matches an excluded expression.
        case excludedHeader = "excluded-header"
        /// The body does not match.
        case body
        /// The body matches an excluded expression.
        case excludedBody = "excluded-body"
        /// The body has more or fewer bytes.
        case size
        /// A value of the body, which is a JSON text, is another one.
        case json
        /// The body is no JSON text.
        case notJSON = "not-json"
        /// The body has a coding that is not decoded, so that it cannot be compared.
        case unsupportedCoding = "unsupported-coding"
        /// The body is not encoded as its field says.
        case damagedCoding = "damaged-coding"
        /// The body ends before the data of its coding.
        case truncatedCoding = "truncated-coding"
    }

    package var kind: Kind
    /// The expectation: the accepted statuses, the accepted versions, or the expression; shortened.
    package var expectation: String
    /// The name of the field; `nil` for other kinds.
    package var field: String?
    /// The coding of the body; `nil` for other kinds.
    package var coding: String?
    /// The value in the place of the expected one; `nil` for other kinds.
    package var found: String?

    package init(_ kind: Kind, expectation: String, field: String? = nil, coding: String? = nil) {
        self.kind = kind
        self.expectation = expectation
        self.field = field
        self.coding = coding
    }
}

/// The end of the last exchange, as its connection shows it.
package enum HTTPEnding: Hashable, Sendable, Codable {
    /// The exchange decided: the response is complete or invalid, or the server closed the connection.
    case exchange
    /// The deadline of the probe.
    case deadline
    /// A system call failed with this errno, and the error queue of the socket is empty.
    case systemError(Int32)
}
