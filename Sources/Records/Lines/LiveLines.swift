import Console
import FoundationEssentials
import Reachability

/// The format of a stream on a terminal: a header, then one line per record with its time, and indented details.
struct LiveLines {
    private let header: StreamHeader
    private let style: TextStyle
    private var times: TimeText
    private var targets: [TargetID: ServerUpdate] = [:]
    /// The columns of the names of the targets so far.
    private var targetWidth: Int
    private let isVerbose: Bool
    private var path: NetworkPath?
    /// The columns of the terminal. The last one stays empty, as in the lines of `get`. It is `nil` if lines are not wrapped.
    var columns: Int?

    /// The maximum number of interfaces listed under a record; the others are counted.
    private static let listedInterfaces = 12
    /// The maximum number of columns to which names are padded.
    private static let longestName = 40
    private var detailIndentation: Int { times.width + 3 }

    /// Creates the format. `isVerbose`: adds the reasons of changes and the count of events that changed nothing.
    init(header: StreamHeader, style: TextStyle, isVerbose: Bool = false, columns: Int? = nil, time: TimeText? = nil) {
        times = time ?? TimeText(.relative) { _ in 0 }
        self.isVerbose = isVerbose
        self.columns = columns
        self.header = header
        self.style = style
        targetWidth = min(Self.longestName, header.targets.map(\.text.count).max() ?? 0)
    }

    mutating func lines(_ record: Record) -> [String] {
        let lines = texts(record)
        guard let columns else { return lines }
        return lines.flatMap { WrappedText.lines($0, columns: max(1, columns - 1), indentation: detailIndentation) }
    }

    private mutating func texts(_ record: Record) -> [String] {
        var lines: [String] = []
        // At midnight, the clock alone no longer says which day it is.
        if let date = times.newDate(record.event.moment) { lines.append(detail(style.paint(date, .dim))) }
        if record.superseded > 0 {
            lines.append(detail(style.paint("\(record.superseded) records superseded: the terminal did not keep up", .yellow)))
        }
        switch record.event {
        case .path(let update):
            if update.isInitial { lines += title(update.moment) }
            lines += pathLines(update)
            path = update.path
        case .server(let id, let update):
            lines += server(id, update, record.nameSentence(update.endpoint))
        case .probe(_, let report):
            let assessment: TextStyle.Assessment = report.succeeded ? .good : .bad
            let text = "probe \(TextStyle.pad(record.nameSentence(report.endpoint), targetWidth))  \(report.sentence)"
            lines.append(line(report.moment, style.symbol(.neutral), style.paint(text, assessment == .good ? .dim : .red)))
        case .incident(let incident):
            if incident.isShared || incident.kind == .flapping { lines.append(line(incident, record.targetNames)) }
        case .resync(let reason, let moment):
            let text = "resync  the kernel's state was read again: \(reason.rawValue)"
            lines.append(line(moment, style.symbol(.uncertain), style.paint(text, .yellow)))
        case .gap(let from, let to):
            let duration = TimeSpan.rough(.nanoseconds(to.wallClockNanoseconds - from.wallClockNanoseconds))
            let text = "gap  \(record.gapReason.sentence) for \(duration)"
            lines.append(line(to, style.symbol(.uncertain), style.paint(text, .yellow)))
        case .ended(let moment):
            lines.append(line(moment, style.symbol(.bad), "stopped"))
        }
        return lines
    }

    /// The header: what is watched since when, and the meaning of the times and marks.
    private mutating func title(_ moment: Moment) -> [String] {
        times.begin(at: moment)
        let place = header.identity.namespaceName.map { "network namespace \($0)" } ?? "this machine"
        let start = TimeText(times, as: times.choice == .relative ? .utc : times.choice).full(moment)
        let meaning =
            switch times.choice {
            case .relative: "times since then"
            case .local: "local times"
            case .utc: "times in UTC"
            }
        let marks = [(TextStyle.Assessment.good, "works"), (.bad, "fails"), (.uncertain, "degraded, pending or not known")]
            .map { "\(style.symbol($0)) \($1)" }.joined(separator: ", ")
        return ["netwatch \(header.version) · \(place) · \(start)", "\(meaning) · \(marks)"].map { text in
            style.paint(TextStyle.printable(style.isUnicode ? text : text.replacing("·", with: "-")), .dim)
        }
    }

