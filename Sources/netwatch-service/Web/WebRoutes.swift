import Console
import NIOCore
import NIOHTTP1
import Reachability
import Records

/// The resources of the service. `Web/RequestCheck.swift` has accepted the request before.
struct WebRoutes: Sendable {
    /// The paths for supervisors, which are answered when everything else is busy.
    static let statePaths: Set<String> = [healthyPath, readyPath]
    private static let healthyPath = "/-/healthy"
    private static let readyPath = "/-/ready"

    private enum Resource {
        case status, target, badge, favicon
        case asset(PageContent)
        case statusDocument, historyDocument, events
        case healthy, ready, reload
        /// A resource of later versions.
        case planned(String)
    }

    let content: WebContent
    private let reloads: ReloadQueue

    init(content: WebContent) {
        self.content = content
        reloads = ReloadQueue(content.reload)
    }

    /// The methods of a resource that is only read.
    static let readMethods = "GET, HEAD"
    private static let reloadPath = "/-/reload"

    /// Returns the methods of the resource at a path, for the field `Allow`.
    static func methods(of path: some StringProtocol) -> String { path == reloadPath ? "POST" : readMethods }

    /// Answers a request whose method is GET, HEAD or POST. The body of a response to HEAD is that to GET; the caller omits it.
    func respond(to request: WebRequest, on channel: any Channel) async -> WebResponse {
        do {
            guard let resource = resource(request) else {
                throw WebProblem(.notFound, "nothing has the path \(request.path)")
            }
            return try await respond(to: request, resource, on: channel)
        } catch {
            return await ProblemResponses(pages: content.pages, renders: content.renders).response(to: error, request)
        }
    }

    private func resource(_ request: WebRequest) -> Resource? {
        let segments = request.segments
        let path = "/\(segments.joined(separator: "/"))"
        switch path {
        case "/": return .status
        case "/favicon.svg": return .favicon
        case "/api/v1/status": return .statusDocument
        case "/api/v1/history": return .historyDocument
        case EventStream.path: return .events
        case Self.healthyPath: return .healthy
        case Self.readyPath: return .ready
        case Self.reloadPath: return .reload
        case "/metrics", "/probe": return .planned(path)
        default: break
        }
        guard segments.count != 2 || segments[0] != "target" else { return .target }
        guard segments.count != 2 || segments[0] != "badge" else { return .badge }
        return content.pages.assets[path].map { .asset($0) }
    }

    private func respond(to request: WebRequest, _ resource: Resource, on channel: any Channel) async throws -> WebResponse {
        let isPost = request.head.method == .POST
        if case .reload = resource {
            guard isPost else {
                throw WebProblem(
                    .methodNotAllowed, "reloading changes something; use POST", allow: Self.methods(of: Self.reloadPath))
            }
            return try await reload(QueryParameters(request.query))
        }
        guard !isPost else {
            throw WebProblem(.methodNotAllowed, "this resource can only be read", allow: Self.readMethods)
        }
        switch resource {
        case .status:
            _ = try board()
            return try await render(content.pages.status(request.query), request)
        case .target:
            guard let page = try content.pages.target(try board(), request.path, request.query) else {
                throw WebProblem(.notFound, "no target has this identifier or text")
            }
            return try await render(page, request)
        case .badge: return try await badge(request)
        case .favicon: return Self.response(content.pages.favicon(request.query))
        case .asset(let asset): return self.asset(asset, request)
        case .statusDocument:
            let query = try statusQuery(request.query, of: try board())
            let document = PageDocument(type: "application/json", of: content.boards) {
                BoardDocument(board: $0, query: query).pieces
            }
            return try await render(document, request)
        case .historyDocument: return try await render(try content.history(request.query), request)
        case .events: return try events(request, on: channel)
        case .healthy: return try state(content.isHealthy(), "the service does not work")
        case .ready: return try state(content.isReady(), "the service has no results yet")
        case .planned(let path): throw WebProblem(.notFound, "a later version will have \(path)")
        case .reload: return try await reload(QueryParameters(request.query))
        }
    }

    private func reload(_ parameters: QueryParameters) async throws -> WebResponse {
        if let problem = parameters.problem { throw WebProblem(problem) }
        let confirmed = try parameters["confirm"].map { text throws(WebProblem) in
            guard let number = Int(text), number >= 0 else {
                throw WebProblem(.badRequest, "confirm: write the number of targets that the reload removes")
            }
            return number
        }
        guard let isJSON = ["text": false, "json": true][parameters["format"] ?? "text"] else {
            throw WebProblem(.badRequest, "format: write json or text")
        }
        let outcome = await reloads.reload(confirmed: confirmed)
        switch outcome {
        case .refused: throw WebProblem(.unprocessable, outcome.sentence)
        case .unconfirmed(let refusal): throw WebProblem(.conflict, outcome.sentence, counts: refusal.counts)
        case .loaded(let counts, let keys):
            guard isJSON else { return text("\(outcome.sentence)\n") }
            var writer = JSONWriter()
            writer.object { writer in
                writer.member("v", RecordFormat.version)
                writer.member("ts", Timestamp.text(Clock.now))
                counts.write(to: &writer)
                writer.member("restart_keys", keys)
            }
            return Self.response(PageContent(type: "application/json", bytes: writer.bytes))
        }
    }

    /// The maximum number of parameters of a query with targets. The length of a request's target limits it too.
    private static let targetLimit = 1_000

    private func statusQuery(_ text: String, of board: Board) throws(WebProblem) -> BoardQuery {
        let parameters = QueryParameters(text, list: "target", limit: Self.targetLimit)
        var query = BoardQuery(parameters)
        if let problem = query.problem { throw WebProblem(problem) }
        query.keys = try keys(parameters, on: board)
        return query
    }

