/// A value of a configuration, as its source has it: the tree of a YAML document, without types.
struct ConfigurationNode: Hashable, Sendable {
    indirect enum Content: Hashable, Sendable {
        /// A key without a value, or the value `null`.
        case empty
        case scalar(String)
        case list([ConfigurationNode])
        /// The members in the order of the file. No two have the same key.
        case map([Member])
    }

    struct Member: Hashable, Sendable {
        var key: String
        /// The place of the key.
        var origin: ConfigurationOrigin
        var value: ConfigurationNode
    }

    var content: Content
    var origin: ConfigurationOrigin

    init(_ content: Content, _ origin: ConfigurationOrigin) {
        self.content = content
        self.origin = origin
    }

    /// Creates a scalar inside maps: `retention.size` is the value at the path `["retention", "size"]`.
    init(_ value: ConfigurationNode, at path: some BidirectionalCollection<String>) {
        self = path.reversed().reduce(value) { value, key in
            ConfigurationNode(.map([Member(key: key, origin: value.origin, value: value)]), value.origin)
        }
    }

    /// The elements of a list. A single value is a list of one.
    var elements: [ConfigurationNode] {
        switch content {
        case .empty: []
        case .list(let elements): elements
        case .scalar, .map: [self]
        }
    }

    /// The content in words, for messages.
    var kind: String {
        switch content {
        case .empty: "empty"
        case .scalar: "a single value"
        case .list: "a list"
        case .map: "a map of keys"
        }
    }
}

/// The source of a value: the place that a message names, and that the user has to change.
enum ConfigurationOrigin: Hashable, Sendable, CustomStringConvertible {
    /// A place in a file. Line and column are counted from 1, columns in Unicode scalars.
    case file(String, line: Int, column: Int)
    /// A complete file, or a folder.
    case path(String)
    /// A variable of the environment.
    case environment(String)
    /// An option or an argument of the command line.
    case argument(String)
    /// The default value.
    case standard

    /// The name of the command line's targets.
    static let target = "TARGET"

    /// Whether the user has to change the command line.
    var isArgument: Bool { if case .argument = self { true } else { false } }

    var description: String {
        switch self {
        case .file(let path, let line, let column): "\(path):\(line):\(column)"
        case .path(let name), .environment(let name), .argument(let name): name
        case .standard: "default"
        }
    }
}

/// A mistake in a configuration.
struct ConfigurationProblem: Error, Hashable, Sendable, CustomStringConvertible {
    let origin: ConfigurationOrigin
    /// The reason, with the remedy if there is one.
    let reason: String

    init(_ origin: ConfigurationOrigin, _ reason: String) {
        self.origin = origin
        self.reason = reason
    }

    var description: String { "\(origin): \(reason)" }
}
