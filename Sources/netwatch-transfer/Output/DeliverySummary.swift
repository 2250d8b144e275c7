/// What has become of the reports of a run, for the lines on standard error.
struct DeliverySummary: Sendable {
    /// Faults of the directory of waiting reports.
    private(set) var notes: [String] = []
    /// The number of reports that the service refused, of this run and of earlier ones, and the first reason.
    private var refused: (count: Int, reason: String)?
    /// Why the last delivery ended early; `nil` if it did not.
    var obstacle: String?
    /// The number of reports that wait, of this run and of earlier ones.
    var waitingCount = 0
    /// The number of reports of this run that were neither delivered nor stored, and why they were not stored.
    var lost: (count: Int, reason: String)?
    /// Whether the last report of this run has been delivered.
    var isDelivered = false

    mutating func refuse(_ reason: String) { refused = ((refused?.count ?? 0) + 1, refused?.reason ?? reason) }

    mutating func note(_ line: String) { if !notes.contains(line) { notes.append(line) } }

    /// Returns the lines. `directory` is where reports wait.
    func lines(_ name: String, directory: String) -> [String] {
        var lines = notes
        if let refused {
            lines.append("\(name): \(Self.reports(refused.count, "was dropped", "were dropped")): \(refused.reason)")
        }
        let obstacle = obstacle ?? "there was no time to deliver it"
        if let lost {
            lines.append(
                "\(name): \(Self.reports(lost.count, "is lost", "are lost")): \(obstacle); it cannot wait: \(lost.reason)")
        }
        if waitingCount > 0 {
            lines.append("\(name): \(Self.reports(waitingCount, "waits", "wait")) in \(directory) for the next run: \(obstacle)")
        }
        return lines
    }

    private static func reports(_ count: Int, _ one: String, _ several: String) -> String {
        count == 1 ? "the report \(one)" : "\(count) reports \(several)"
    }
}