    /// Returns the keys of the targets that a query names; `nil` if it names none.
    private func keys(_ parameters: QueryParameters, on board: Board) throws(WebProblem) -> Set<String>? {
        let keys = try parameters.all("target").map { text throws(WebProblem) in
            guard let target = board.target(named: text) else {
                throw WebProblem(.notFound, "target '\(text)': no target has this identifier, name or text")
            }
            return target.key
        }
        return keys.isEmpty ? nil : Set(keys)
    }

    private func board() throws -> Board {
        guard let board = content.boards.current() else { throw WebProblem(.unavailable, "the service is starting") }
        return board
    }

    /// Renders a document, unless the request only wants its fields.
    private func render(_ document: PageDocument, _ request: WebRequest) async throws -> WebResponse {
        var response = WebResponse(
            status: document.status, headers: ["Content-Type": document.type, "Cache-Control": Caching.noStore], body: .omitted)
        guard request.head.method != .HEAD else { return response }
        let pieces = try await document.prepare(request.client)
        guard let document = await content.renders.render(pieces, for: request.client) else {
            throw WebProblem(.unavailable, "the connection is closed")
        }
        response.body = .bytes(document.buffer)
        response.document = document
        return response
    }

    private func badge(_ request: WebRequest) async throws -> WebResponse {
        let segment = request.path.dropFirst("/badge/".count)
        guard segment.hasSuffix(".svg"),
            let image = content.pages.badge(try board(), QueryParameters.decoded(segment.dropLast(4).utf8))
        else { throw WebProblem(.notFound, "no target and no group has this badge") }
        var response = try await render(image, request)
        // Other sites show badges.
        response.headers.add(name: "Cross-Origin-Resource-Policy", value: "cross-origin")
        return response
    }

    private func events(_ request: WebRequest, on channel: any Channel) throws -> WebResponse {
        guard let board = content.boards.current(), board.path != nil else {
            throw WebProblem(.unavailable, "the service is starting")
        }
        let parameters = QueryParameters(request.query, list: "target", limit: Self.targetLimit)
        if let problem = parameters.problem { throw WebProblem(problem) }
        let keys = try keys(parameters, on: board)
        // The page's script sends -1 before the first record.
        if let text = parameters["last_event_id"], !text.isEmpty, Int(text) == nil {
            throw WebProblem(.badRequest, "last_event_id: write the id of a record")
        }
        let lastEventID = request.field("Last-Event-ID") ?? parameters["last_event_id"]
        let body = WebResponse.Body.stream { [content] write in
            let waiter = EventFeed.Waiter()
            channel.closeFuture.whenComplete { _ in waiter.end() }
            defer { content.events.remove(waiter) }
            var stream = EventStream(
                content, request.client, keys: keys, lastEventID: lastEventID, waiter: waiter)
            while let bytes = await stream.next() { try await write(ByteBuffer(bytes: bytes)) }
        }
        let headers: HTTPHeaders = [
            "Content-Type": "text/event-stream", "Cache-Control": Caching.noStore, "X-Accel-Buffering": "no",
        ]
        return WebResponse(headers: headers, body: body)
    }

    /// Answers a request for the state of the service, which waits for nothing; `nil` for another one.
    func stateResponse(_ head: HTTPRequestHead) -> WebResponse? {
        guard head.method == .GET || head.method == .HEAD else { return nil }
        do {
            switch head.uri.prefix(while: { $0 != "?" && $0 != "#" }) {
            case Self.healthyPath: return try state(content.isHealthy(), "the service does not work")
            case Self.readyPath: return try state(content.isReady(), "the service has no results yet")
            default: return nil
            }
        } catch { return ProblemResponses.document(of: error) }
    }

    private func state(_ isGood: Bool, _ detail: String) throws(WebProblem) -> WebResponse {
        guard isGood else { throw WebProblem(.unavailable, detail) }
        return text("ok\n")
    }

    private func asset(_ asset: PageContent, _ request: WebRequest) -> WebResponse {
        let tag = asset.tag ?? ""
        let isNamed = !tag.isEmpty && QueryParameters(request.query)["v"] == tag
        var headers: HTTPHeaders = [
            "Content-Type": asset.type, "Cache-Control": isNamed ? Caching.immutable : Caching.revalidate,
        ]
        if !tag.isEmpty { headers.add(name: "ETag", value: "\"\(tag)\"") }
        guard tag.isEmpty || request.field("If-None-Match") != "\"\(tag)\"" else {
            return WebResponse(status: 304, headers: headers)
        }
        return WebResponse(headers: headers, body: .bytes(ByteBuffer(bytes: asset.bytes)))
    }

    private func text(_ text: String) -> WebResponse {
        Self.response(PageContent(type: "text/plain; charset=utf-8", bytes: Array(text.utf8)))
    }

    static func response(_ page: PageContent) -> WebResponse {
        response(type: page.type, status: page.status, ByteBuffer(bytes: page.bytes))
    }

    static func response(type: String, status: Int, _ bytes: ByteBuffer) -> WebResponse {
        WebResponse(status: status, headers: ["Content-Type": type, "Cache-Control": Caching.noStore], body: .bytes(bytes))
    }
}

/// The values of `Cache-Control`.
enum Caching {
    /// The value for documents, which are right for a moment only.
    static let noStore = "no-store"
    /// The value for an asset whose URL contains its tag.
    static let immutable = "public, max-age=31536000, immutable"
    /// The value for an asset whose URL does not change.
    static let revalidate = "no-cache"
}
