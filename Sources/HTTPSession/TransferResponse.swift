public import Foundation
public import HTTPTypes

/// What a task brought: the response, the body in the form that was asked for, and what was measured on the way.
public struct TransferResponse: Sendable {
    /// The final response's status and fields.
    public let head: ResponseHead
    /// Where it came from, after redirects.
    public let url: URL
    /// The request's method at that place: a redirect may have changed it.
    public let method: HTTPRequest.Method
    /// The body of a data task; empty for other kinds.
    public let data: Data
    /// The file of a download; `nil` for other kinds.
    public let file: URL?
    /// One transaction for each request that was sent.
    public let metrics: TransferMetrics

    /// RFC 9110 section 15.
    public var statusCode: Int { head.statusCode }
    /// Status, reason phrase and fields.
    public var response: HTTPResponse { head.response }
}
