import HTTPTypes

/// The checks of a response before it is decoded: its status, its content type, and checks of the caller.
public struct ResponseValidation: Sendable {
    /// The accepted status codes; `nil` for all.
    public var acceptableStatusCodes: Set<Int>?
    /// The accepted media types, which may be `image/*` or `*/*`; `nil` for all. A response without a type matches `*/*` only.
    public var acceptableContentTypes: Set<String>?
    /// The caller's checks, in their order, after the status and the type are accepted. The first error fails the response.
    public var checks: [Check]

    /// A check, which throws an error if the response is not acceptable.
    public typealias Check = @Sendable (TransferResponse) throws -> Void

    /// The status codes 200 to 299.
    public static let successfulStatusCodes = Set(200...299)

    /// Creates a validation. By default it accepts status 200 to 299 and any content type.
    public init(
        acceptableStatusCodes: Set<Int>? = successfulStatusCodes, acceptableContentTypes: Set<String>? = nil,
        checks: [Check] = []
    ) {
        self.acceptableStatusCodes = acceptableStatusCodes
        self.acceptableContentTypes = acceptableContentTypes
        self.checks = checks
    }

    /// Checks a response.
    ///
    /// The errors of status and type have the body (``HTTPSessionError/Context/responseBody``). If both are wrong, the error of the type is the
    /// ``HTTPSessionError/underlying`` error of the status. An error of a check that is not an ``HTTPSessionError`` is wrapped in
    /// ``HTTPSessionError/Code/badServerResponse``.
    ///
    /// - Throws: ``HTTPSessionError/Code/unacceptableStatus``, ``HTTPSessionError/Code/unacceptableContentType``, or the error of a check.
    public func validate(_ response: TransferResponse) throws(HTTPSessionError) {
        let typeError = contentTypeError(response)
        if let error = statusError(response, beside: typeError) ?? typeError { throw error }
        for check in checks {
            do {
                try check(response)
            } catch let error as HTTPSessionError {
                throw error
            } catch {
                throw HTTPSessionError(
                    .badServerResponse, "the response did not pass a check", context: response.errorContext(keepingBody: true),
                    underlying: error)
            }
        }
    }

    /// The error of the content type. It is not checked for an empty body: a serializer of JSON accepts a 204 of type `text/html`.
    private func contentTypeError(_ response: TransferResponse) -> HTTPSessionError? {
        guard let acceptableContentTypes, !response.data.isEmpty else { return nil }
        let type = response.mediaType
        let isAcceptable = acceptableContentTypes.contains { range in
            type?.matches(range) ?? range.hasPrefix("*/*")
        }
        guard !isAcceptable else { return nil }
        return HTTPSessionError(
            .unacceptableContentType, "unacceptable content type: \(type?.essence.prefix(100) ?? "none")",
            context: response.errorContext(keepingBody: true))
    }

    private func statusError(_ response: TransferResponse, beside typeError: HTTPSessionError?) -> HTTPSessionError? {
        guard let acceptableStatusCodes, !acceptableStatusCodes.contains(response.statusCode) else { return nil }
        let reason = response.head.reasonPhrase
        let phrase = reason.isEmpty ? "" : " \(reason.prefix(100))"
        var error = HTTPSessionError(
            .unacceptableStatus, "unacceptable status: \(response.statusCode)\(phrase)",
            context: response.errorContext(keepingBody: true), underlying: typeError)
        error.cause = CauseOfResponse.status(
            response.head, bodyBytes: response.data.count, from: response.url, accepted: acceptableStatusCodes)
        return error
    }
}
