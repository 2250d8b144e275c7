import Reachability

/// The line of a target in the list.
struct TargetRow {
    let target: BoardTarget
    let span: BarSpan
    let board: Board
    let clock: LocalClock
    /// Whether the row stands apart from its group, so that it names the group.
    let isProblem: Bool

    /// Returns the row.
    func markup(_ budget: inout BarBudget) -> Markup {
        let state = target.state
        return """
            <tr data-k="\(target.key)" class="\(state.style)"><td class=t>\(PageSymbol.state(state))<span class=word>\(state.word)</span></td>\
            <th scope=row><a class=name href="\(TargetPage.address(target, span: span))"><bdi>\(title)</bdi></a>\(origin)\
            <p class=c>\(cause)</p>\(addresses)</th>\
            <td class=l>\(times)</td><td class=k>\(certificate)</td>\
            <td class=b>\(TargetBar(target: target, span: span, board: board, clock: clock).markup(&budget))</td>\
            <td class=a>\(AvailabilityText(board.times(of: target, in: span)).markup)</td></tr>
            """
    }

    /// The response time, and the round trip below it.
    private var times: Markup {
        let current = target.current
        let roundTrip: Markup = current.roundTrip.map { "<small>round trip \(PageText.roundTrip($0))</small>" } ?? ""
        return "\(current.responseTime.map(PageText.roundTrip) ?? "")\(roundTrip)"
    }

    /// The remaining validity of the certificate; empty if it is not known, and for targets without TLS.
    private var certificate: Markup {
        guard let days = target.current.certificateDaysLeft(at: board.moment) else { return "" }
        return days < 0 ? "<b>\(PageText.certificate(days))</b>" : "\(PageText.certificate(days))"
    }

    private var title: String { MarkupText.shortened(target.title, to: PageText.nameLimit) }

    /// The address, if it is not the name, and the group of a problem.
    private var origin: Markup {
        let text = target.update.endpoint.text
        var parts = Markup()
        if text != target.title { parts += " <small>\(MarkupText.shortened(text, to: 80))</small>" }
        if isProblem, let group = target.group, !group.isEmpty {
            parts += " <small class=group><bdi>\(MarkupText.shortened(group, to: 60))</bdi></small>"
        }
        return parts
    }

    private var cause: Markup {
        let update = target.update
        if target.isInMaintenance {
            return update.statusName == .up ? "" : "The probes' result is \(RecordedState(update.statusName).word)."
        }
        switch update.statusName {
        case .up:
            return update.isFlapping ? "Its state changes often." : paused
        case .unknown where update.job != nil:
            return "No report has come yet, or one may have been missed."
        case .unknown:
            return update.cause.map { $0.markup() } ?? "No probe has ended yet."
        case .down, .unreachable, .degraded:
            let reason: Markup = update.cause.map { $0.markup() } ?? "The cause is not known."
            return """
                \(reason) <span class=w>\(clock.since(update.statusMoment.milliseconds, isCompact: true))\(update.isFlapping ? "; it changes often" : "")</span>\
                \(paused)
                """
        }
    }

    /// The addresses of a target that are all probed, folded.
    private var addresses: Markup {
        let addresses = target.update.addresses
        guard !addresses.isEmpty else { return "" }
        let failing = addresses.count { $0.statusName != .up }
        let all: Markup = addresses.count == 1 ? "1 address" : "\(addresses.count) addresses"
        let summary: Markup = failing == 0 ? all : "\(failing) of \(all) not up"
        return """
            <details class=addresses id="addresses-\(target.key)"><summary>\(summary)</summary>\(AddressList(addresses, clock).markup)</details>
            """
    }

    private var paused: Markup {
        target.update.isPaused ? " <em class=tag>probes wait: the byte budget of the metered interface is used up</em>" : ""
    }
}

/// The addresses of a target that are all probed, each with its status.
struct AddressList {
    private let addresses: [AddressStatus]
    private let clock: LocalClock

    init(_ addresses: [AddressStatus], _ clock: LocalClock) { (self.addresses, self.clock) = (addresses, clock) }

