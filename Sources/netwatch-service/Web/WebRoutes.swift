import Console
import NIOCore
import NIOHTTP1
import Reachability
import Records

/// A route of the service. All that the server knows of a path follows from its line in the table of ``all``.
struct WebRoute: Sendable {
    /// The methods of the resource, as the field `Allow` has them.
    enum Methods: String, Sendable {
        case read = "GET, HEAD"
        case post = "POST"
        /// Those of a report, which may come from a program that can only get.
        case report = "GET, POST"

        /// The detail of the error for a request with another method.
        var detail: String {
            switch self {
            case .read: "this resource can only be read"
            case .post: "reloading changes something; use POST"
            case .report: "use POST or GET"
            }
        }

        func allow(_ method: HTTPMethod) -> Bool {
            switch method {
            case .POST: self != .read
            case .GET: self != .post
            default: self == .read
            }
        }
    }

    /// The requests of other sites' pages that are answered (``RequestCheck``).
    enum Role: Sendable {
        /// All of them: the resource costs no work.
        case shared
        /// The navigation of a whole window, by a link.
        case page
        /// None.
        case api
    }

    enum Answer: Sendable {
        /// The state of the service for supervisors. It waits for nothing, and is answered when everything else is busy.
        case state(@Sendable (WebRoutes) throws(WebProblem) -> WebResponse)
        case document(@Sendable (WebRoutes, WebRequest) async throws -> WebResponse)
        /// A stream, of which there are few at a time.
        case stream(@Sendable (WebRoutes, WebRequest, any Channel) throws -> WebResponse)
    }

    /// The path. A name in braces at its end stands for one segment, and one with three dots behind it for any number of them.
    let path: String
    let role: Role
    let methods: Methods
    let answer: Answer
    /// The path up to the name in braces; `nil` if there is none.
    private let prefix: String?
    /// Whether further segments may follow the name.
    private let isOpen: Bool

    private init(_ path: String, _ role: Role, methods: Methods = .read, _ answer: Answer) {
        (self.path, self.role, self.methods, self.answer) = (path, role, methods, answer)
        prefix = path.firstIndex(of: "{").map { String(path[..<$0]) }
        isOpen = path.hasSuffix("...}")
    }

    static let all = [
        WebRoute("/", .page, .document { try await $0.statusPage($1) }),
        WebRoute("/target/{key}", .page, .document { try await $0.targetPage($1) }),
        WebRoute("/badge/{name}", .shared, .document { try await $0.badge($1) }),
        WebRoute("/favicon.svg", .shared, .document { $0.favicon($1) }),
        WebRoute(PageAsset.StaticPath.style.rawValue, .shared, .document { $0.asset(.style, $1) }),
        WebRoute(PageAsset.StaticPath.script.rawValue, .shared, .document { $0.asset(.script, $1) }),
        WebRoute("/api/v1/status", .api, .document { try await $0.statusDocument($1) }),
        WebRoute("/api/v1/history", .api, .document { try await $0.history($1) }),
        WebRoute("/api/v1/events", .api, .stream { try $0.events($1, on: $2) }),
        WebRoute("/api/v1/heartbeat/{name...}", .api, methods: .report, .document { try $0.heartbeat($1) }),
        WebRoute("/-/healthy", .shared, .state { (routes) throws(WebProblem) in try routes.healthy() }),
        WebRoute("/-/ready", .shared, .state { (routes) throws(WebProblem) in try routes.ready() }),
        WebRoute("/-/reload", .page, methods: .post, .document { try await $0.reload($1) }),
        WebRoute("/metrics", .page, .document { _, _ in throw WebRoute.planned("/metrics") }),
        WebRoute("/probe", .page, .document { _, _ in throw WebRoute.planned("/probe") }),
    ]

    private static func planned(_ path: String) -> WebProblem { WebProblem(.notFound, "a later version will have \(path)") }

    private static let byPath = Dictionary(uniqueKeysWithValues: all.lazy.filter { $0.prefix == nil }.map { ($0.path, $0) })
    private static let withNames = all.compactMap { route in route.prefix.map { (prefix: $0, route: route) } }

