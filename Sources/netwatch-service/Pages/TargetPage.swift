import Reachability

/// The page of one target: its state, the layers, its history, and the evidence.
struct TargetPage {
    private let board: Board
    private let target: BoardTarget
    private let detail: TargetDetail
    private let query: TargetQuery
    private let frame: PageFrame
    /// The layers; `nil` before the path is known.
    private let layers: TargetLayers?

    /// Creates the page. It says so if the board is older than `now`.
    init(board: Board, target: BoardTarget, detail: TargetDetail, query: TargetQuery, now: Moment) {
        (self.board, self.target, self.detail, self.query) = (board, target, detail, query)
        frame = PageFrame(board, now: now)
        layers = board.path.map { TargetLayers(target.update, path: $0.path, detail) }
    }

    private var clock: LocalClock { frame.clock }

    /// Returns the address of a target's page.
    static func address(
        _ target: BoardTarget, span: BarSpan = .day, interval: Range<Int64>? = nil, format: TargetQuery.Format = .html
    ) -> PageAddress {
        PageAddress(
            "/target/", segment: target.key,
            query: [
                ("span", span == .day ? nil : span.rawValue), ("at", interval.map(TargetQuery.text)),
                ("format", format == .html ? nil : format.rawValue),
            ])
    }

    /// Returns the page, or the parts of it that its script exchanges.
    func render() -> [UInt8] {
        let name = MarkupText.shortened(target.title, to: PageText.nameLimit)
        let title = "\(target.state.word): \(name)"
        let content: Markup = """
            <div id=target data-part data-state="\(target.state.name)" data-k="\(target.key)">\(heading)\(facts)\(addresses)\(why)\(certificate)\
            \(spanHead)\(bar)\(availabilities)\(charts)\(outages)\(timeline)</div>
            """
        if query.isPart { return frame.fragment(title: title, content: content) }
        let back: Markup = "<p class=back><a href=\"/\">All targets</a></p>"
        let problem = query.problem?.notice ?? Markup()
        return frame.document(title: title, state: target.state, content: "\(back)\(problem)\(content)\(evidence)")
    }

    // MARK: The state

    private var heading: Markup {
        let update = target.update
        let state = target.state
        var reason = Markup()
        if let cause = update.cause, update.statusName != .up {
            reason = "<p class=cause><span>\(cause.markup(limit: 1_000))</span></p>"
        } else if update.statusName == .unknown {
            reason = "<p class=cause>No probe has ended yet.</p>"
        }
        return """
            <h1 class="\(state.style)">\(PageSymbol.state(state))<span><bdi>\(MarkupText.shortened(target.title, to: 300))</bdi> \
            <span class=sub>\(state.word) \(clock.since(update.statusMoment.milliseconds))</span></span></h1>\(reason)
            """
    }

