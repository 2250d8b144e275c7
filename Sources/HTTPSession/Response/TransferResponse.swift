public import FoundationEssentials
public import HTTPTypes

/// What a task brought: the response, the body in the form that was asked for, and what was measured on the way.
public struct TransferResponse: Sendable {
    /// The final response's status and fields.
    public var head: ResponseHead { parts.head }
    /// Where it came from, after redirects.
    public var url: URL { parts.url }
    /// The request's method at that place: a redirect may have changed it.
    public var method: HTTPRequest.Method { parts.method }
    /// The body of a data task; empty for other kinds.
    public var data: Data { parts.data }
    /// The file of a download; `nil` for other kinds.
    public var file: URL? { parts.file }
    /// One transaction for each request that was sent.
    public var metrics: TransferMetrics { parts.metrics }

    // Behind one reference: a response goes through many hands before its reader has it.
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

    init(head: ResponseHead, url: URL, method: HTTPRequest.Method, data: Data, file: URL?, metrics: TransferMetrics) {
        parts = Parts(head, url, method, data, file, metrics)
    }

    /// RFC 9110 section 15.
    public var statusCode: Int { head.statusCode }
    /// Status, reason phrase and fields.
    public var response: HTTPResponse { head.response }
}
