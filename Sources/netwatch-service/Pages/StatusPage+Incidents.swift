import Reachability
import Records

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