    private var facts: Markup {
        let update = target.update
        var items = Markup()
        func add(_ name: StaticString, _ value: Markup) { items += "<div><dt>\(name)</dt><dd>\(value)</dd></div>" }
        func add(_ name: StaticString, _ value: String?) {
            guard let value, !value.isEmpty else { return }
            add(name, "<bdi>\(MarkupText.shortened(value, to: 400))</bdi>" as Markup)
        }
        add("Target", update.endpoint.text)
        add("Group", target.group)
        add("Labels", target.labels.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: ", "))
        add("Severity", target.severity?.rawValue)
        add("Address", update.address?.description)
        add("Interface", update.interface.map { "\($0.name) (\($0.type.rawValue))" })
        let (report, current) = (detail.report, target.current)
        add("Response time", (report?.responseTime ?? current.responseTime).map(PageText.roundTrip))
        add("Round trip", (report?.roundTrip ?? current.roundTrip).map(PageText.roundTrip))
        add("Certificate", current.certificateDaysLeft(at: board.moment).map(PageText.certificate))
        if let job = update.job { add("Job", job == .running ? "runs now" : "does not run now") }
        if let report, update.job == nil { add("Last probe", Self.lastProbe(report, clock)) }
        if let report, update.job != nil { add("Last result", Self.lastProbe(report, clock)) }
        if update.isFlapping { add("Changes", "more than 30 % of the last 20 results differ from the one before") }
        if update.isPaused { add("Probes", "wait, because the byte budget of the metered interface is used up") }
        if target.isInMaintenance { add("Maintenance", "a maintenance window covers this time") }
        return "<dl class=facts>\(items)</dl>"
    }

    /// The time of the last probe, with its phases or its failure.
    private static func lastProbe(_ report: ProbeReport, _ clock: LocalClock) -> Markup {
        let time = clock.element(report.moment.milliseconds)
        if let cause = report.cause { return "\(time), failed: \(cause.markup())" }
        let phases = ProbePhase.allCases.compactMap { phase in
            report.duration(of: phase).map { "\(phase.words) \(PageText.roundTrip($0))" }
        }
        guard !phases.isEmpty else { return time }
        return "\(time) <small>\(MarkupText.shortened(phases.joined(separator: ", "), to: 200))</small>"
    }

    private var addresses: Markup {
        let addresses = target.update.addresses
        guard !addresses.isEmpty else { return "" }
        let list = AddressList(addresses, clock).markup
        return "<section class=addresses aria-labelledby=addresses><h2 id=addresses>Addresses</h2>\(list)</section>"
    }

    // MARK: The layers

    private var why: Markup {
        guard let layers else { return "" }
        var items = Markup()
        for step in layers.steps {
            let finding = layers.finding(of: step)
            let time = step.duration.map(PageText.roundTrip) ?? ""
            items += """
                <li class="\(finding.state.style)">\(PageSymbol.finding(finding))<b>\(step.layer.rawValue)</b>\
                <span class=word>\(finding.word)</span><span class=l>\(time)</span>\
                <div><bdi>\(PageText.sentence(MarkupText.shortened(step.detail, to: 600)))</bdi>\(facts(of: step))</div></li>
                """
        }
        if let other = layers.other {
            let finding: ThisComputer.Finding = target.update.statusName == .degraded ? .degraded : .fails
            items += """
                <li class="\(finding.state.style)">\(PageSymbol.finding(finding))<b>\(MarkupText.shortened(other.layer.rawValue, to: 40))</b>\
                <span class=word>\(finding.word)</span><span class=l></span>\
                <div><bdi>\(PageText.sentence(MarkupText.shortened(other.detail, to: 600)))</bdi>\(facts(other.evidence))</div></li>
                """
        }
        return "<section aria-labelledby=why><h2 id=why>Why: layer by layer</h2><ol class=layers>\(items)</ol></section>"
    }

    private static let certificateKeys: Set<String> = [
        "subject", "names", "issuer", "not_before", "not_after", "sha256", "chain_length", "chain_not_after", "verify_errors",
        "stapled", "stapled_this_update", "stapled_next_update", "stapled_signer", "revoked_at", "revocation_reason",
    ]

    private func facts(of step: Diagnosis.Step) -> Markup {
        guard step.finding != .notReached else { return "" }
        return facts(step.evidence.filter { step.layer != .tls || !Self.certificateKeys.contains($0.key) })
    }

    private func facts(_ facts: [String: Cause.Evidence]) -> Markup {
        guard !facts.isEmpty else { return "" }
        var items = Markup()
        for (name, fact) in facts.sorted(by: { $0.key < $1.key }).prefix(24) {
            items +=
                "<span><i>\(MarkupText.shortened(name, to: 60))</i> <bdi>\(MarkupText.shortened(fact.plainText, to: 300))</bdi></span> "
        }
        return "<p class=evidence>\(items)</p>"
    }

    private var certificate: Markup {
        guard let facts = layers?.certificate, !facts.isEmpty else { return "" }
        var items = Markup()
        for fact in facts {
            items += "<div><dt>\(fact.name)</dt><dd><bdi>\(MarkupText.shortened(fact.value, to: 1_000))</bdi></dd></div>"
        }
        return "<section aria-labelledby=cert><h2 id=cert>Certificate</h2><dl class=\"facts wide\">\(items)</dl></section>"
    }

    // MARK: The evidence

    private var evidence: Markup {
        let document = TargetDocument(board: board, target: target, detail: detail, query: query)
        let json = TargetPage.address(target, span: query.span, interval: query.interval, format: .json)
        let csv = TargetPage.address(target, span: query.span, interval: query.interval, format: .csv)
        return """
            <section aria-labelledby=evidence><h2 id=evidence>Evidence</h2>\
            <p class=links><a href="\(json)">All of this as JSON</a> <a href="\(csv)">Outages as CSV</a></p>\
            <details id=copy><summary>Copy the evidence</summary>\
            <p><button type=button data-copy=json hidden>Copy to the clipboard</button></p>\
            <label for=json class=v>The evidence as JSON</label>\
            <textarea id=json readonly rows=14 spellcheck=false>\(String(decoding: document.json(), as: UTF8.self))</textarea></details>\
            </section>
            """
    }
}