    var markup: Markup {
        var items = Markup()
        for address in addresses {
            let state = RecordedState(address.statusName)
            let reason: Markup =
                address.cause.map { $0.markup() }
                ?? (address.statusName == .unreachable ? "This machine has no route to it." : "")
            items += """
                <li class="\(state.style)">\(PageSymbol.state(state))<bdi>\(address.address.description)</bdi> <span class=word>\(state.word)</span> \
                <span class=w>\(clock.since(address.since.milliseconds, isCompact: true))</span> \(reason)</li>
                """
        }
        return "<ul>\(items)</ul>"
    }
}

/// The availability of a target in a span: measured, with local causes if that differs, and the part that was not observed.
struct AvailabilityText {
    private let availability: Availability

    init(_ times: StateTimes) { availability = Availability(times) }

    var markup: Markup {
        guard let server = availability.server else {
            let local: Markup = availability.withLocalCauses == nil ? "" : "<small>unreachable all the time</small>"
            return "<span class=none>not observed</span>\(local)"
        }
        return "\(PageText.percent(server))\(local)\(unobserved)"
    }

    private var local: Markup {
        guard let server = availability.server, let local = availability.withLocalCauses,
            PageText.percent(server) != PageText.percent(local)
        else { return "" }
        return "<small>\(PageText.percent(local)) with local causes</small>"
    }

    private var unobserved: Markup {
        guard let observed = availability.observed, observed < 0.995 else { return "" }
        return "<small>\(PageText.percent(1 - observed)) not observed</small>"
    }
}

/// The remaining bytes for the links of bars. Bars of calm targets are small; a page whose targets all change in each cell would
/// exceed its size.
struct BarBudget: Hashable {
    /// The bytes of parts with a link and a title.
    var linked = 54_000
    /// The bytes of parts without either.
    var plain = 14_000
}

/// The bar of a target.
struct TargetBar {
    let target: BoardTarget
    let span: BarSpan
    let board: Board
    let clock: LocalClock

    /// Returns the bar: with links if the budget allows it, else with its parts alone, else as a sentence.
    func markup(_ budget: inout BarBudget) -> Markup {
        let segments = BarSegment.segments(
            of: target.bars[span], in: board.cells[span], now: board.moment.milliseconds)
        guard !segments.isEmpty else { return "<span class=none>no history yet</span>" }
        let label = "\(span.phrase): \(PageText.times(board.times(of: target, in: span)))"
        if let bar = linked(segments, limit: budget.linked) {
            budget.linked -= bar.bytes.count
            return "<div class=\"bar \(span.style)\" role=group aria-label=\"\(label)\">\(bar)</div>"
        }
        guard segments.count * Self.plainPart <= budget.plain else { return "<span class=none>\(label)</span>" }
        var bar = Markup()
        for segment in segments { bar += "<i class=\"\(style(segment))\"></i>" }
        budget.plain -= bar.bytes.count
        return "<div class=\"bar \(span.style)\" role=img aria-label=\"\(label)\">\(bar)</div>"
    }

    /// The maximum number of bytes of a part without a link.
    private static let plainPart = 25

    /// Returns the parts with their links; `nil` if they need more bytes than the limit.
    private func linked(_ segments: [BarSegment], limit: Int) -> Markup? {
        // The least size of a part: most bars of a page without bytes left end here.
        guard segments.count * (target.key.utf8.count + 60) <= limit else { return nil }
        var bar = Markup()
        for segment in segments {
            let address = TargetPage.address(target, span: span, interval: segment.period)
            // The keyboard stops only at parts that differ from a calm one.
            let skipped: Markup = segment.state == .up || segment.state == .notRecorded ? " tabindex=-1" : ""
            bar += """
                <a class="\(style(segment))" href="\(address)" \
                title="\(clock.interval(segment.period)): \(text(segment))"\(skipped)></a>
                """
        }
        return bar.bytes.count <= limit ? bar : nil
    }

    private func text(_ segment: BarSegment) -> String { PageText.times(segment.times) }

    /// The classes of a part: its state, the number of its cells, and the tenths of their time that were observed, if these are not all.
    private func style(_ segment: BarSegment) -> Markup {
        let observed: Markup = segment.observedTenths < 10 ? " p\(segment.observedTenths)" : ""
        return "\(segment.state.style) w\(segment.cells)\(observed)"
    }
}

extension BarSpan {
    /// The class of a bar.
    var style: StaticString {
        switch self {
        case .day: "h"
        case .week: "q"
        case .quarter: "e"
        }
    }
}
