package import Console

/// The names of a target in the configuration of a service. Nothing is known of them without a service.
package struct TargetIdentity: Hashable, Sendable {
    /// The stable identifier; `nil` if the configuration sets none.
    package var id: String?
    /// The name for people; `nil` if the configuration sets none.
    package var name: String?
    package var group: String?
    /// The labels by their names; empty if the configuration sets none.
    package var labels: [String: String]

    package init(id: String? = nil, name: String? = nil, group: String? = nil, labels: [String: String] = [:]) {
        (self.id, self.name, self.group, self.labels) = (id, name, group, labels)
    }
}

extension TargetIdentity? {
    /// Writes the members `id`, `name`, `group` and `labels`.
    package func write(to writer: inout JSONWriter) {
        writer.member("id", self?.id)
        writer.member("name", self?.name)
        writer.member("group", self?.group)
        writer.key("labels")
        guard let labels = self?.labels, !labels.isEmpty else { return writer.null() }
        writer.object { writer in
            for (name, value) in labels.sorted(by: { $0.key < $1.key }) {
                writer.key(text: name)
                writer.value(value)
            }
        }
    }
}
