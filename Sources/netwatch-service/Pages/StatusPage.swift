import Console
import Reachability
import Records
import Wire

/// The status page: this machine, the incidents, and the targets, problems first.
struct StatusPage: Sendable {
    private let board: Board
    private let query: BoardQuery
    private let frame: PageFrame
    private let view: BoardView
    private let computer: ThisComputer
    /// The states of all targets, whatever the query.
    private let counts: StateCounts

    /// Creates the page. It says so if the board is older than `now`.
    init(board: Board, query: BoardQuery, now: Moment) {
        (self.board, self.query) = (board, query)
        frame = PageFrame(board, now: now)
        view = BoardView(board, query)
        computer = ThisComputer(board)
        counts = board.counts
    }

    private var clock: LocalClock { frame.clock }

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
        if let worst = counts.worst, worst.isProblem || computer.failure == nil { return worst }
        return computer.failure == nil ? counts.worst : .unreachable
    }

    /// The problems with their numbers, for the title of the window: `2 down, 1 unreachable`.
    var title: String {
        let problems = counts.present.filter(\.state.isProblem)
        if !problems.isEmpty { return PageText.counts(problems) }
        if let failure = computer.failure { return "\(failure.layer.title) fails" }
        if counts.total == 0 { return "no targets" }
        return counts[.up] == counts.total ? "all up" : PageText.counts(counts.present)
    }

    private var headline: Markup {
        let sentence: String
        if counts.total == 0 {
            sentence =
                computer.failure.map { "The \($0.layer.title) of this machine fails".lowercasedLayer }
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
        switch computer.failure?.layer {
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
        for facet in computer.facets {
            items += """
                <li class=\"\(facet.finding.state.style)\">\(PageSymbol.finding(facet.finding))<b>\(facet.layer.title)</b> \
                <span class=word>\(facet.finding.word)</span> <bdi class=what>\(MarkupText.shortened(facet.detail, to: 80))</bdi></li>
                """
        }
        var causes = Markup()
        for facet in computer.facets {
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

/// The list of targets with its form.
extension StatusPage {
    // MARK: The form

    /// Returns the address of the page with parts of its query changed. A page of another selection begins at its start.
    func address(
        states: Set<RecordedState>? = nil, group: String?? = nil, span: BarSpan? = nil, after: BoardPosition? = nil
    ) -> PageAddress {
        var changed = query
        if let states { changed.states = states }
        if let group { changed.group = group }
        if let span { changed.span = span }
        return PageAddress(
            "/",
            query: [
                ("q", changed.text.isEmpty ? nil : changed.text), ("group", changed.group), ("status", changed.statesText),
                ("span", changed.span == .day ? nil : changed.span.rawValue), ("after", after?.description),
                ("limit", changed.limit == BoardQuery.pageSize ? nil : "\(changed.limit)"),
            ])
    }

    var spans: Markup {
        var links = Markup()
        for span in BarSpan.allCases {
            let mark: Markup = span == query.span ? " aria-current=true" : ""
            links += "<a href=\"\(address(span: span, after: query.after))\"\(mark)>\(span.title)</a>"
        }
        return "<nav class=spans aria-label=\"Span of the bars\">\(links)</nav>"
    }

    var form: Markup {
        let span: Markup = query.span == .day ? "" : "<input type=hidden name=span value=\"\(query.span.rawValue)\">"
        return """
            <form class=search role=search action="/" method=get>\
            <label for=q class=v>Search</label>\
            <input id=q name=q type=search value="\(query.text)" maxlength=200 placeholder="Name, address or cause" autocomplete=off>\
            \(groupChoice)\(stateChoice)\(span)<button>Search</button>\(query.isFiltered ? clear : "")</form>
            """
    }

    private var clear: Markup {
        "<a class=clear href=\"\(PageAddress("/", query: [("span", query.span == .day ? nil : query.span.rawValue)]))\">Show all</a>"
    }

    private var groupChoice: Markup {
        let names = groupNames
        guard !names.isEmpty else { return "" }
        var options: Markup = "<option value=\"\">All groups</option>"
        for name in names {
            let mark: Markup = name == query.group ? " selected" : ""
            options += "<option value=\"\(name)\"\(mark)>\(MarkupText.shortened(name, to: 60))</option>"
        }
        return "<label for=group class=v>Group</label><select id=group name=group>\(options)</select>"
    }

    /// The names of all groups; those beyond the first hundred are reached by the search.
    private var groupNames: [String] {
        var names = board.groups.prefix(100).map(\.name)
        var known = Set(names)
        for target in board.targets {
            guard names.count < 100 else { break }
            if let name = target.group, !name.isEmpty, known.insert(name).inserted { names.append(name) }
        }
        return names
    }

    private var stateChoice: Markup {
        var options: Markup = "<option value=\"\">All states</option>"
        for state in RecordedState.bySeverity {
            let mark: Markup = query.states == [state] ? " selected" : ""
            options += "<option value=\"\(state.name)\"\(mark)>\(state.word)</option>"
        }
        return "<label for=status class=v>State</label><select id=status name=status>\(options)</select>"
    }

    /// The states of the selected targets as links.
    var countLinks: Markup {
        guard counts.total > 0 else { return "" }
        var links = Markup()
        for (state, count) in view.counts.present {
            let isChosen = query.states == [state]
            let target = address(states: isChosen ? [] : [state])
            let mark: Markup = isChosen ? " aria-current=true" : ""
            links += """
                <a class="\(state.style)" href="\(target)"\(mark)>\(PageSymbol.state(state))\(PageText.grouped(count)) \(state.word)</a>
                """
        }
        return "<nav class=counts aria-label=\"Targets by state\">\(links)</nav>"
    }

    // MARK: The list

    /// Returns the list. - Parameter rows: the rows of its sections.
    func targets(_ rows: Rows) -> Markup {
        guard !board.targets.isEmpty else {
            return """
                <p class=empty>There are no targets yet. Add one: <code>netwatch serve HOST:PORT</code>, or a line under \
                <code>targets:</code> in the configuration.</p>
                """
        }
        guard view.total > 0 else {
            return "<p class=empty>No target matches. <a href=\"/\">Show all targets</a></p>"
        }
        var content = Markup()
        for (section, rows) in zip(view.sections, rows.sections) { content += table(section, rows) }
        for group in view.groups where group.isFolded && group.counts.total > 0 { content += folded(group) }
        return content
    }

    private func table(_ section: BoardView.Section, _ rows: Markup) -> Markup {
        let heading: Markup
        if let number = section.group {
            let group = view.groups[number]
            let hasOthers =
                view.groups.contains { $0.name != nil && $0.counts.total > 0 } || view.sections.contains { $0.group == nil }
            guard let name = group.name else {
                heading = hasOthers ? "<h3>Other targets</h3>" : "<h3 class=v>All targets</h3>"
                return heading.adding(table(rows))
            }
            heading = "<h3><bdi>\(MarkupText.shortened(name, to: PageText.nameLimit))</bdi> \(summary(group.counts))</h3>"
        } else {
            heading = "<h3>Problems</h3>"
        }
        return heading.adding(table(rows))
    }

    private func summary(_ counts: StateCounts) -> Markup { "<span class=sub>\(PageText.counts(counts.present))</span>" }

    private func folded(_ group: BoardView.Group) -> Markup {
        let name = group.name ?? ""
        let state = group.counts.worst ?? .up
        return """
            <details class=folded id="group-\(PercentEncoding.encode(name))"><summary>\(PageSymbol.state(state))\
            <b><bdi>\(MarkupText.shortened(name, to: PageText.nameLimit))</bdi></b> \(summary(group.counts))</summary>\
            <p><a href="\(address(group: .some(name)))">Show the \(PageText.count(group.counts.total, "target"))</a></p></details>
            """
    }

    /// Returns a row of the list.
    func row(_ row: BoardView.Row, isProblem: Bool) -> TargetRow {
        TargetRow(target: board.targets[row.index], span: query.span, board: board, clock: clock, isProblem: isProblem)
    }

    private func table(_ rows: Markup) -> Markup {
        """
        <table class=list><colgroup><col><col><col><col><col><col></colgroup><thead><tr><th scope=col>State</th><th scope=col>Target</th>\
        <th scope=col class=l>Response</th><th scope=col class=k>Certificate</th><th scope=col>\(query.span.phrase)</th><th scope=col class=a>Available</th></tr></thead><tbody>\(rows)</tbody></table>
        """
    }

    // MARK: Pages

    var pages: Markup {
        guard view.listed > query.limit || view.previous != nil else { return "" }
        let previous: Markup =
            switch view.previous {
            case .first: "<a rel=prev href=\"\(address())\">Previous</a>"
            case .after(let position): "<a rel=prev href=\"\(address(after: position))\">Previous</a>"
            case nil: "<span class=off>Previous</span>"
            }
        let next: Markup =
            view.next.map { "<a rel=next href=\"\(address(after: $0))\">Next</a>" } ?? "<span class=off>Next</span>"
        let end = view.offset + view.rows.count
        let range = end > view.offset ? "\(PageText.grouped(view.offset + 1))–\(PageText.grouped(end))" : "0"
        return """
            <nav class=pages aria-label="Pages">\(previous)<span>\(range) of \(PageText.grouped(view.listed))</span>\(next)</nav>
            """
    }

    static let legend: Markup = {
        var items = Markup()
        for state in RecordedState.bySeverity.reversed() + [.notRecorded] {
            items += """
                <div><dt><span class="bar key"><i class="\(state.style) w1"></i></span>\(PageSymbol.state(state))\(state.word)</dt>\
                <dd>\(state.meaning)</dd></div>
                """
        }
        return """
            <details class=legend id=legend><summary>What the states and bars mean</summary><dl>\(items)</dl>\
            <p>A bar has the oldest time at its left. The taller a part is, the worse the state. A part shows the worst state of its time. \
            Where a part is narrower, nothing was observed for the remainder of its time.</p>\
            <p>Availability is the part of the observed time in which a target was up or degraded. Faults before the target do not count; \
            the figure with local causes includes them.</p></details>
            """
    }()
}

extension Markup {
    fileprivate func adding(_ other: Markup) -> Markup {
        var sum = self
        sum += other
        return sum
    }
}

extension BarSpan {
    /// The span as the name of a link.
    var title: StaticString {
        switch self {
        case .day: "24 h"
        case .week: "7 d"
        case .quarter: "90 d"
        }
    }

    /// The span in words, at the beginning of a line.
    var phrase: StaticString {
        switch self {
        case .day: "Last 24 hours"
        case .week: "Last 7 days"
        case .quarter: "Last 90 days"
        }
    }

    /// The span in words, within a sentence.
    var noun: StaticString {
        switch self {
        case .day: "last 24 hours"
        case .week: "last 7 days"
        case .quarter: "last 90 days"
        }
    }
}

/// The incidents: those that are open now, apart from those that are over.
extension StatusPage {
    /// The maximum numbers of shown incidents.
    private static let openLimit = 8
    private static let singleLimit = 3
    private static let overLimit = 20

    var incidents: Markup {
        let all = board.incidents.filter { $0.incident.state == .open }
        let maintained = Set(board.targets.lazy.filter(\.isInMaintenance).compactMap(\.number))
        let planned = all.filter { $0.concerns(only: maintained) }
        let open = all.filter { !$0.concerns(only: maintained) }
        let over = board.incidents.filter { $0.incident.state != .open }
        guard !all.isEmpty || !over.isEmpty else { return "" }
        // A fault of this machine or of the network explains the most targets.
        let sorted = open.enumerated().sorted { first, second in
            let (one, other) = (first.element.incident, second.element.incident)
            let (a, b) = (one.scope.rank, other.scope.rank)
            if a != b { return a < b }
            if one.targetCount != other.targetCount { return one.targetCount > other.targetCount }
            return first.offset < second.offset
        }.map(\.element)
        return """
            <section aria-labelledby=incidents><h2 id=incidents>Incidents</h2>\(now(sorted))\(duringMaintenance(planned))\(past(over))</section>
            """
    }

    private func now(_ incidents: [BoardIncident]) -> Markup {
        guard !incidents.isEmpty else { return "<p class=none>No incident is open now.</p>" }
        // An incident of one target repeats its line in the list.
        var shared = incidents.filter { $0.incident.isSharedFault }
        var single = incidents.filter { !$0.incident.isSharedFault }
        if single.count <= Self.singleLimit { (shared, single) = (shared + single, []) }
        var items = Markup()
        for incident in shared.prefix(Self.openLimit) { items += item(incident) }
        let others = shared.count - Self.openLimit
        if others > 0 {
            items += "<li class=more>and \(PageText.count(others, "more incident")); their targets are in the list below</li>"
        }
        let list: Markup = shared.isEmpty ? "" : "<ul class=incidents>\(items)</ul>"
        return "<h3 class=v>Now</h3>\(list)\(singles(single))"
    }

    private func singles(_ incidents: [BoardIncident]) -> Markup {
        guard !incidents.isEmpty else { return "" }
        var items = Markup()
        for incident in incidents.prefix(Self.openLimit) { items += item(incident) }
        let unrecorded = incidents.count { !$0.isRecorded }
        let mark: Markup = unrecorded == 0 ? "" : ", \(PageText.grouped(unrecorded)) not recorded"
        let others = incidents.count - Self.openLimit
        if others > 0 { items += "<li class=more>and \(PageText.grouped(others)) more</li>" }
        return """
            <details id=single><summary>\(PageSymbol.state(.down))\(PageText.count(incidents.count, "incident")) of one target each \
            <span class=sub>the targets are in the list below\(mark)</span></summary><ul class=incidents>\(items)</ul></details>
            """
    }

    private func duringMaintenance(_ incidents: [BoardIncident]) -> Markup {
        guard !incidents.isEmpty else { return "" }
        var items = Markup()
        for incident in incidents.prefix(Self.overLimit) { items += item(incident) }
        let others = incidents.count - Self.overLimit
        if others > 0 { items += "<li class=more>and \(PageText.grouped(others)) more</li>" }
        return """
            <details id=planned><summary>\(PageText.count(incidents.count, "incident")) of targets in maintenance</summary>\
            <ul class=incidents>\(items)</ul></details>
            """
    }

    private func past(_ incidents: [BoardIncident]) -> Markup {
        guard let last = incidents.first else { return "" }
        var items = Markup()
        for incident in incidents.prefix(Self.overLimit) { items += item(incident) }
        let ended: Markup = last.incident.ended.map { "the last one ended \(ago($0.milliseconds))" } ?? ""
        return """
            <details id=over><summary>\(PageText.count(incidents.count, "incident")) over <span class=sub>\(ended)</span></summary>\
            <ul class=incidents>\(items)</ul></details>
            """
    }

    private func ago(_ time: Int64) -> Markup {
        "\(LocalClock.duration(milliseconds: clock.now.elapsed(since: time))) ago, at \(clock.element(time))"
    }

    private func item(_ entry: BoardIncident) -> Markup {
        let incident = entry.incident
        let isOpen = incident.state == .open
        let state: RecordedState = isOpen ? (incident.scope == .server ? .down : .unreachable) : .notRecorded
        let start = incident.began.milliseconds
        let time: Markup =
            if let end = incident.ended?.milliseconds {
                "for \(LocalClock.duration(milliseconds: end.elapsed(since: start))), from \(clock.element(start)) to \(clock.element(end, after: start))"
            } else {
                clock.since(start)
            }
        var mark: Markup = incident.kind == .flapping ? " <em class=tag>flapping</em>" : ""
        if incident.state == .merged { mark += " <em class=tag>merged</em>" }
        if incident.state == .removed { mark += " <em class=tag>target removed</em>" }
        if !entry.isRecorded { mark += " <em class=tag>not recorded</em>" }
        return """
            <li class="\(state.style)">\(PageSymbol.state(state))<div><b><bdi>\(subject(incident))</bdi></b> \
            <span class=scope>\(incident.scope.phrase)</span>\(mark)<p>\(incident.cause.markup())</p>\
            <p class=when>\(affected(incident)) · \(time)</p></div></li>
            """
    }

    private func subject(_ incident: Incident) -> String {
        let subject = incident.subject
        let title = subject.kind == .target ? subject.name.map(board.names.name) : subject.name
        let name = MarkupText.shortened(title ?? "", to: PageText.nameLimit)
        return switch subject.kind {
        case .interface: subject.name == nil ? "This machine" : "Interface \(name)"
        case .gateway: subject.name == nil ? "The gateway" : "Gateway \(name)"
        case .resolver: subject.name == nil ? "The name servers" : "Name server \(name)"
        case .hop: "Router \(name)"
        case .host: "Host \(name)"
        case .target: name
        }
    }

    private func affected(_ incident: Incident) -> Markup {
        let shown = incident.targets.prefix(3).map { MarkupText.shortened(board.names.name(of: $0.text), to: 60) }.joined(
            separator: ", ")
        let others = incident.targetCount - min(3, incident.targets.count)
        guard incident.targetCount > 1 || incident.subject.kind != .target else { return "1 target" }
        return """
            \(PageText.count(incident.targetCount, "target"))<span class=names>: <bdi>\(shown)</bdi>\
            \(others > 0 ? " and \(PageText.grouped(others)) more" : "")</span>
            """
    }
}

extension Incident {
    /// Whether the fault concerns more than a single target.
    fileprivate var isSharedFault: Bool { targetCount > 1 || scope != .server }
}

extension BoardIncident {
    /// Whether the fault is of servers with these numbers in the history.
    fileprivate func concerns(only numbers: Set<Int>) -> Bool {
        incident.scope == .server && !targets.isEmpty && targets.numbers.allSatisfy(numbers.contains)
    }
}

extension Incident.Scope {
    /// The place of the fault in the order of the page: this machine first.
    fileprivate var rank: Int {
        switch self {
        case .local: 0
        case .path: 1
        case .server: 2
        }
    }

    /// The place of the fault for people.
    var phrase: StaticString {
        switch self {
        case .local: "a fault of this machine"
        case .path: "a fault of the network before the target"
        case .server: "a fault of the target"
        }
    }
}
