import Glibc
import NIOCore
import NIOHTTP1
import Wire

/// The parts of a response. The encoder of NIO also accepts parts of files, which are not `Sendable`.
typealias WebResponsePart = HTTPPart<HTTPResponseHead, ByteBuffer>

/// A request that ``RequestCheck`` has accepted.
struct WebRequest: Sendable {
    let head: HTTPRequestHead
    /// The end of its content, at least ``WebLimits/keptContentBytes`` of it, for a route that reads it; else empty.
    var content = ByteBuffer()
    let client: RenderClient

    /// The path of the target, percent-encoded.
    var path: String { String(head.uri.prefix { $0 != "?" && $0 != "#" }) }

    /// The text of the target after the question mark.
    var query: String {
        guard let mark = head.uri.firstIndex(of: "?") else { return "" }
        return String(head.uri[head.uri.index(after: mark)...].prefix { $0 != "#" })
    }

    /// The path without empty segments, percent-encoded, as the routes have it.
    var resource: String { "/" + head.uri.prefix { $0 != "?" }.split(separator: "/").joined(separator: "/") }

    /// Returns the value of a field, or the list of its values (RFC 9110 section 5.3).
    func field(_ name: String) -> String? {
        let values = head.headers[name]
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }
}

/// A response without the fields that all responses have.
struct WebResponse: Sendable {
    enum Body: Sendable {
        case bytes(ByteBuffer)
        /// That of a response to HEAD, which was not rendered; its length is not known (RFC 9110 section 9.3.2).
        case omitted
        /// A stream of records, whose end is that of the closure.
        case stream(@Sendable (_ write: (ByteBuffer) async throws -> Void) async throws -> Void)
    }

    var status = 200
    var headers: HTTPHeaders
    var body = Body.bytes(ByteBuffer())
    /// The document in the body, which counts as unread until the response is written (``RenderClient/begin(_:)``).
    var document: UnreadDocument?

    /// The status line and all fields.
    var head: HTTPResponseHead {
        var headers = headers
        if case .bytes(let bytes) = body { headers.add(name: "Content-Length", value: "\(bytes.readableBytes)") }
        for (name, value) in PageHeaders.all where !headers.contains(name: name) { headers.add(name: name, value: value) }
        headers.add(name: "Date", value: HTTPDate.format(time(nil)))
        return HTTPResponseHead(version: .http1_1, status: HTTPResponseStatus(statusCode: status), headers: headers)
    }
}
