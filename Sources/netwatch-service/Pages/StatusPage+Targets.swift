import Console
import Reachability

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
