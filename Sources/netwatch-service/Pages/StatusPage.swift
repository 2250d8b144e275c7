import Reachability

/// The status page: this machine, the incidents, and the targets, problems first.
struct StatusPage: Sendable {
    let board: Board
    let query: BoardQuery
    let frame: PageFrame
    let view: BoardView
    let machine: Machine
    /// The states of all targets, whatever the query.
    let counts: StateCounts

    /// Creates the page. It says so if the board is older than `now`.
    init(board: Board, query: BoardQuery, now: Moment) {
        (self.board, self.query) = (board, query)
        frame = PageFrame(board, now: now)
        view = BoardView(board, query)
        machine = Machine(board)
        counts = board.counts
    }

    var clock: LocalClock { frame.clock }

    /// Returns the page, or the parts of it that its script exchanges. - Parameter rows: the rows of ``BoardView/sections``.
    func render(_ rows: Rows) -> [UInt8] {
        let overview: Markup =
            "<div id=overview data-part data-state=\"\(worst?.name ?? "")\">\(headline)\(notices)\(strip)\(incidents)</div>"
        let list: Markup = "<div id=list data-part>\(countLinks)\(targets(rows))\(pages)</div>"
        if query.isPart { return frame.fragment(title: title, content: "\(overview)\(list)") }
        let content: Markup = """
            \(overview)<section aria-labelledby=targets><div class=bar-head><h2 id=targets>Targets</h2>\(spans)</div>\
            \(board.targets.isEmpty ? "" : form)\(problem)\(list)\(board.targets.isEmpty ? "" : StatusPage.legend)</section>
            """
        return frame.document(title: title, state: worst, content: content)
    }

    /// Returns the page of ``init(board:query:now:)`` in pieces.
    static func pieces(board: Board, query: BoardQuery, now: Moment) -> some PiecewiseDocument {
        typealias Document = PartedDocument<Content>
        let parts = stride(from: 0, to: query.limit, by: Document.partSize).map { _ in
            { @Sendable (content: inout Content) in content.rows.add(Document.partSize, of: content.page) }
        }
        return Document(
            Content(), [{ $0.page = StatusPage(board: board, query: query, now: now) }] + parts,
            end: { content in content.page.map { $0.render(content.rows) } ?? [] })
    }

    /// The page, and the rows that are rendered.
    private struct Content: Sendable {
        var page: StatusPage?
        var rows = Rows()
    }

    /// The rendered rows of the sections of a page, in their order.
    struct Rows: Sendable {
        private(set) var sections: [Markup] = []
        /// The number of rows of the last section.
        private var count = 0
        private var budget = BarBudget()

        /// Renders further rows. - Parameter limit: the maximum number.
        mutating func add(_ limit: Int, of page: StatusPage?) {
            guard let page else { return }
            var remaining = limit
            while remaining > 0 {
                if sections.isEmpty || count >= page.view.sections[sections.count - 1].rows.count {
                    guard sections.count < page.view.sections.count else { return }
                    sections.append(Markup())
                    count = 0
                    continue
                }
                let section = page.view.sections[sections.count - 1]
                for row in section.rows[count...].prefix(remaining) {
                    sections[sections.count - 1] += page.row(row, isProblem: section.group == nil).markup(&budget)
                    count += 1
                    remaining -= 1
                }
            }
        }
    }

    // MARK: The headline

    /// The worst state of all targets, or that of the machine if it has no path.
    var worst: RecordedState? {
        if let worst = counts.worst, worst.isProblem || machine.failure == nil { return worst }
        return machine.failure == nil ? counts.worst : .unreachable
    }

    /// The problems with their numbers, for the title of the window: `2 down, 1 unreachable`.
    var title: String {
        let problems = counts.present.filter(\.state.isProblem)
        if !problems.isEmpty { return PageText.counts(problems) }
        if let failure = machine.failure { return "\(failure.layer.title) fails" }
        if counts.total == 0 { return "no targets" }
        return counts[.up] == counts.total ? "all up" : PageText.counts(counts.present)
    }

