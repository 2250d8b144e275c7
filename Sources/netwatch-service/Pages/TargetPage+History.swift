import Reachability

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
