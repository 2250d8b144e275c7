import Reachability
import Records

/// The names of the targets of a history, for its incidents, which have the targets' texts.
///
/// Several targets may have one text: with different identifiers, or one that received its identifier later. The members of an incident then
/// decide.
struct HistoryNames: Hashable, Sendable {
    /// A target of the history.
    struct Target: Hashable, Sendable {
        var number: Int
        /// The text, as the user wrote it.
        var text: String
        var identity: TargetIdentity

        /// The name for people.
        var title: String { identity.name ?? text }
    }

    private var targets: [String: [Target]] = [:]
    /// The numbers of the targets of incidents, by the identifiers of the incidents.
    private var members: [String: TargetSet] = [:]

    init(_ targets: [Target] = []) {
        for target in targets { self.targets[target.text, default: []].append(target) }
    }

    /// Creates the names for incidents.
    ///
    /// - Parameters:
    ///   - targets: all targets of the history.
    ///   - incidents: the incidents.
    ///   - members: returns the numbers of the targets of incidents, by the identifiers of the incidents. It is called only if the texts are
    ///     not enough.
    /// - Throws: the error of `members`.
    init(_ targets: [Target], for incidents: [BoardIncident], members: () throws -> [String: TargetSet]) throws {
        self.init(targets)
        let texts = incidents.lazy.flatMap { $0.incident.targets }.map(\.text)
        guard texts.contains(where: { self.targets[$0]?.count ?? 0 > 1 }) else { return }
        self.members = try members()
        for incident in incidents where !incident.targets.isEmpty { self.members[incident.incident.id] = incident.targets }
    }

    /// Returns the names of the subject of an incident; `nil` if it is no target, or not known which one.
    func identity(of incident: Incident) -> TargetIdentity? {
        guard incident.subject.kind == .target, let text = incident.subject.name else { return nil }
        return target(text, in: incident)?.identity
    }

    /// Returns the names of the listed targets of an incident for people.
    func names(of incident: Incident) -> [String] { incident.targets.map { target($0.text, in: incident)?.title ?? $0.text } }

    private func target(_ text: String, in incident: Incident) -> Target? {
        guard let candidates = targets[text], candidates.count > 1 else { return targets[text]?.first }
        let affected = candidates.filter { members[incident.id]?.contains($0.number) == true }
        return affected.count == 1 ? affected[0] : nil
    }
}
