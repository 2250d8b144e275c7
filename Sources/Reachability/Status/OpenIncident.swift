/// An incident that an earlier process has left open, and its targets in this one.
package struct OpenIncident: Hashable, Sendable {
    package let incident: Incident
    /// The numbers of the targets of this monitor that the incident affected.
    package let targets: [Int]
    /// Whether the incident stays open for a day if it has no targets, because this monitor has none at all.
    package let waits: Bool

    package init(_ incident: Incident, targets: [Int], waits: Bool = false) {
        (self.incident, self.targets, self.waits) = (incident, targets, waits)
    }
}