    private func pathLines(_ update: PathUpdate) -> [String] {
        let former = self.path
        let path = update.path
        let status = style.paint("path \(path.status.rawValue)", path.assessment)
        var lines = [
            line(update.moment, style.paint(style.symbol(path.assessment), path.assessment), "\(status)  \(path.sentence)")
        ]
        if let former, !update.isInitial {
            let changes = PathChanges(old: former, new: path, isUnicode: style.isUnicode).sentence(columns: detailColumns)
            if !changes.isEmpty { lines.append(detail(style.paint(changes, .dim))) }
        }
        if isVerbose, !update.reasons.isEmpty {
            var text = update.reasons.map(\.rawValue).joined(separator: ", ")
            if update.coalescedEventCount > 0 { text += "; \(update.coalescedEventCount) other events" }
            lines.append(detail(style.paint(text, .dim)))
        }
        if update.isInitial {
            lines += interfaces(path.interfaces)
        } else if !Set(update.reasons).isDisjoint(with: [.interfacesChanged, .addressesChanged, .interfaceChanged]) {
            lines += interfaces(path.interfaces.filter { path.notable.contains($0.index) })
        }
        return lines
    }

    private func interfaces(_ interfaces: [NetworkInterface]) -> [String] {
        let shown = Array(interfaces.prefix(Self.listedInterfaces))
        var lines = InterfaceTable.rows(shown, style: style, listsAllAddresses: isVerbose, columns: detailColumns)
            .map(detail)
        if interfaces.count > Self.listedInterfaces {
            lines.append(detail(style.paint("and \(interfaces.count - Self.listedInterfaces) more", .dim)))
        }
        return lines
    }

    private mutating func server(_ id: TargetID, _ update: ServerUpdate, _ name: String) -> [String] {
        // The header has no names.
        targetWidth = max(targetWidth, min(Self.longestName, DisplayWidth.columns(name)))
        var text = style.paint(
            "\(TextStyle.pad(name, targetWidth))  \(update.statusWords)", update.assessment)
        let sentence = update.sentence
        if !sentence.isEmpty { text += "  \(sentence)" }
        let former = targets[id]?.addresses ?? []
        let addresses = update.addresses.filter { address in
            !former.contains { $0.address == address.address && $0.statusName == address.statusName }
        }
        if let before = targets.updateValue(update, forKey: id), before.statusName != update.statusName,
            before.statusName != .unknown
        {
            let lasted = TimeSpan.rough(update.statusMoment.elapsed(since: before.statusMoment))
            text += style.paint("  (was \(before.statusName.rawValue) for \(lasted))", .dim)
        }
        return [line(update.moment, style.paint(style.symbol(update.assessment), update.assessment), text)]
            + addresses.map { detail(self.address($0)) }
    }

    private func address(_ address: AddressStatus) -> String {
        let assessment = address.statusName.assessment
        let status = style.paint("\(style.symbol(assessment)) \(address.address)  \(address.statusName.rawValue)", assessment)
        return address.sentence.isEmpty ? status : "\(status)  \(address.sentence)"
    }

    private func line(_ incident: Incident, _ names: [String]) -> String {
        let state = style.paint("incident \(incident.subjectSentence(names))  \(incident.stateSentence)", incident.assessment)
        let symbol = style.paint(style.symbol(incident.assessment), incident.assessment)
        return line(incident.moment, symbol, "\(state)  \(incident.sentence(names))")
    }

    private func line(_ moment: Moment, _ symbol: String, _ text: String) -> String {
        let offset = times.clock(moment)
        let padding = String(repeating: " ", count: max(0, times.width - offset.count))
        return "\(padding)\(style.paint(offset, .dim)) \(symbol) \(text)"
    }

    private func detail(_ text: String) -> String { String(repeating: " ", count: detailIndentation) + text }

    /// The columns available to the text of a detail.
    private var detailColumns: Int { columns.map { $0 - 1 - detailIndentation } ?? .max }
}
