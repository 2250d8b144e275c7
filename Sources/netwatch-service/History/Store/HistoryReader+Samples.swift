import FoundationEssentials
import GRDB
import Pacing

extension HistoryReader {
    /// The samples of a target, the oldest first.
    ///
    /// - Parameters:
    ///   - target: the number of the target.
    ///   - span: the time in milliseconds since 1970.
    ///   - limit: the maximum number of samples.
    ///   - cursor: ``Page/next`` of the page before. A cursor of another form is ignored.
    ///   - hasChanges: whether changes of the state without a result are included, as by a maintenance window or a lost link.
    /// - Returns: a page of samples.
    /// - Throws: ``StoreError`` if the database cannot be read in time.
    func samples(
        of target: Int, _ span: Range<Int64>, limit: Int = 10_000, after cursor: String? = nil, hasChanges: Bool = false
    ) throws(StoreError) -> Page<Sample> {
        let span = Self.limited(span)
        guard !span.isEmpty, 0..<TurnCoder.targetLimit ~= target else { return Page(elements: []) }
        let limit = min(max(limit, 1), SampleBlock.limit)
        // A cursor is a time, and the number of samples of that time that were already returned.
        let parts = (cursor ?? "").split(separator: "-").compactMap { Int64($0) }
        let (start, skipped) =
            parts.count == 2 && parts[1] >= 0 ? (max(span.lowerBound, parts[0]), parts[1]) : (span.lowerBound, 0)
        guard start < span.upperBound else { return Page(elements: []) }
        let wanted = start..<span.upperBound
        var found = try committed(target, wanted, limit: limit + Int(min(skipped, Int64(SampleBlock.limit))), hasChanges)
        for block in overlay?.blocks(of: target) ?? [] {
            found += block.samples.samples.filter { ($0.isResult || hasChanges) && wanted.contains($0.time) }
        }
        found.sort { $0.time < $1.time }
        found = Array(found.dropFirst(Int(clamping: parts.count == 2 && start == parts[0] ? skipped : 0)))
        guard found.count > limit else { return Page(elements: found) }
        let page = Array(found.prefix(limit))
        let time = page[limit - 1].time
        let same = page.reversed().prefix { $0.time == time }.count + (start == time ? Int(clamping: skipped) : 0)
        return Page(elements: page, next: "\(time)-\(same)")
    }

    /// Reads blocks, an hour at a time, until more samples than the limit are found.
    private func committed(
        _ target: Int, _ span: Range<Int64>, limit: Int, _ hasChanges: Bool
    ) throws(StoreError) -> [Sample] {
        try read { database in
            var found: [Sample] = []
            let bounds = try Row.fetchOne(database, sql: "SELECT min(hour), max(hour) FROM block")
            guard let first = bounds?.integer(0), let last = bounds?.integer(1) else { return [] }
            let statement = try database.makeStatement(sql: "SELECT data FROM block WHERE number = ?")
            let following = try database.makeStatement(sql: "SELECT min(number) >> 20 FROM block WHERE number > ?")
            var hour = TargetLedger.hour(containing: SampleBlock.limited(max(span.lowerBound, first))).lowerBound
            let end = min(span.upperBound, SampleBlock.limited(last) + 1)
            while hour < end, found.count <= limit {
                try checkTime()
                let number = HistorySchema.block(target, hour: hour)
                hour += HistorySchema.hour
                if let data = try Data.fetchOne(statement, arguments: [number]) {
                    let samples = try? SampleBlock(bytes: [UInt8](data)).samples()
                    found += (samples ?? []).filter { ($0.isResult || hasChanges) && span.contains($0.time) }
                } else if let next = try Int64.fetchOne(following, arguments: [number]) {
                    // The hours without any block are passed over.
                    hour = max(hour, SampleBlock.limited(next &* HistorySchema.hour))
                }
            }
            return found
        }
    }
}
