import Yams

/// The parser of a document in YAML 1.1 (libyaml). Tags have no effect.
enum YAMLDocument {
    /// The maximum number of nodes that aliases add to a document.
    static let aliasLimit = 10_000

    /// Parses a document.
    ///
    /// - Parameters:
    ///   - text: the document; it may be empty.
    ///   - origin: the place of a line and a column in it.
    /// - Returns: The tree.
    /// - Throws: ``ConfigurationProblem`` at the place of the error.
    static func parse(
        _ text: String, origin: @escaping (_ line: Int, _ column: Int) -> ConfigurationOrigin
    ) throws(ConfigurationProblem) -> ConfigurationNode {
        if let line = CompoundKeys.line(in: text) {
            throw ConfigurationProblem(
                origin(line, 1), "a key beside aliases must be a single value; write it without '?', '*', ']' and '}'")
        }
        let root: Node?
        do { root = try Parser(yaml: text, encoding: .utf8).singleRoot() } catch {
            throw problem(error as? YamlError, text, origin)
        }
        guard let root else { return ConfigurationNode(.empty, origin(1, 1)) }
        var conversion = Conversion(origin: origin)
        return try conversion.node(root)
    }

    private static func problem(
        _ error: YamlError?, _ text: String, _ origin: (Int, Int) -> ConfigurationOrigin
    ) -> ConfigurationProblem {
        switch error {
        case .scanner(let context, let problem, let mark, _), .parser(let context, let problem, let mark, _),
            .composer(let context, let problem, let mark, _):
            let indentation = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
                .dropFirst(mark.line - 1).first?.prefix { $0.isWhitespace }
            if indentation?.contains("\t") == true {
                return ConfigurationProblem(origin(mark.line, mark.column), "a tab cannot indent a line; write spaces")
            }
            let place = context.map { " (\($0.text))" } ?? ""
            return ConfigurationProblem(origin(mark.line, mark.column), "not valid YAML: \(problem)\(place)")
        case .reader(let problem, let offset, _, _):
            // Yams counts characters up to the invalid one.
            let lines = text.prefix(offset ?? 0).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
            return ConfigurationProblem(
                origin(max(1, lines.count), 1 + (lines.last?.unicodeScalars.count ?? 0)), "not valid YAML: \(problem)")
        case .duplicatedKeysInMapping(let keys, let context):
            let names = keys.map { "'\(ConfigurationReader.shown($0))'" }.joined(separator: ", ")
            return ConfigurationProblem(origin(context.mark.line, context.mark.column), "set twice in one map: \(names)")
        case let other:
            return ConfigurationProblem(origin(1, 1), "not valid YAML: \(other.map { "\($0)" } ?? "unknown error")")
        }
    }

    /// The conversion of Yams' nodes, in which each alias has become a copy of its node.
    private struct Conversion {
        let origin: (Int, Int) -> ConfigurationOrigin
        private var seen: Set<Place> = []
        private var aliasedCount = 0

        init(origin: @escaping (Int, Int) -> ConfigurationOrigin) { self.origin = origin }

        private struct Place: Hashable {
            var line: Int
            var column: Int
            /// An empty value has the place of the token that follows it.
            var kind: Int
        }

        mutating func node(_ node: Node) throws(ConfigurationProblem) -> ConfigurationNode {
            let mark = node.mark
            let place = origin(mark?.line ?? 1, mark?.column ?? 1)
            let kind: Int
            let content: ConfigurationNode.Content
            switch node {
            case .scalar(let scalar):
                if case .plain = scalar.style, ["", "~", "null", "Null", "NULL"].contains(scalar.string) {
                    return ConfigurationNode(.empty, place)
                }
                (kind, content) = (0, .scalar(scalar.string))
            case .sequence: (kind, content) = (1, .empty)
            case .mapping: (kind, content) = (2, .empty)
            case .alias: throw ConfigurationProblem(place, "the alias has no anchor")
            }
            if let mark, !seen.insert(Place(line: mark.line, column: mark.column, kind: kind)).inserted {
                aliasedCount += 1
                guard aliasedCount <= YAMLDocument.aliasLimit else {
                    throw ConfigurationProblem(place, "its aliases add more than \(YAMLDocument.aliasLimit) values")
                }
            }
            return ConfigurationNode(try elements(of: node) ?? content, place)
        }

        /// The converted elements of a list or a map; `nil` for a scalar.
        private mutating func elements(of node: Node) throws(ConfigurationProblem) -> ConfigurationNode.Content? {
            switch node {
            case .sequence(let sequence):
                var list: [ConfigurationNode] = []
                for element in sequence { list.append(try self.node(element)) }
                return .list(list)
            case .mapping(let mapping):
                var members: [ConfigurationNode.Member] = []
                for (key, value) in mapping {
                    let place = origin(key.mark?.line ?? 1, key.mark?.column ?? 1)
                    guard case .scalar(let scalar) = key else {
                        throw ConfigurationProblem(place, "a key must be a single value")
                    }
                    guard scalar.string != "<<" else {
                        throw ConfigurationProblem(place, "merge keys ('<<') are not supported; use a class")
                    }
                    members.append(ConfigurationNode.Member(key: scalar.string, origin: place, value: try self.node(value)))
                }
                return .map(members)
            case .scalar, .alias: return nil
            }
        }
    }
}

/// The search for keys that are lists, maps or aliases, in a document with aliases.
///
/// Yams computes the hash of each key. A key of a few nested aliases stands for billions of values, so its hash has no end.
private enum CompoundKeys {
    /// Returns the first line with such a key; `nil` if there is none, or no alias.
    static func line(in text: String) -> Int? {
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        guard lines.contains(where: { $0.contains(/(^|[\s\[{,:-])&\S/) }),
            lines.contains(where: { $0.contains(/(^|[\s\[{,:-])\*\S/) })
        else { return nil }
        return lines.firstIndex { $0.contains(/(^|[\s\[{,-])\?(\s|$)|[\]}]\s*:|(^|[\s\[{,])\*[^\s,\[\]{}]+\s+:/) }.map { $0 + 1 }
    }
}
