public import FoundationEssentials
public import HTTPTypes

/// A complete response: its head, its body in memory or in a file, and the metrics of its task.
///
/// Response serializers decode it. Tests of serializers create a response from values:
///
/// ```swift
/// let response = TransferResponse(head: ResponseHead(HTTPResponse(status: .ok)), url: url, data: Data("[]".utf8))
/// ```
public struct TransferResponse: Sendable {
    /// The status and header fields of the final response.
    public var head: ResponseHead { parts.head }
    /// The URL that sent the response, after redirects.
    public var url: URL { parts.url }
    /// The method of the request for ``url``: a redirect may have changed it.
    public var method: HTTPRequest.Method { parts.method }
    /// The body of a data or upload task, decompressed; empty for other kinds of tasks.
    public var data: Data { parts.data }
    /// The file of a download task; `nil` for other kinds of tasks.
    public var file: URL? { parts.file }
    /// The metrics of the task, with one transaction for each attempt.
    public var metrics: TransferMetrics { parts.metrics }

    // One reference, because a response passes through many functions before its reader receives it.
    private let parts: Parts

    private final class Parts: Sendable {
        let head: ResponseHead
        let url: URL
        let method: HTTPRequest.Method
        let data: Data
        let file: URL?
        let metrics: TransferMetrics

        init(
            _ head: ResponseHead, _ url: URL, _ method: HTTPRequest.Method, _ data: Data, _ file: URL?, _ metrics: TransferMetrics
        ) {
            self.head = head
            self.url = url
            self.method = method
            self.data = data
            self.file = file
            self.metrics = metrics
        }
    }

    /// Creates a response from values, for tests.
    ///
    /// - Parameters:
    ///   - head: The status and header fields.
    ///   - url: The URL that sent the response.
    ///   - method: The method of the request.
    ///   - data: The body.
    ///   - file: The file of a download.
    ///   - metrics: The metrics of the task; empty by default.
    public init(
        head: ResponseHead, url: URL, method: HTTPRequest.Method = .get, data: Data = Data(), file: URL? = nil,
        metrics: TransferMetrics = TransferMetrics()
    ) {
        parts = Parts(head, url, method, data, file, metrics)
    }

    /// The status code (RFC 9110 section 15).
    public var statusCode: Int { head.statusCode }
    /// The header fields, in their order.
    public var headerFields: HTTPFields { head.headerFields }
    /// The status, the reason phrase and the header fields.
    public var httpResponse: HTTPResponse { head.httpResponse }
    /// The media type of the body; `nil` if the response has none, or one that cannot be parsed.
    public var mediaType: MediaType? { head.mediaType }

    /// The context of an error in this response: URL, method and status, and with `keepingBody` the first 64 KiB of the body.
    func errorContext(keepingBody: Bool) -> HTTPSessionError.Context {
        HTTPSessionError.Context(
            url: url.withoutSecrets, method: method.rawValue, statusCode: statusCode,
            // A copy, so that 64 KiB do not keep a large body in memory.
            responseBody: keepingBody ? Data(Array(data.prefix(Self.maximumErrorBody))) : nil,
            retryAfter: RetryAfter.delay(of: head, now: metrics.taskInterval.end).map { .nanoseconds($0) })
    }

    private static let maximumErrorBody = 64 * 1024
}
