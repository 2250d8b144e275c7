import Reachability

/// The page of one target: its state, the layers, its history, and the evidence.
struct TargetPage {
    let board: Board
    let target: BoardTarget
    let detail: TargetDetail
    let query: TargetQuery
    let frame: PageFrame
    /// The layers; `nil` before the path is known.
    let layers: TargetLayers?

    /// Creates the page. It says so if the board is older than `now`.
    init(board: Board, target: BoardTarget, detail: TargetDetail, query: TargetQuery, now: Moment) {
        (self.board, self.target, self.detail, self.query) = (board, target, detail, query)
        frame = PageFrame(board, now: now)
        layers = board.path.map { TargetLayers(target.update, path: $0.path, detail) }
    }

    var clock: LocalClock { frame.clock }

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
            <div id=target data-part data-state="\(target.state.name)" data-k="\(target.key)">\(heading)\(facts)\(why)\(certificate)\
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
        if let cause = update.cause, update.state != .up {
            reason = "<p class=cause><span>\(cause.markup(limit: 1_000))</span></p>"
        } else if update.state == .unknown {
            reason = "<p class=cause>No probe has ended yet.</p>"
        }
        return """
            <h1 class="\(state.style)">\(PageSymbol.state(state))<span><bdi>\(MarkupText.shortened(target.title, to: 300))</bdi> \
            <span class=sub>\(state.word) \(clock.since(update.stateMoment.milliseconds))</span></span></h1>\(reason)
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
        if let report { add("Last probe", Self.lastProbe(report, clock)) }
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
            let finding: Machine.Finding = target.update.state == .degraded ? .degraded : .fails
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