    /// Returns the route of a path, which is percent-encoded; `nil` if nothing has the path.
    static func route(_ path: String) -> WebRoute? {
        if let route = byPath[path] { return route }
        return withNames.first { prefix, route in
            path.hasPrefix(prefix) && path.utf8.count > prefix.utf8.count
                && (route.isOpen || !path.utf8.dropFirst(prefix.utf8.count).contains(0x2f))
        }?.route
    }

    /// Returns the role of a path, which may have no resource.
    static func role(of path: String) -> Role {
        if let route = byPath[path] { return route.role }
        return withNames.first { path.hasPrefix($0.prefix) }?.route.role ?? (path.hasPrefix("/api/") ? .api : .page)
    }

    /// Whether the route is answered when everything else is busy.
    var isState: Bool { if case .state = answer { true } else { false } }
    var isStream: Bool { if case .stream = answer { true } else { false } }
    /// Whether the content of a request is read.
    var readsContent: Bool { methods == .report }
}

/// The answers of the routes. ``RequestCheck`` has accepted the request before.
struct WebRoutes: Sendable {
    let content: WebContent
    private let reloads: ReloadQueue

    init(content: WebContent) {
        self.content = content
        reloads = ReloadQueue(content.reload)
    }

    /// Answers a request whose method is GET, HEAD or POST. The body of a response to HEAD is that to GET; the caller omits it.
    func respond(to request: WebRequest, on channel: any Channel) async -> WebResponse {
        do {
            guard let route = WebRoute.route(request.resource) else {
                throw WebProblem(.notFound, "nothing has the path \(request.path)")
            }
            guard route.methods.allow(request.head.method) else {
                throw WebProblem(.methodNotAllowed, route.methods.detail, allow: route.methods.rawValue)
            }
            switch route.answer {
            case .state(let answer): return try answer(self)
            case .document(let answer): return try await answer(self, request)
            case .stream(let answer): return try answer(self, request, channel)
            }
        } catch {
            return await response(to: error, request)
        }
    }

    /// Answers a request for the state of the service, on the thread of connections; `nil` for another one.
    func stateResponse(_ head: HTTPRequestHead) -> WebResponse? {
        guard head.method == .GET || head.method == .HEAD,
            case .state(let answer) = WebRoute.route(String(head.uri.prefix { $0 != "?" && $0 != "#" }))?.answer
        else { return nil }
        do throws(WebProblem) { return try answer(self) } catch { return Self.document(of: error) }
    }

    // MARK: Pages

    fileprivate func statusPage(_ request: WebRequest) async throws -> WebResponse {
        _ = try board()
        return try await render(content.pages.status(request.query), request)
    }

    fileprivate func targetPage(_ request: WebRequest) async throws -> WebResponse {
        let board = try board()
        guard let key = TargetPath.key(ofPath: request.path), let target = board.targets.first(where: { $0.key == key }) else {
            throw WebProblem(.notFound, "no target has this identifier or text")
        }
        return try await render(content.pages.target(target, on: board, request.query), request)
    }

    fileprivate func badge(_ request: WebRequest) async throws -> WebResponse {
        let segment = request.path.dropFirst("/badge/".count)
        guard segment.hasSuffix(".svg") else { throw WebProblem(.notFound, "no target and no group has this badge") }
        let badge = Badge.named(QueryParameters.decoded(segment.dropLast(4).utf8), on: try board())
        // The image of a name that is not known says so.
        let image = PageDocument(type: Badge.contentType, status: badge.state == nil ? 404 : 200) { badge.svg() }
        var response = try await render(image, request)
        // Other sites show badges.
        response.headers.add(name: "Cross-Origin-Resource-Policy", value: "cross-origin")
        return response
    }

    fileprivate func favicon(_ request: WebRequest) -> WebResponse {
        Self.response(type: Favicon.contentType, Favicon.svg(state: QueryParameters(request.query)["state"]))
    }

