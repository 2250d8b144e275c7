import Console

/// The example that `netwatch config init` writes: the keys with their defaults, or with usual values, as comments.
enum ConfigurationExample {
    static let text: String = {
        // What the file sets comes first.
        let entries = Configuration.entries.filter(\.isSetByExample) + Configuration.entries.filter { !$0.isSetByExample }
        var lines = [
            "# The configuration of 'netwatch serve'. 'netwatch config check' checks it, 'netwatch config show' prints all values with their sources.",
            "# Files in conf.d beside this one are added to it.",
        ]
        var wasBlock = true
        for entry in entries {
            let block = Self.lines(entry)
            guard !block.isEmpty else { continue }
            if wasBlock || block.count > 1 { lines.append("") }
            lines += block
            wasBlock = block.count > 1
        }
        return lines.joined(separator: "\n") + "\n"
    }()

    private static let helpColumn = 35

    private static func lines(_ entry: ConfigurationEntry, margin: String = "#") -> [String] {
        switch entry.example {
        case .lines(let lines, let value):
            let key = value.map { "\(entry.name): \($0)" } ?? "#\(entry.name):"
            return ["# \(entry.sentence)", key] + lines.split(separator: "\n").map { "#\($0)" }
        case .value(let value): return [explained("\(margin)\(entry.name): \(value)", entry)]
        case nil:
            if let standard = entry.standard { return [explained("\(margin)\(entry.name): \(standard)", entry)] }
            let members = entry.members.flatMap { lines($0, margin: "\(margin)  ") }
            return members.isEmpty ? [] : [explained("\(margin)\(entry.name):", entry)] + members
        }
    }

    private static func explained(_ line: String, _ entry: ConfigurationEntry) -> String {
        entry.help.isEmpty ? line : "\(TextStyle.pad(line, helpColumn - 1)) # \(entry.help)"
    }
}

extension ConfigurationEntry {
    fileprivate var isSetByExample: Bool { if case .lines(_, .some) = example { true } else { false } }
}
