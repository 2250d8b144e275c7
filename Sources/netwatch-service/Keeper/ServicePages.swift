import Console
import Reachability

/// The pages and the history of a running service, for its web server.
struct ServicePages: Sendable {
    let store: HistoryStore
    let boards: BoardSource
    let evidence: PresentEvidence
    let timeZone: String
    let offset: TimeZoneOffset
    let queue: RenderQueue

    /// The renderer of the pages.
    var renderer: PageRenderer {
        let boards = boards
        var renderer = PageRenderer(
            status: { board, query in
                await content(Self.html) {
                    StatusPage(board: board, query: BoardQuery(QueryParameters(query)), now: Clock.now).render()
                }
            },
            target: { board, path, query in try await target(board, path, query) },
            badge: { board, name in
                let badge = Badge.named(name, on: board)
                // The image of a name that is not known says so.
                return PageContent(type: Badge.contentType, bytes: badge.svg(), status: badge.state == nil ? 404 : 200)
            },
            favicon: { query in
                PageContent(type: Badge.contentType, bytes: Favicon.svg(state: QueryParameters(query)["state"]))
            })
        for asset in PageAsset.all {
            renderer.assets[asset.path.rawValue] = PageContent(type: asset.contentType, bytes: asset.bytes, tag: asset.tag)
        }
        renderer.problem = { status, detail in
            guard let board = boards.current() else { return nil }
            let title = status == 404 ? "Not found" : "This did not work"
            let page = ProblemPage(board: board, now: Clock.now, title: title, detail: detail)
            return PageContent(type: Self.html, bytes: page.render(), status: status)
        }
        return renderer
    }

    /// Renders a page on the thread of pages.
    private func content(_ type: String, _ body: @escaping @Sendable () -> [UInt8]) async -> PageContent {
        guard let bytes = await queue.render(body) else {
            return PageContent(
                type: "text/plain; charset=utf-8", bytes: Array("too many pages are wanted; try again\n".utf8), status: 503)
        }
        return PageContent(type: type, bytes: bytes)
    }

    private static let html = "text/html; charset=utf-8"

    private func target(_ board: Board, _ path: String, _ query: String) async throws -> PageContent? {
        guard let key = TargetPath.key(ofPath: path), let target = board.targets.first(where: { $0.key == key }) else {
            return nil
        }
        let query = TargetQuery(QueryParameters(query))
        // A page names the parameter that it ignores.
        if query.format != .html, let problem = query.problem { throw WebProblem(problem) }
        let history = TargetHistory(target: target, board: board, query: query)
        var detail = TargetDetail()
        do { detail = try await store.read { try history.detail($0) } } catch { detail.isComplete = false }
        // CSV has only the outages.
        if query.format != .csv { await evidence.complete(&detail, of: target, board.path?.path) }
        switch query.format {
        case .html:
            return await content(Self.html) { [detail] in
                TargetPage(board: board, target: target, detail: detail, query: query, now: Clock.now).render()
            }
        case .json:
            let document = TargetDocument(board: board, target: target, detail: detail, query: query)
            return PageContent(type: TargetDocument.contentType, bytes: document.json())
        case .csv:
            let document = TargetDocument(board: board, target: target, detail: detail, query: query)
            return PageContent(type: CSVDocument.contentType, bytes: document.csv())
        }
    }

    /// Returns whether a parameter is 1.
    private static func flag(_ name: String, _ parameters: QueryParameters) throws(WebProblem) -> Bool {
        switch parameters[name] {
        case nil, "", "0": return false
        case "1": return true
        default: throw WebProblem(.badRequest, "\(name): write 1, or leave it out")
        }
    }

    /// Returns the document of `/api/v1/history`, or the report with `report=1`, as JSON, CSV or text (`format`).
    func history(_ text: String) async throws -> PageContent {
        let parameters = QueryParameters(text)
        if let problem = parameters.problem { throw WebProblem(problem) }
        let now = Clock.now
        let (isReport, includesSamples) = (try Self.flag("report", parameters), try Self.flag("samples", parameters))
        if isReport, includesSamples { throw WebProblem(.badRequest, "samples: a report has none") }
        if isReport, parameters["after"] != nil { throw WebProblem(.badRequest, "after: a report has one page") }
        guard let format = HistoryFormat(rawValue: parameters["format"] ?? "json") else {
            throw WebProblem(.badRequest, "format: write json, csv or text")
        }
        let after = parameters["after"].flatMap { $0.isEmpty ? nil : $0 }
        let question: HistoryAnswers.Question
        do throws(HistoryPeriod.Invalid) {
            question = HistoryAnswers.Question(
                period: try HistoryPeriod(
                    since: parameters["since"], until: parameters["until"], now: now.milliseconds, offset: offset),
                target: parameters["target"], includesSamples: includesSamples,
                after: after, hasPages: format == .json || after != nil)
        } catch { throw WebProblem(.badRequest, "\(error.parameter): \(error.reason)") }
        let answers = HistoryAnswers(timeZone: timeZone)
        // The history has an earlier state of these, or none, while its disk is full.
        let unrecorded = boards.current()?.incidents.filter { !$0.isRecorded } ?? []
        do {
            let bytes = try await store.read { reader in
                isReport
                    ? format.bytes(try answers.report(question, reader, at: now))
                    : format.bytes(try answers.history(question, reader, unrecorded: unrecorded, at: now))
            }
            return PageContent(type: format.contentType, bytes: bytes)
        } catch {
            switch error.code {
            case .unknownTarget: throw WebProblem(.notFound, error.reason)
            case .invalid: throw WebProblem(.badRequest, error.reason)
            default: throw WebProblem(.unavailable, error.reason)
            }
        }
    }
}
