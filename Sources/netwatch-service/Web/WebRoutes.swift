import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import Reachability

/// A request on its way through the routes.
struct WebContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }
}

/// The resources of the service. `Web/RequestCheck.swift` has accepted the request before.
struct WebRoutes: Sendable {
    /// The paths for supervisors, which are answered when everything else is busy.
    static let statePaths: Set<String> = ["/-/healthy", "/-/ready"]
    /// The number of bytes of a document that are written at once. A client that reads slowly keeps no more in the kernel's queue.
    private static let pieceSize = 1 << 16

    let content: WebContent

    /// The methods of a resource that is only read.
    static let readMethods = "GET, HEAD"
    private static let reloadPath = "/-/reload"

    /// Returns the methods of the resource at a path, for the field `Allow`.
    static func methods(of path: some StringProtocol) -> String { path == reloadPath ? "POST" : readMethods }

    /// The routes. Each path has the methods that it supports; the others are refused with them.
    func makeRouter() -> Router<WebContext> {
        let router = Router(context: WebContext.self)
        router.add(middleware: ProblemResponses(pages: content.pages))
        get(router, "/") { request, _ in
            let board = try board()
            return document(await content.pages.status(board, request.queryText))
        }
        get(router, "/target/:key") { request, _ in
            let board = try board()
            guard let page = try await content.pages.target(board, request.pathText, request.queryText) else {
                throw WebProblem(.notFound, "no target has this identifier or text")
            }
            return document(page)
        }
        get(router, "/badge/:name") { request, _ in try badge(request) }
        get(router, "/favicon.svg") { request, _ in document(content.pages.favicon(request.queryText)) }
        for (path, asset) in content.pages.assets {
            get(router, RouterPath(path)) { request, _ in self.asset(asset, request) }
        }
        get(router, "/api/v1/status") { request, _ in
            let (board, query) = (try board(), BoardQuery(QueryParameters(request.queryText)))
            if let problem = query.problem { throw WebProblem(problem) }
            return json(BoardDocument(board, query, content.header(board)).encode())
        }
        get(router, "/api/v1/history") { request, _ in document(try await content.history(request.queryText)) }
        get(router, "/api/v1/events") { request, context in try events(request, context) }
        get(router, "/-/healthy") { _, _ in try state(content.isHealthy(), "the service does not work") }
        get(router, "/-/ready") { _, _ in try state(content.isReady(), "the service has no results yet") }
        router.post(RouterPath(Self.reloadPath)) { _, _ in
            let outcome = await content.reload()
            if case .refused = outcome { throw WebProblem(.unprocessable, outcome.sentence) }
            return text("\(outcome.sentence)\n")
        }
        router.get(RouterPath(Self.reloadPath)) { _, _ -> Response in
            throw WebProblem(.methodNotAllowed, "reloading changes something; use POST", allow: Self.methods(of: Self.reloadPath))
        }
        // The places of later versions.
        for path in ["/metrics", "/probe"] {
            get(router, RouterPath(path)) { _, _ in throw WebProblem(.notFound, "a later version will have \(path)") }
        }
        return router
    }

    /// Adds a resource that is only read. HEAD is routed as GET.
    private func get(
        _ router: Router<WebContext>, _ path: RouterPath,
        _ handler: @escaping @Sendable (Request, WebContext) async throws -> Response
    ) {
        router.get(path, use: handler)
        router.post(path) { _, _ -> Response in
            throw WebProblem(.methodNotAllowed, "this resource can only be read", allow: Self.readMethods)
        }
    }

    private func board() throws -> Board {
        guard let board = content.boards.current() else { throw WebProblem(.unavailable, "the service is starting") }
        return board
    }

    private func badge(_ request: Request) throws -> Response {
        let segment = request.pathText.dropFirst("/badge/".count)
        guard segment.hasSuffix(".svg"),
            let image = content.pages.badge(try board(), QueryParameters.decoded(segment.dropLast(4).utf8))
        else { throw WebProblem(.notFound, "no target and no group has this badge") }
        var response = document(image)
        // Other sites show badges.
        response.headers[.crossOriginResourcePolicy] = "cross-origin"
        return response
    }

