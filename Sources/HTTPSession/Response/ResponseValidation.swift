import HTTPTypes

/// What a response must be before it is decoded: its status, its type, and what else the caller wants.
public struct ResponseValidation: Sendable {
    /// `nil` accepts every status.
    public var acceptableStatusCodes: Set<Int>?
    /// Media types, with `image/*` and `*/*`; `nil` accepts every type and none. A response without a type matches `*/*` only.
    public var acceptableContentTypes: Set<String>?
    /// Asked in turn once status and type are accepted. An error that one throws is the response's.
    public var checks: [Check]

    /// Throws what is wrong with a response.
    public typealias Check = @Sendable (TransferResponse) throws -> Void

    /// 200 to 299.
    public static let successfulStatusCodes = Set(200...299)

    /// Status 200 to 299 unless told otherwise, every type unless told otherwise.
    public init(
        acceptableStatusCodes: Set<Int>? = successfulStatusCodes, acceptableContentTypes: Set<String>? = nil,
        checks: [Check] = []
    ) {
        self.acceptableStatusCodes = acceptableStatusCodes
        self.acceptableContentTypes = acceptableContentTypes
        self.checks = checks
    }

    /// Throws ``HTTPSessionError/Code/unacceptableStatus``, with the type's error below where both are wrong, or
    /// ``HTTPSessionError/Code/unacceptableContentType``. The body is kept beside both (``HTTPSessionError/Context/responseBody``).
    /// A check's error that is no ``HTTPSessionError`` stands below ``HTTPSessionError/Code/badServerResponse``.
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

    /// Without a body the type says nothing: a 204 called `text/html` is fine for a serializer of JSON.
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
        return HTTPSessionError(
            .unacceptableStatus, "unacceptable status: \(response.statusCode)\(phrase)",
            context: response.errorContext(keepingBody: true), underlying: typeError)
    }
}
