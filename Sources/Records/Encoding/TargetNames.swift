package import Reachability

/// The names of targets for people, by the texts that incidents have of them.
package struct TargetNames: Hashable, Sendable {
    private var names: [String: String] = [:]
    /// The texts of several targets with different names.
    private var ambiguous: Set<String> = []

    package init() {}

    /// Creates the names of targets. Only the texts of those that have a name take memory.
    package init(_ targets: some Collection<(name: String?, text: String)>) {
        for (name, text) in targets where name != nil { add(name, of: text) }
        guard !names.isEmpty else { return }
        for (name, text) in targets where name == nil && names[text] != nil { add(name, of: text) }
    }

    /// Adds a target. - Parameter name: the name; `nil` for a target without one.
    package mutating func add(_ name: String?, of endpoint: Endpoint) { add(name, of: endpoint.text) }

    package mutating func add(_ name: String?, of text: String) {
        if names.updateValue(name ?? text, forKey: text) ?? name ?? text != name ?? text { ambiguous.insert(text) }
    }

    /// Returns the name of a target; its text if it has no name, or if several targets have the text.
    package func name(of text: String) -> String { ambiguous.contains(text) ? text : names[text] ?? text }

    /// Returns the names of the listed targets of an incident; empty if none has a name.
    package func names(of incident: Incident) -> [String] {
        guard incident.targets.contains(where: { name(of: $0.text) != $0.text }) else { return [] }
        return incident.targets.map { name(of: $0.text) }
    }
}
