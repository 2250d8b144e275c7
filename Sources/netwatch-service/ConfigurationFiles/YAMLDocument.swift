/// The parser of a document in YAML 1.1. Tags have no effect.
enum YAMLDocument {
    /// The maximum number of values that aliases add to a document.
    static let aliasLimit = 10_000
    /// The maximum number of lists and maps that contain each other.
    static let depthLimit = 100

    /// Parses a document. It costs a time that is proportional to the size of the text.
    ///
    /// - Parameters:
    ///   - text: the document; it may be empty.
    ///   - problems: receives the errors after which the rest of the document can be read: keys that a map sets twice. The tree has the first value.
    ///   - origin: the place of a line and a column in it.
    /// - Returns: The tree.
    /// - Throws: ``ConfigurationProblem`` at the place of the error.
    static func parse(
        _ text: String, _ problems: inout [ConfigurationProblem],
        origin: @escaping (_ line: Int, _ column: Int) -> ConfigurationOrigin
    ) throws(ConfigurationProblem) -> ConfigurationNode {
        var copy = text
        let (result, repeated) = copy.withUTF8 {
            bytes -> (Result<ConfigurationNode, ConfigurationProblem>, [ConfigurationProblem]) in
            var composer = Composer(events: YAMLEvents(bytes), origin: origin)
            do throws(ConfigurationProblem) {
                let root = try composer.document()
                return (.success(root), composer.problems)
            } catch { return (.failure(error), composer.problems) }
        }
        problems += repeated
        switch result {
        case .success(let root): return root
        case .failure(let problem): throw indentedByTab(problem, text) ?? problem
        }
    }

    /// Returns the error of a line that a tab indents, in place of libyaml's; `nil` for another line.
    private static func indentedByTab(_ problem: ConfigurationProblem, _ text: String) -> ConfigurationProblem? {
        guard problem.reason.hasPrefix("not valid YAML"), case .file(_, let line, _) = problem.origin else { return nil }
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        let indentation = lines.dropFirst(line - 1).first?.prefix { $0.isWhitespace }
        guard indentation?.contains("\t") == true else { return nil }
        return ConfigurationProblem(problem.origin, "a tab cannot indent a line; write spaces")
    }
}

/// The composition of a tree from events. Each alias becomes a copy of its value.
private struct Composer: ~Copyable {
    private var events: YAMLEvents
    private let origin: (Int, Int) -> ConfigurationOrigin
    private var anchors: [String: Value] = [:]
    private var aliasedCount = 0
    /// The keys that maps set twice.
    private(set) var problems: [ConfigurationProblem] = []

    /// A value, the number of values in it, and the number of lists and maps that contain each other in it.
    private struct Value {
        var node: ConfigurationNode
        var count = 1
        var height = 0

        /// Counts an element of this list or map.
        mutating func add(_ element: Value) {
            count += element.count
            height = max(height, element.height + 1)
        }
    }

    private typealias Problem = ConfigurationProblem

    init(events: consuming YAMLEvents, origin: @escaping (Int, Int) -> ConfigurationOrigin) {
        self.events = events
        self.origin = origin
    }

    /// Returns the only document of the stream.
    mutating func document() throws(ConfigurationProblem) -> ConfigurationNode {
        guard case .documentStart = try next().event else { return ConfigurationNode(.empty, origin(1, 1)) }
        let root = try value(try next(), depth: 0).node
        _ = try next()
        let further = try next()
        guard case .end = further.event else {
            throw Problem(place(further), "not valid YAML: but found another document (expected a single document)")
        }
        return root
    }

    private mutating func next() throws(Problem) -> YAMLEvents.Element {
        do { return try events.next() } catch {
            throw Problem(origin(error.line, error.column), "not valid YAML: \(error.problem)")
        }
    }

    private func place(_ element: YAMLEvents.Element) -> ConfigurationOrigin { origin(element.line, element.column) }