    private var headline: Markup {
        let sentence: String
        if counts.total == 0 {
            sentence =
                machine.failure.map { "The \($0.layer.title) of this machine fails".lowercasedLayer }
                ?? "This machine is connected"
        } else if counts.present.contains(where: \.state.isProblem) || counts[.up] < counts.total {
            let problems = counts.present.filter(\.state.isProblem)
            sentence = problems.isEmpty ? "No target has a problem\(exception)" : PageText.counts(problems)
        } else {
            let all = counts.total == 1 ? "The target is up" : "All \(PageText.grouped(counts.total)) targets are up"
            sentence = "\(all)\(exception)"
        }
        let others: Markup =
            counts.total > 0 && counts[.up] < counts.total
            ? "<span class=sub>\(PageText.grouped(counts[.up])) of \(PageText.count(counts.total, "target")) up\(quiet)</span>"
            : ""
        return "<h1 class=\"\((worst ?? .up).style)\">\(PageSymbol.state(worst ?? .up))<span>\(sentence)\(others)</span></h1>"
    }

    /// The failure of this machine that the symbol shows although no target has a problem.
    private var exception: String {
        switch machine.failure?.layer {
        case nil: ""
        case .internet: ", but the Internet check fails"
        case let layer?: ", but the \(layer.rawValue) of this machine fails"
        }
    }

    /// The targets that are neither up nor a problem.
    private var quiet: String {
        let states = counts.present.filter { !$0.state.isProblem && $0.state != .up }
        return states.isEmpty ? "" : ", \(PageText.counts(states))"
    }

    // MARK: Notices

    private var notices: Markup {
        var notices = Markup()
        if let reason = board.recording.reason {
            notices += """
                <p class=notice role=alert>\(PageSymbol.state(.degraded))<span><b>Nothing is recorded</b> \
                \(clock.since(board.recording.since)): <bdi>\(MarkupText.shortened(reason, to: 300))</bdi>. \
                Probes, this page and the stream continue.</span></p>
                """
        }
        if let problem = board.reloadProblem {
            notices += """
                <p class=notice role=alert>\(PageSymbol.state(.degraded))<span><b>The new configuration is not used:</b> \
                <bdi>\(MarkupText.shortened(problem, to: 400))</bdi></span></p>
                """
        }
        if !board.restartKeys.isEmpty {
            notices += """
                <p class=notice>\(PageSymbol.state(.degraded))<span><b>A restart is needed</b> for \
                <code>\(board.restartKeys.joined(separator: ", "))</code>: the service uses the former values until then.</span></p>
                """
        }
        return notices
    }

    private var problem: Markup { query.problem?.notice ?? Markup() }

    // MARK: This machine

    private var strip: Markup {
        var items = Markup()
        for facet in machine.facets {
            items += """
                <li class=\"\(facet.finding.state.style)\">\(PageSymbol.finding(facet.finding))<b>\(facet.layer.title)</b> \
                <span class=word>\(facet.finding.word)</span> <bdi class=what>\(MarkupText.shortened(facet.detail, to: 80))</bdi></li>
                """
        }
        var causes = Markup()
        for facet in machine.facets {
            guard let cause = facet.cause else { continue }
            causes += "<p class=cause>\(PageSymbol.finding(facet.finding))<span>\(cause.markup())</span></p>"
        }
        return """
            <section class=machine aria-labelledby=machine><h2 id=machine>This machine</h2><ol class=strip>\(items)</ol>\(causes)\
            \(board.canary == nil ? Self.canaryHint : "")</section>
            """
    }

    private static let canaryHint: Markup = """
        <p class=hint>The Internet is not checked: set <code>canary</code> in the configuration to a URL whose answer is known.</p>
        """
}

extension String {
    /// The sentence about a layer, whose name is in lower case within it.
    fileprivate var lowercasedLayer: String { prefix(1) + dropFirst().lowercased() }
}