/// The history of a target: bar, availabilities, round trips, outages and the timeline.
extension TargetPage {
    var spanHead: Markup {
        var links = Markup()
        for span in BarSpan.allCases {
            let mark: Markup = span == query.span ? " aria-current=true" : ""
            links += "<a href=\"\(TargetPage.address(target, span: span))#history\"\(mark)>\(span.title)</a>"
        }
        let notice: Markup =
            detail.isComplete
            ? "" : "<p class=notice>The history did not answer in time; a part of it is missing.</p>"
        return """
            <div class=bar-head><h2 id=history>History</h2><nav class=spans aria-label="Span of the history">\(links)</nav></div>\(notice)
            """
    }

    var bar: Markup {
        var budget = BarBudget()
        let bar = TargetBar(target: target, span: query.span, board: board, clock: clock).markup(&budget)
        return "<div class=wide-bar>\(bar)\(axis)</div>"
    }

    /// The times at the start, in the middle and at the end of the span.
    private var axis: Markup {
        guard let span else { return "" }
        let middle = span.lowerBound + (span.upperBound - span.lowerBound) / 2
        return "<p class=axis><span>\(label(span.lowerBound))</span><span>\(label(middle))</span><span>now</span></p>"
    }

    private var span: Range<Int64>? {
        let cells = board.cells[query.span]
        guard let start = cells.first?.lowerBound, let end = cells.last?.upperBound, start < end else { return nil }
        return start..<end
    }

    private func label(_ time: Int64) -> String {
        query.span == .day
            ? (clock.isToday(time) ? clock.minute(time) : "\(clock.day(time)) \(clock.minute(time))") : clock.day(time)
    }

    var availabilities: Markup {
        var items = Markup()
        for span in BarSpan.allCases {
            let times = board.times(of: target, in: span)
            items += """
                <div><dt>\(span.phrase)</dt><dd>\(AvailabilityText(times).markup)\
                <small>\(PageText.times(times))</small></dd></div>
                """
        }
        let starts = BarSpan.allCases.compactMap { span in
            board.cells[span].first.map { (span, $0.lowerBound) }
        }
        var note = Markup()
        for (span, start) in starts { note += "\(note.bytes.isEmpty ? "" : ", ")\(span.rawValue) since \(clock.element(start))" }
        let periods: Markup = starts.isEmpty ? "" : "<p class=sub>The cells are whole hours and days: \(note).</p>"
        return "<h3>Availability</h3><dl class=avail>\(items)</dl>\(periods)"
    }

    var charts: Markup {
        // A job has no round trips.
        guard target.update.job == nil else { return "" }
        guard let span, !detail.roundTrips.isEmpty else { return "" }
        guard detail.roundTrips.contains(where: { $0.median != nil }) else {
            return "<h3>Round trip</h3><p class=none>No probe was answered in this time.</p>"
        }
        var charts = Markup()
        if detail.responseTimes.contains(where: { $0.median != nil }) {
            let chart = TimeChart(kind: .responseTime, points: detail.responseTimes, span: span, clock: clock)
            charts += "<h3>Response time</h3>\(chart.markup(axis: axis))"
        }
        let chart = TimeChart(kind: .roundTrip, points: detail.roundTrips, span: span, clock: clock)
        return "\(charts)<h3>Round trip</h3>\(chart.markup(axis: axis))"
    }

    // MARK: Outages

    var outages: Markup {
        guard !detail.outages.isEmpty else {
            return
                "<section aria-labelledby=outages><h2 id=outages>Outages</h2><p class=none>No outage is recorded.</p></section>"
        }
        var rows = Markup()
        for outage in detail.outages.prefix(TargetDetail.outageLimit) {
            let end = outage.end ?? clock.now
            let until: Markup = outage.end.map { clock.element($0, after: outage.start) } ?? "<b>now</b>"
            let cause: Markup = outage.cause.map { $0.markup() } ?? "The cause is not known."
            let mark: Markup = outage.isRecorded ? "" : " <em class=tag>not recorded</em>"
            rows += """
                <tr class="\(outage.state.style)"><td class=t>\(PageSymbol.state(outage.state))<span class=word>\(outage.state.word)</span></td>\
                <td class=c>\(cause)\(mark)</td><td class=l>\(LocalClock.duration(milliseconds: end.elapsed(since: outage.start)))</td>\
                <td class=f>\(clock.element(outage.start)) to \(until)</td></tr>
                """
        }
        return """
            <section aria-labelledby=outages><h2 id=outages>Outages</h2><table class=outages><colgroup><col><col><col><col></colgroup><thead><tr><th scope=col>State</th>\
            <th scope=col>Cause</th><th scope=col class=l>Duration</th><th scope=col>Time</th></tr></thead><tbody>\(rows)</tbody></table>\
            </section>
            """
    }

