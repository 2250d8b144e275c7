/// The explanation of one layer of a target, for people.
package struct LayerStep: Hashable, Sendable {
    /// The result of a step.
    package enum Finding: Hashable, Sendable {
        /// The evidence proves that the layer works.
        case works
        /// The layer fails.
        case fails
        /// The target does not need the layer.
        case notUsed
        /// A layer before this one fails, so nothing is known of this one.
        case notReached
        /// The layer was used, and nothing proves whether it works.
        case unproven

        /// Whether the layer works; `nil` if that is not known.
        package var isWorking: Bool? {
            switch self {
            case .works: true
            case .fails: false
            case .notUsed, .notReached, .unproven: nil
            }
        }
    }

    package var layer: Cause.Layer
    package var finding: Finding
    /// The time that the layer took; `nil` if it was not measured.
    package var duration: Duration?
    /// One sentence for a person, without a final period.
    package var detail: String
    package var evidence: [String: Cause.Evidence]

    init(
        _ layer: Cause.Layer, _ finding: Finding, _ detail: String, duration: Duration? = nil,
        evidence: [String: Cause.Evidence] = [:]
    ) {
        self.layer = layer
        self.finding = finding
        self.duration = duration
        self.detail = detail
        self.evidence = evidence
    }
}