    fileprivate func asset(_ path: PageAsset.StaticPath, _ request: WebRequest) -> WebResponse {
        let asset = content.pages.asset(path)
        let isNamed = QueryParameters(request.query)["v"] == asset.tag
        let headers: HTTPHeaders = [
            "Content-Type": asset.contentType, "Cache-Control": isNamed ? Caching.immutable : Caching.revalidate,
            "ETag": "\"\(asset.tag)\"",
        ]
        guard request.field("If-None-Match") != "\"\(asset.tag)\"" else { return WebResponse(status: 304, headers: headers) }
        return WebResponse(headers: headers, body: .bytes(ByteBuffer(bytes: asset.bytes)))
    }

    // MARK: Documents and streams

    fileprivate func statusDocument(_ request: WebRequest) async throws -> WebResponse {
        let query = try statusQuery(request.query, of: try board())
        let document = PageDocument(type: "application/json", of: content.boards) {
            BoardDocument(board: $0, query: query).pieces
        }
        return try await render(document, request)
    }

    fileprivate func history(_ request: WebRequest) async throws -> WebResponse {
        try await render(try content.pages.history(request.query), request)
    }

    fileprivate func events(_ request: WebRequest, on channel: any Channel) throws -> WebResponse {
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

    // MARK: State and configuration

    fileprivate func healthy() throws(WebProblem) -> WebResponse { try state(content.isHealthy(), "the service does not work") }

    fileprivate func ready() throws(WebProblem) -> WebResponse {
        try state(content.boards.current()?.path != nil, "the service has no results yet")
    }

    private func state(_ isGood: Bool, _ detail: String) throws(WebProblem) -> WebResponse {
        guard isGood else { throw WebProblem(.unavailable, detail) }
        return text("ok\n")
    }

    fileprivate func reload(_ request: WebRequest) async throws -> WebResponse {
        let parameters = QueryParameters(request.query)
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
                writer.member("ts", Timestamp.text(Moment.now))
                counts.write(to: &writer)
                writer.member("restart_keys", keys)
            }
            return Self.response(type: "application/json", writer.bytes)
        }
    }

    // MARK: Jobs

    fileprivate func heartbeat(_ request: WebRequest) throws(WebProblem) -> WebResponse {
        try content.heartbeats.receive(
            HeartbeatRequest(
                path: request.resource.dropFirst("/api/v1/heartbeat/".count), query: request.query,
                authorization: request.field("Authorization"), content: request.content, at: Moment.now), at: Moment.now)
        return text("ok\n")
    }

    // MARK: Responses

    private func board() throws(WebProblem) -> Board {
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

    private func text(_ text: String) -> WebResponse { Self.response(type: "text/plain; charset=utf-8", Array(text.utf8)) }

    private static func response(type: String, _ bytes: [UInt8]) -> WebResponse {
        WebResponse(headers: ["Content-Type": type, "Cache-Control": Caching.noStore], body: .bytes(ByteBuffer(bytes: bytes)))
    }

    /// Returns the response to a request that fails: a page for a browser that asks for one, else the document of the error.
    private func response(to error: any Error, _ request: WebRequest) async -> WebResponse {
        // The text of an unexpected error may have paths of this machine.
        let problem = error as? WebProblem ?? WebProblem(.internalError, "the request could not be answered")
        let isForPeople =
            request.field("Accept")?.contains("text/html") == true && !request.path.hasPrefix("/api/")
            && request.head.method != .HEAD
        guard isForPeople, let board = content.boards.current() else { return Self.document(of: problem) }
        let title = problem.status == 404 ? "Not found" : "This did not work"
        let page = ProblemPage(board: board, now: Moment.now, title: title, detail: problem.detail)
        guard let document = await content.renders.render(WholeDocument { page.render() }, for: request.client) else {
            return Self.document(of: problem)
        }
        var response = WebResponse(
            status: problem.status, headers: ["Content-Type": ServicePages.html, "Cache-Control": Caching.noStore],
            body: .bytes(document.buffer), document: document)
        if let allow = problem.allow { response.headers.add(name: "Allow", value: allow) }
        return response
    }

    /// Returns the document of an error.
    private static func document(of problem: WebProblem) -> WebResponse {
        WebResponse(status: problem.status, headers: HTTPHeaders(problem.fields), body: .bytes(ByteBuffer(bytes: problem.json)))
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
