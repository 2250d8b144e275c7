import Console

/// An error that a client receives: a status code, and a document with `error` and `detail`.
struct WebProblem: Error, Hashable {
    /// The kind of error, which decides the status code (RFC 9110 section 15, RFC 6585).
    enum Kind: String, Hashable, CaseIterable {
        case badRequest = "bad_request"
        case forbidden
        case notFound = "not_found"
        case methodNotAllowed = "method_not_allowed"
        case contentTooLarge = "content_too_large"
        case misdirectedRequest = "misdirected_request"
        case conflict
        case unprocessable
        case tooManyRequests = "too_many_requests"
        case headersTooLarge = "headers_too_large"
        case internalError = "internal_error"
        case unavailable

        var status: Int {
            switch self {
            case .badRequest: 400
            case .forbidden: 403
            case .notFound: 404
            case .methodNotAllowed: 405
            case .conflict: 409
            case .contentTooLarge: 413
            case .misdirectedRequest: 421
            case .unprocessable: 422
            case .tooManyRequests: 429
            case .headersTooLarge: 431
            case .internalError: 500
            case .unavailable: 503
            }
        }
    }

    let kind: Kind
    /// One sentence for a person, without a final period. It may contain text of the client.
    let detail: String
    /// The methods that the resource supports, for the field `Allow`; `nil` for other errors.
    let allow: String?
    /// The changes of a reload that must be confirmed; `nil` for other errors.
    let counts: ReloadCounts?

    init(_ kind: Kind, _ detail: String, allow: String? = nil, counts: ReloadCounts? = nil) {
        (self.kind, self.detail, self.allow, self.counts) = (kind, detail, allow, counts)
    }

    /// Creates the error of a parameter that is not valid.
    init(_ problem: QueryProblem) { self.init(.badRequest, "\(problem.parameter): \(problem.detail)") }

    var status: Int { kind.status }

    /// The document. All text of clients is escaped.
    var json: [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("error", kind.rawValue)
            writer.member("detail", detail)
            counts?.write(to: &writer)
        }
        return writer.bytes
    }

    /// The fields of the response that belong to the error.
    var fields: [(name: String, value: String)] {
        var fields = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]
        if let allow { fields.append(("Allow", allow)) }
        if kind == .unavailable || kind == .tooManyRequests { fields.append(("Retry-After", "1")) }
        return fields
    }
}

extension ReloadCounts {
    /// Writes the members of a document.
    func write(to writer: inout JSONWriter) {
        writer.member("added", added)
        writer.member("removed", removed)
        writer.member("changed", changed)
    }
}