    private func events(_ request: Request, _ context: WebContext) throws -> Response {
        guard let board = content.boards.current(), board.path != nil else {
            throw WebProblem(.unavailable, "the service is starting")
        }
        // The length of the request's target limits the number.
        let parameters = QueryParameters(request.queryText, list: "target", limit: 1_000)
        if let problem = parameters.problem { throw WebProblem(problem) }
        let keys = try parameters.all("target").map { text throws(WebProblem) in
            guard let target = board.target(named: text) else {
                throw WebProblem(.notFound, "target '\(text)': no target has this identifier, name or text")
            }
            return target.key
        }
        // The page's script sends -1 before the first record.
        if let text = parameters["last_event_id"], !text.isEmpty, Int(text) == nil {
            throw WebProblem(.badRequest, "last_event_id: write the id of a record")
        }
        let lastEventID = request.headers[.lastEventID] ?? parameters["last_event_id"]
        let body = ResponseBody { [content] writer in
            let waiter = EventFeed.Waiter()
            context.channel.closeFuture.whenComplete { _ in waiter.end() }
            defer { content.events.remove(waiter) }
            var stream = EventStream(
                content, keys: keys.isEmpty ? nil : Set(keys), lastEventID: lastEventID, waiter: waiter)
            while let bytes = await stream.next() { try await writer.write(ByteBuffer(bytes: bytes)) }
            try await writer.finish(nil)
        }
        let headers: HTTPFields = [
            .contentType: "text/event-stream", .cacheControl: Caching.noStore, .accelBuffering: "no",
        ]
        return Response(status: .ok, headers: headers, body: body)
    }

    private func state(_ isGood: Bool, _ detail: String) throws -> Response {
        guard isGood else { throw WebProblem(.unavailable, detail) }
        return text("ok\n")
    }

    private func asset(_ asset: PageContent, _ request: Request) -> Response {
        let tag = asset.tag ?? ""
        let isNamed = !tag.isEmpty && QueryParameters(request.queryText)["v"] == tag
        var headers: HTTPFields = [
            .contentType: asset.type, .cacheControl: isNamed ? Caching.immutable : Caching.revalidate,
        ]
        if !tag.isEmpty { headers[.eTag] = "\"\(tag)\"" }
        guard tag.isEmpty || request.headers[.ifNoneMatch] != "\"\(tag)\"" else {
            return Response(status: .notModified, headers: headers)
        }
        return Response(status: .ok, headers: headers, body: Self.body(asset.bytes))
    }

    private func text(_ text: String) -> Response {
        document(PageContent(type: "text/plain; charset=utf-8", bytes: Array(text.utf8)))
    }

    private func json(_ bytes: [UInt8]) -> Response { document(PageContent(type: "application/json", bytes: bytes)) }

    private func document(_ page: PageContent) -> Response { Self.response(page) }

    static func response(_ page: PageContent) -> Response {
        let headers: HTTPFields = [.contentType: page.type, .cacheControl: Caching.noStore]
        return Response(status: .init(code: page.status), headers: headers, body: body(page.bytes))
    }

    private static func body(_ bytes: [UInt8]) -> ResponseBody {
        let buffer = ByteBuffer(bytes: bytes)
        guard buffer.readableBytes > pieceSize else { return ResponseBody(byteBuffer: buffer) }
        return ResponseBody(contentLength: buffer.readableBytes) { writer in
            var rest = buffer
            while let piece = rest.readSlice(length: min(pieceSize, rest.readableBytes)), piece.readableBytes > 0 {
                try await writer.write(piece)
            }
            try await writer.finish(nil)
        }
    }
}

extension Request {
    /// The path of the target, percent-encoded.
    var pathText: String { String((head.path ?? "/").prefix { $0 != "?" && $0 != "#" }) }

    /// The text of the target after the question mark.
    var queryText: String {
        let target = head.path ?? ""
        guard let mark = target.firstIndex(of: "?") else { return "" }
        return String(target[target.index(after: mark)...].prefix { $0 != "#" })
    }
}

extension HTTPField.Name {
    /// The name of a field; these are valid tokens.
    private static func known(_ name: String) -> Self { Self(name) ?? .via }

    static let lastEventID = known("Last-Event-ID")
    static let accelBuffering = known("X-Accel-Buffering")
    static let crossOriginResourcePolicy = known("Cross-Origin-Resource-Policy")
}
