import Console
import Reachability

/// The answers to questions about the history, from a reader: of the running service, or of the files of a stopped one.
struct HistoryAnswers: Sendable {
    /// The maximum number of incidents, path events and samples of a page.
    static let limit = 10_000
    /// The maximum number of incidents of a document as text or CSV, which has no further pages.
    static let textLimit = 100_000

    /// A question about a period.
    struct Question: Hashable, Sendable {
        var period: HistoryPeriod
        /// The identifier, the name or the text of the target; `nil` for all.
        var target: String?
        var includesSamples = false
        /// The position after which the answer begins; `nil` for the start.
        var after: String?
        /// Whether the answer has further pages.
        var hasPages = true
    }

    let source: HistorySource
    let timeZone: String
    /// The start of the service that answers, in milliseconds since 1970; `nil` for the files of another one.
    var runningSince: Int64?

    /// Returns what happened in a period.
    ///
    /// - Parameters:
    ///   - question: the period, and what the document contains.
    ///   - reader: the history.
    ///   - unrecorded: the incidents whose present state the history does not have.
    ///   - moment: the present time.
    /// - Returns: the document.
    /// - Throws: ``StoreError`` if the target or the position is not known, or the history cannot be read in time.
    func history(
        _ question: Question, _ reader: HistoryReader, unrecorded: [BoardIncident] = [], at moment: Moment
    ) throws -> HistoryDocument {
        let range = question.period.range
        let target = try question.target.map { try self.target($0, reader) }
        var document = HistoryDocument(
            moment: moment, period: range, source: source, incidents: [], gaps: try reader.gaps(range))
        document.gaps += try reader.gaps(until: moment.milliseconds, runningSince: runningSince).filter {
            $0.period.overlaps(range)
        }
        if let after = question.after, !Self.isPosition(after, ofSamples: question.includesSamples) {
            throw StoreError(.invalid, "after: not a position of a page")
        }
        if question.includesSamples {
            // Samples are the only part that has further pages: the rest belongs to the first.
            let targets = try target.map { [$0] } ?? reader.targets()
            guard targets.count == 1, let only = targets.first else { throw StoreError(.invalid, "samples: name one target") }
            let page = try reader.samples(of: only.number, range, limit: Self.limit, after: question.after)
            document.samples = [.init(target: only.names.text, samples: page.elements)]
            document.next = page.next
            if question.after != nil { return document }
        }
        let page = try reader.incidents(
            range, of: target?.number, limit: question.hasPages ? Self.limit : Self.textLimit + 1,
            after: question.includesSamples ? nil : question.after)
        guard question.hasPages || page.elements.count <= Self.textLimit else {
            let reason = "since: the period has more than \(Self.textLimit) incidents; choose a shorter one, or JSON"
            throw StoreError(.invalid, reason)
        }
        // The first page has all that are not recorded, in their present states.
        let present = question.after == nil ? unrecorded.filter { $0.affects(target?.number, in: range) } : []
        let former = Set(unrecorded.map(\.incident.id))
        document.incidents = present.joined(with: page.elements.filter { !former.contains($0.id) })
        document.names = try names(reader, for: document.incidents, in: range)
        if !question.includesSamples { document.next = page.next }
        document.pathEvents = try reader.pathEvents(range, limit: Self.limit).map {
            .init(time: $0.time, record: $0.record)
        }
        return document
    }

    /// Returns whether a text has the form of a position: a time, and a number of samples or the identifier of an incident.
    private static func isPosition(_ text: String, ofSamples: Bool) -> Bool {
        // A time before 1970 begins with the sign.
        guard let end = text.dropFirst().firstIndex(of: "-"), Int64(text[..<end]) != nil else { return false }
        let remainder = text[text.index(after: end)...]
        return ofSamples ? Int64(remainder).map { $0 >= 0 } == true : !remainder.isEmpty
    }

    /// Returns the availability of targets in a period.
    func report(_ question: Question, _ reader: HistoryReader, at moment: Moment) throws -> ReportDocument {
        let range = question.period.range
        let target = try question.target.map { try self.target($0, reader) }
        let summaries = try reader.summaries(range, of: target?.number)
        // The other incident has the time of one that was merged with it.
        let incidents = try reader.incidents(range, of: target?.number, limit: 100_000).elements.filter { $0.state != .merged }
        let longest = incidents.sorted { $0.length(until: moment) > $1.length(until: moment) }
        let outages =
            try target.map { [$0.number: Array(longest.prefix(ReportDocument.worst))] } ?? worst(longest, reader, range)
        let targets = try target.map { [$0] } ?? reader.targets()
        let shown = outages.values.joined().map { BoardIncident(incident: $0, isRecorded: true) }
        let names = try self.names(reader, for: shown, in: range)
        return ReportDocument(
            moment: moment, period: range, source: source, timeZone: timeZone, names: names,
            targets: targets.compactMap { target in
                guard let summary = summaries[target.number] else { return nil }
                // A target can leave an incident before its end, so its own states count the outages.
                return ReportDocument.Target(
                    names: HistoryNames.Target(target), summary: summary,
                    outages: summary.overlappingOutages,
                    worst: outages[target.number] ?? [])
            })
    }

    /// Returns the first incidents of each target, by its number.
    private func worst(_ incidents: [Incident], _ reader: HistoryReader, _ range: Range<Int64>) throws -> [Int: [Incident]] {
        let members = try reader.members(range)
        var worst: [Int: [Incident]] = [:]
        for incident in incidents {
            try reader.checkTime()
            for number in (members[incident.id] ?? TargetSet()).numbers
            where worst[number]?.count ?? 0 < ReportDocument.worst {
                worst[number, default: []].append(incident)
            }
        }
        return worst
    }

    private func names(
        _ reader: HistoryReader, for incidents: [BoardIncident], in range: Range<Int64>
    ) throws -> HistoryNames {
        try HistoryNames(reader.targets().map { HistoryNames.Target($0) }, for: incidents) { try reader.members(range) }
    }

    /// Returns the target with an identifier, a name or a text.
    private func target(_ text: String, _ reader: HistoryReader) throws -> HistoryStore.Target {
        let targets = try reader.targets()
        if let found = targets.first(where: { $0.key == text }) { return found }
        let titled = targets.filter { $0.names.title == text }
        let found = titled.isEmpty ? targets.filter { $0.names.text == text } : titled
        guard let first = found.first else {
            throw StoreError(.unknownTarget, "target '\(text)': the history has no such target")
        }
        guard found.count == 1 else {
            let keys = found.prefix(10).map(\.key).joined(separator: ", ")
            throw StoreError(
                .unknownTarget, "target '\(text)': \(found.count) targets have this name; give the id of one: \(keys)")
        }
        return first
    }
}

extension HistoryNames.Target {
    fileprivate init(_ target: HistoryStore.Target) {
        self.init(number: target.number, text: target.names.text, identity: target.names.identity)
    }
}

extension Incident {
    /// The duration in nanoseconds; until a moment if the incident is open.
    fileprivate func length(until moment: Moment) -> Int64 {
        (ended ?? moment).wallClockNanoseconds - began.wallClockNanoseconds
    }
}
