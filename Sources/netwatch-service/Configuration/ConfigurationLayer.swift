/// The rules by which the sources of a configuration are combined.
enum ConfigurationLayer {
    /// Merges the files of one layer: maps merge, lists append, and a scalar that is set twice is an error.
    ///
    /// - Parameters:
    ///   - files: the files in their order.
    ///   - problems: receives the errors.
    /// - Returns: The layer; `nil` without files.
    static func merge(_ files: [ConfigurationNode], problems: inout [ConfigurationProblem]) -> ConfigurationNode? {
        guard var result = files.first else { return nil }
        for file in files.dropFirst() { result = merge(result, file, name: "", &problems) }
        return result
    }

    private static func merge(
        _ first: ConfigurationNode, _ second: ConfigurationNode, name: String, _ problems: inout [ConfigurationProblem]
    ) -> ConfigurationNode {
        switch (first.content, second.content) {
        case (_, .empty): return first
        case (.empty, _): return second
        case (.list(let earlier), .list(let later)): return ConfigurationNode(.list(earlier + later), first.origin)
        case (.map(let earlier), .map(let later)):
            let members = combine(earlier, later) { key, earlier, later in
                merge(earlier, later, name: name.isEmpty ? key : "\(name).\(key)", &problems)
            }
            return ConfigurationNode(.map(members), first.origin)
        case (.scalar, .scalar):
            problems.append(ConfigurationProblem(second.origin, "'\(name)' is already set at \(first.origin)"))
            return first
        default:
            problems.append(
                ConfigurationProblem(
                    second.origin, "'\(name)' is \(second.kind) here, and \(first.kind) at \(first.origin)"))
            return first
        }
    }

    /// Overrides a layer by a higher one: maps merge, and everything else is replaced.
    static func override(_ lower: ConfigurationNode, by higher: ConfigurationNode) -> ConfigurationNode {
        switch (lower.content, higher.content) {
        case (_, .empty): return lower
        case (.map(let below), .map(let above)):
            let members = combine(below, above) { _, below, above in override(below, by: above) }
            return ConfigurationNode(.map(members), higher.origin)
        default: return higher
        }
    }

    /// Adds elements to the list of a key.
    static func add(_ elements: [ConfigurationNode], to key: String, of layer: ConfigurationNode) -> ConfigurationNode {
        guard let first = elements.first else { return layer }
        var present: [ConfigurationNode] = []
        if case .map(let members) = layer.content {
            present = members.first { $0.key == key }?.value.elements ?? []
        }
        return override(layer, by: ConfigurationNode(ConfigurationNode(.list(present + elements), first.origin), at: [key]))
    }

    private static func combine(
        _ first: [ConfigurationNode.Member], _ second: [ConfigurationNode.Member],
        _ join: (String, ConfigurationNode, ConfigurationNode) -> ConfigurationNode
    ) -> [ConfigurationNode.Member] {
        var members = first
        var places = Dictionary(zip(first.map(\.key), 0...), uniquingKeysWith: { first, _ in first })
        for member in second {
            if let index = places[member.key] {
                members[index].value = join(member.key, members[index].value, member.value)
                members[index].origin = member.origin
            } else {
                places[member.key] = members.count
                members.append(member)
            }
        }
        return members
    }
}
