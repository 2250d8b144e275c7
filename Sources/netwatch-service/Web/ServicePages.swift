import Console
import Reachability

/// The pages and documents that need more than the board. ``ServicePages`` are those of a running service; a test has pages whose
/// rendering it controls.
protocol PageRenderer: Sendable {
    /// Returns `GET /`.
    func status(_ query: String) -> PageDocument
    /// Returns `GET /target/KEY`. It throws a ``WebProblem`` for the client.
    func target(_ target: BoardTarget, on board: Board, _ query: String) throws -> PageDocument
    /// Returns the document of a history query. It throws a ``WebProblem`` for the client.
    func history(_ query: String) throws -> PageDocument
    /// Returns the script or the style sheet.
    func asset(_ path: PageAsset.StaticPath) -> PageAsset
}

/// A page, a document or an image that is rendered for each request, on the thread of ``RenderQueue``. Requests with HEAD do not render it.
struct PageDocument: Sendable {
    /// The media type.
    let type: String
    let status: Int
    /// Reads what the document needs, such as its part of the history. It throws a ``WebProblem`` for the client.
    let prepare: @Sendable (RenderClient) async throws -> any PiecewiseDocument

    init(type: String, status: Int = 200, prepare: @escaping @Sendable (RenderClient) async throws -> any PiecewiseDocument) {
        (self.type, self.status, self.prepare) = (type, status, prepare)
    }

    /// Creates a document of the board at the time when it is rendered.
    init(type: String, of boards: BoardSource, _ document: @escaping @Sendable (Board) -> any PiecewiseDocument) {
        self.init(type: type) { _ in
            DeferredDocument { boards.current().map(document) ?? WholeDocument { [] } }
        }
    }

    /// Creates a document that is rendered at once.
    init(type: String, status: Int = 200, render: @escaping @Sendable () -> [UInt8]) {
        self.init(type: type, status: status) { _ in WholeDocument(render: render) }
    }
}

/// The pages and the history of a running service, for its web server.
struct ServicePages: PageRenderer {
    let store: HistoryStore
    let boards: BoardSource
    let evidence: PresentEvidence
    let source: HistorySource
    let timeZone: String
    let offset: TimeZoneOffset
    private let turns = HistoryTurns()

    init(
        store: HistoryStore, boards: BoardSource, evidence: PresentEvidence, source: HistorySource, timeZone: String,
        offset: @escaping TimeZoneOffset
    ) {
        (self.store, self.boards, self.evidence, self.source) = (store, boards, evidence, source)
        (self.timeZone, self.offset) = (timeZone, offset)
    }

    static let html = "text/html; charset=utf-8"

    func status(_ query: String) -> PageDocument {
        PageDocument(type: Self.html, of: boards) { board in
            StatusPage.pieces(board: board, query: BoardQuery(QueryParameters(query)), now: Moment.now)
        }
    }

    func asset(_ path: PageAsset.StaticPath) -> PageAsset {
        switch path {
        case .style: .style
        case .script: .script
        }
    }

    func target(_ target: BoardTarget, on board: Board, _ query: String) throws -> PageDocument {
        let query = TargetQuery(QueryParameters(query))
        // A page names the parameter that it ignores.
        if query.format != .html, let problem = query.problem { throw WebProblem(problem) }
        let type =
            switch query.format {
            case .html: Self.html
            case .json: TargetDocument.contentType
            case .csv: CSVDocument.contentType
            }
        return PageDocument(type: type) { _ in
            let history = TargetHistory(target: target, board: board, query: query)
            var detail = TargetDetail()
            do { detail = try await store.read { try history.detail($0) } } catch { detail.isComplete = false }
            // CSV has only the outages.
            if query.format != .csv { await evidence.complete(&detail, of: target, board.path?.path) }
            return WholeDocument { [detail] in
                let document = TargetDocument(board: board, target: target, detail: detail, query: query)
                return switch query.format {
                case .html: TargetPage(board: board, target: target, detail: detail, query: query, now: Moment.now).render()
                case .json: document.json()
                case .csv: document.csv()
                }
            }
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
    func history(_ text: String) throws -> PageDocument {
        let parameters = QueryParameters(text)
        if let problem = parameters.problem { throw WebProblem(problem) }
        let now = Moment.now
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
        let answers = HistoryAnswers(
            source: source, timeZone: timeZone, runningSince: boards.current()?.started.milliseconds)
        return PageDocument(type: format.contentType) { client in
            // The history has an earlier state of these, or none, while its disk is full.
            let unrecorded = boards.current()?.incidents.filter { !$0.isRecorded } ?? []
            do {
                return try await turns.run(for: client) { meter in
                    try await store.read { reader in
                        try meter.measure {
                            isReport
                                ? format.document(try answers.report(question, reader, at: now))
                                : format.document(try answers.history(question, reader, unrecorded: unrecorded, at: now))
                        }
                    }
                }
            } catch let error as StoreError {
                switch error.code {
                case .unknownTarget: throw WebProblem(.notFound, error.reason)
                case .invalid: throw WebProblem(.badRequest, error.reason)
                default: throw WebProblem(.unavailable, error.reason)
                }
            }
        }
    }
}