    /// Returns the value that begins with an event.
    private mutating func value(_ first: YAMLEvents.Element, depth: Int) throws(Problem) -> Value {
        let place = place(first)
        try requireDepth(depth, at: place)
        let value: Value
        switch first.event {
        case .alias(let name): return try copy(of: name, at: place, depth: depth)
        case .scalar(let text, let isPlain):
            let isEmpty = isPlain && ["", "~", "null", "Null", "NULL"].contains(text)
            value = Value(node: ConfigurationNode(isEmpty ? .empty : .scalar(text), place))
        case .listStart: value = try list(at: place, depth: depth)
        case .mapStart: value = try map(at: place, depth: depth)
        case .listEnd, .mapEnd, .documentStart, .documentEnd, .end:
            throw Problem(place, "not valid YAML: a value is missing")
        }
        if let anchor = first.anchor { anchors[anchor] = value }
        return value
    }

    private func requireDepth(_ depth: Int, at place: ConfigurationOrigin) throws(Problem) {
        guard depth <= YAMLDocument.depthLimit else {
            throw Problem(place, "its lists and maps nest deeper than \(YAMLDocument.depthLimit) levels")
        }
    }

    private mutating func copy(of name: String, at place: ConfigurationOrigin, depth: Int) throws(Problem) -> Value {
        guard let value = anchors[name] else { throw Problem(place, "not valid YAML: found undefined alias") }
        try requireDepth(depth + value.height, at: place)
        aliasedCount += value.count
        guard aliasedCount <= YAMLDocument.aliasLimit else {
            throw Problem(place, "its aliases add more than \(YAMLDocument.aliasLimit) values")
        }
        return value
    }

    private mutating func list(at place: ConfigurationOrigin, depth: Int) throws(Problem) -> Value {
        var list = Value(node: ConfigurationNode(.empty, place))
        var elements: [ConfigurationNode] = []
        while true {
            let first = try next()
            if case .listEnd = first.event {
                list.node = ConfigurationNode(.list(elements), place)
                return list
            }
            let element = try value(first, depth: depth + 1)
            elements.append(element.node)
            list.add(element)
        }
    }

    private mutating func map(at place: ConfigurationOrigin, depth: Int) throws(Problem) -> Value {
        var map = Value(node: ConfigurationNode(.empty, place))
        var members: [ConfigurationNode.Member] = []
        var keys: [String: ConfigurationOrigin] = [:]
        var repeated: [(key: String, place: ConfigurationOrigin)] = []
        while true {
            let first = try next()
            let keyPlace = self.place(first)
            switch first.event {
            case .mapEnd:
                if let problem = Self.problem(ofRepeated: repeated) { problems.append(problem) }
                map.node = ConfigurationNode(.map(members), place)
                return map
            case .scalar(let key, _):
                guard key != "<<" else { throw Problem(keyPlace, "merge keys ('<<') are not supported; use a class") }
                if let anchor = first.anchor {
                    anchors[anchor] = Value(node: ConfigurationNode(.scalar(key), keyPlace))
                }
                let element = try value(try next(), depth: depth + 1)
                map.add(element)
                if let earlier = keys[key] {
                    repeated.append((key, earlier))
                    continue
                }
                keys[key] = keyPlace
                members.append(ConfigurationNode.Member(key: key, origin: keyPlace, value: element.node))
            default: throw Problem(keyPlace, "a key must be a single value, and no alias")
            }
        }
    }

    /// Returns the error of keys that a map sets twice, at the place of the first one; `nil` if there are none.
    private static func problem(ofRepeated keys: [(key: String, place: ConfigurationOrigin)]) -> ConfigurationProblem? {
        guard let first = keys.first else { return nil }
        let shown = keys.prefix(10).map { "'\(ConfigurationReader.shown($0.key))'" }.joined(separator: ", ")
        return ConfigurationProblem(first.place, "set twice in one map: \(shown)\(keys.count > 10 ? ", …" : "")")
    }
}