    // MARK: The timeline

    var timeline: Markup {
        let entries = TimelineEntry.merged(detail)
        let title: Markup =
            query.interval.map { "Timeline of \(clock.interval($0))" } ?? "Timeline of the \(query.span.noun)"
        let all: Markup =
            query.interval == nil
            ? "" : " <a class=clear href=\"\(TargetPage.address(target, span: query.span))#timeline\">Show the span</a>"
        guard !entries.isEmpty else {
            return """
                <section aria-labelledby=timeline><h2 id=timeline>\(title)</h2><p class=none>Nothing changed in this time.\(all)</p></section>
                """
        }
        var items = Markup()
        for entry in entries { items += item(entry) }
        return """
            <section aria-labelledby=timeline><h2 id=timeline>\(title)</h2>\(all)<ol class=timeline>\(items)</ol></section>
            """
    }

    private func item(_ entry: TimelineEntry) -> Markup {
        let (state, kind, text): (RecordedState, Markup, Markup)
        switch entry.content {
        case .state(let change):
            state = change.state
            kind = "probes"
            text = "<b>\(change.state.word)</b> \(change.cause.map { $0.markup() } ?? "")"
        case .path(let event):
            state = event.isSatisfied ? .up : .unreachable
            kind = "this machine"
            let path: Markup =
                event.isSatisfied
                ? "The path is satisfied\(event.interface.map { " over \(MarkupText.shortened($0, to: 40))" } ?? "")."
                : "<b>The path is not satisfied.</b> \(event.cause.map { $0.markup() } ?? "")"
            text = "\(path) <span class=w>\(MarkupText.shortened(event.reasonText, to: 200))</span>"
        case .gap(let gap):
            state = .notRecorded
            kind = "history"
            let length = LocalClock.duration(milliseconds: gap.period.upperBound.elapsed(since: gap.period.lowerBound))
            text = "Nothing was recorded for \(length): \(gap.reason.phrase)."
        }
        return """
            <li class="\(state.style)"><span class=when>\(clock.element(entry.time))</span>\(PageSymbol.state(state))\
            <span class=kind>\(kind)</span><div>\(text)</div></li>
            """
    }
}

/// An entry of the timeline, which merges the events of this machine, the results of probes, and gaps.
struct TimelineEntry: Hashable {
    enum Content: Hashable {
        case state(TargetDetail.StateChange)
        case path(TargetDetail.PathEvent)
        case gap(HistoryGap)
    }

    /// The time in milliseconds since 1970.
    var time: Int64
    var content: Content

    /// The maximum number of entries.
    static let limit = 200

    /// Returns the entries of a history, the newest first. At the same time, the state follows the event of this machine that caused it.
    static func merged(_ detail: TargetDetail) -> [Self] {
        let entries =
            detail.changes.prefix(TargetDetail.entryLimit).map { Self(time: $0.time, content: .state($0)) }
            + detail.pathEvents.prefix(TargetDetail.entryLimit).map { Self(time: $0.time, content: .path($0)) }
            + detail.gaps.prefix(TargetDetail.entryLimit).map { Self(time: $0.period.lowerBound, content: .gap($0)) }
        let sorted = entries.enumerated().sorted {
            $0.element.time != $1.element.time ? $0.element.time > $1.element.time : $0.offset < $1.offset
        }
        return sorted.prefix(limit).map(\.element)
    }
}

extension HistoryGap.Reason {
    /// The reason in a few words.
    var phrase: StaticString {
        switch self {
        case .suspend: "the machine was suspended"
        case .stopped: "the service was stopped"
        case .notRecorded: "the history could not be written, the clock was set, or the process did not run"
        }
    }
}
