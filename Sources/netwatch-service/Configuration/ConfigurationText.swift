import Console

/// The text of a configuration in YAML, with the source of each value. It can be used as a configuration file.
struct ConfigurationText {
    /// The names of the keys whose values are not shown, in any map.
    private static let secretNames = Set(secrets(of: Configuration.entries + ConfiguredTarget.entries))

    private static func secrets(of entries: [ConfigurationEntry]) -> [String] {
        entries.flatMap { ($0.isSecret ? [$0.name] : []) + secrets(of: $0.members) }
    }

    /// The default values of keys that have one.
    private static func defaults(of entries: [ConfigurationEntry], at path: [String] = []) -> [(path: [String], value: String)] {
        entries.flatMap { entry in
            let path = path + [entry.name]
            return (entry.standard.map { [(path, $0)] } ?? []) + defaults(of: entry.members, at: path)
        }
    }

    private static let sourceColumn = 40

    /// The lines of the configuration, in the order of its keys.
    let lines: [String]

    /// Creates the text. - Parameter tree: the combined sources; `nil` if nothing is set.
    init(_ tree: ConfigurationNode?) {
        var complete = Self.defaults(of: Configuration.entries).reduce(ConfigurationNode(.empty, .standard)) { tree, element in
            let value = ConfigurationNode(.scalar(element.value), .standard)
            return ConfigurationLayer.override(tree, by: ConfigurationNode(value, at: element.path))
        }
        if let tree { complete = ConfigurationLayer.override(complete, by: tree) }
        guard case .map(let members) = complete.content else {
            lines = []
            return
        }
        let order = Dictionary(zip(Configuration.keys.names, 0...), uniquingKeysWith: { first, _ in first })
        let sorted = members.sorted { order[$0.key, default: .max] < order[$1.key, default: .max] }
        lines = sorted.flatMap { Self.lines($0, indentation: 0, isSecret: false) }
    }

    private static func lines(_ member: ConfigurationNode.Member, indentation: Int, isSecret: Bool) -> [String] {
        let margin = String(repeating: " ", count: indentation)
        let key = scalar(member.key)
        // A field may carry credentials; its name shows that it is set.
        let isSecret = isSecret || secretNames.contains(member.key) && indentation > 0
        switch member.value.content {
        case .empty: return ["\(margin)\(key):"]
        case .scalar(let text):
            let value = isSecret ? "\"(not shown)\"" : scalar(text)
            return [sourced("\(margin)\(key): \(value)", member.value.origin)]
        case .list(let elements):
            guard !elements.isEmpty else { return [sourced("\(margin)\(key): []", member.value.origin)] }
            return ["\(margin)\(key):"] + elements.flatMap { self.lines($0, indentation: indentation + 2) }
        case .map(let members):
            guard !members.isEmpty else { return [sourced("\(margin)\(key): {}", member.value.origin)] }
            return ["\(margin)\(key):"] + members.flatMap { lines($0, indentation: indentation + 2, isSecret: isSecret) }
        }
    }

    /// The lines of an element of a list.
    private static func lines(_ element: ConfigurationNode, indentation: Int) -> [String] {
        let margin = String(repeating: " ", count: indentation)
        switch element.content {
        case .empty: return ["\(margin)-"]
        case .scalar(let text): return [sourced("\(margin)- \(scalar(text))", element.origin)]
        case .list(let elements):
            return ["\(margin)-"] + elements.flatMap { lines($0, indentation: indentation + 2) }
        case .map(let members):
            let lines = members.flatMap { self.lines($0, indentation: indentation + 2, isSecret: false) }
            guard let first = lines.first else { return ["\(margin)- {}"] }
            return ["\(margin)- \(first.dropFirst(indentation + 2))"] + lines.dropFirst()
        }
    }

    private static func sourced(_ line: String, _ origin: ConfigurationOrigin) -> String {
        let source: String =
            switch origin {
            case .file(let path, let line, _): "\(path):\(line)"
            default: "\(origin)"
            }
        return "\(TextStyle.pad(line, sourceColumn))  # \(TextStyle.printable(source))"
    }

    /// Returns a scalar, with quotes and escapes (YAML 1.2 section 7.3.1) unless it has only harmless characters.
    static func scalar(_ text: String) -> String {
        let isHarmless = text.utf8.allSatisfy { byte in
            0x30...0x39 ~= byte || 0x41...0x5A ~= byte || 0x61...0x7A ~= byte || Array("_./%+-:".utf8).contains(byte)
        }
        let first = text.utf8.first.map { 0x30...0x39 ~= $0 || 0x41...0x5A ~= $0 || 0x61...0x7A ~= $0 || $0 == 0x2F } ?? false
        if isHarmless, first, text.utf8.last != UInt8(ascii: ":"), text.lowercased() != "null" { return text }
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case "\t": quoted += "\\t"
            default:
                let isControl = scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .format
                let digits = String(scalar.value, radix: 16, uppercase: true)
                quoted += isControl ? "\\U" + String(repeating: "0", count: 8 - digits.count) + digits : String(scalar)
            }
        }
        return quoted + "\""
    }
}
