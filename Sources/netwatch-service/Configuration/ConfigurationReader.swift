import Console
import Reachability

/// The reader of values from a tree: it collects all errors, so that a user sees them at once.
///
/// Each method returns `nil` for a value that is not set, and for one that is not valid, whose error it has noted.
struct ConfigurationReader {
    /// The maximum number of errors that are noted. A file of 1 MiB can have a hundred thousand.
    static let limit = 100

    /// The first errors, in the order of their places.
    private(set) var problems: [ConfigurationProblem] = []
    /// The number of errors beyond ``limit``.
    private(set) var furtherCount = 0
    private var places: [Place] = []
    private let ranks: [String: Int]

    /// The place of an error in the order of the sources: files, environment, command line.
    private struct Place: Comparable {
        let source, line, column: Int

        init(_ origin: ConfigurationOrigin, _ ranks: [String: Int]) {
            switch origin {
            // An error of a complete file, which is not read.
            case .path: (source, line, column) = (-1, 0, 0)
            case .file(let path, let line, let column):
                (source, self.line, self.column) = (ranks[path] ?? ranks.count, line, column)
            case .environment: (source, line, column) = (ranks.count + 1, 0, 0)
            case .argument: (source, line, column) = (ranks.count + 2, 0, 0)
            case .standard: (source, line, column) = (ranks.count + 3, 0, 0)
            }
        }

        static func < (one: Self, other: Self) -> Bool {
            (one.source, one.line, one.column) < (other.source, other.line, other.column)
        }
    }

    /// Creates a reader. - Parameter files: the files in their order.
    init(problems: [ConfigurationProblem] = [], files: [String] = []) {
        ranks = Dictionary(zip(files, 0...)) { first, _ in first }
        for problem in problems { note(problem.origin, problem.reason) }
    }

    /// Notes an error. The reason of one beyond ``limit`` is not computed.
    mutating func note(_ origin: ConfigurationOrigin, _ reason: @autoclosure () -> String) {
        let place = Place(origin, ranks)
        if problems.count >= Self.limit {
            furtherCount += 1
            guard let last = places.last, place < last else { return }
            problems.removeLast()
            places.removeLast()
        }
        let index = places.lastIndex { $0 <= place }.map { $0 + 1 } ?? 0
        problems.insert(ConfigurationProblem(origin, reason()), at: index)
        places.insert(place, at: index)
    }

    /// Notes an error about a name that is not among the known ones, with the nearest of them, or with another remedy.
    mutating func note(
        _ origin: ConfigurationOrigin, _ reason: @autoclosure () -> String, unknown name: String,
        among known: @autoclosure () -> [String], otherwise remedy: @autoclosure () -> String = ""
    ) {
        note(origin, reason() + (NearestKey.find(name, among: known()).map { "; the nearest is '\($0)'" } ?? remedy()))
    }

    /// The members of a map, by their keys.
    typealias Members = [String: ConfigurationNode]

    /// Reads a map, and notes the keys that are not known. - Parameter keys: all keys that the map may have.
    mutating func members(_ node: ConfigurationNode?, _ name: String, keys: [String]) -> Members {
        let members = map(node, name)
        for member in members where !keys.contains(member.key) {
            note(
                member.origin, "unknown key '\(Self.shown(member.key))'\(name.isEmpty ? "" : " of '\(name)'")",
                unknown: member.key, among: keys, otherwise: "; the keys are \(keys.joined(separator: ", "))")
        }
        return Members(members.map { ($0.key, $0.value) }, uniquingKeysWith: { first, _ in first })
    }

    /// Reads a map whose keys are names that the user chooses.
    mutating func map(_ node: ConfigurationNode?, _ name: String) -> [ConfigurationNode.Member] {
        switch node?.content {
        case .empty, nil: return []
        case .map(let members): return members
        case .scalar, .list:
            if let node {
                note(node.origin, "'\(name.isEmpty ? "configuration" : name)' must be a map of keys, and is \(node.kind)")
            }
            return []
        }
    }

    /// Reads a text. - Parameter limit: the maximum number of bytes.
    mutating func text(_ node: ConfigurationNode?, _ name: String, limit: Int = 1_000) -> String? {
        guard let node else { return nil }
        switch node.content {
        case .empty: return nil
        case .scalar(let text):
            guard text.utf8.count <= limit else {
                note(node.origin, "'\(name)' is longer than \(limit) bytes")
                return nil
            }
            return text
        case .list, .map:
            note(node.origin, "'\(name)' must be a single value, and is \(node.kind)")
            return nil
        }
    }

    /// Reads a name: a text of one line without control characters, which the history, pages and terminals show as it is.
    mutating func name(_ node: ConfigurationNode?, _ name: String) -> String? {
        guard let node, let text = text(node, name, limit: 200) else { return nil }
        guard !Self.hasControlCharacters(text) else {
            note(node.origin, "'\(name)' contains a control character")
            return nil
        }
        return text
    }

    static func hasControlCharacters(_ text: String) -> Bool {
        text.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }

    /// Reads a value that `parse` makes of its text, or refuses with a reason.
    mutating func value<Value>(_ node: ConfigurationNode?, _ name: String, _ parse: (String) throws -> Value) -> Value? {
        guard let node, let text = text(node, name) else { return nil }
        do { return try parse(text) } catch {
            switch node.origin {
            // Options and arguments are named as in the errors of other commands.
            case .argument(ConfigurationOrigin.target): note(.argument("target '\(Self.shown(text))'"), "\(error)")
            case .argument(let option): note(.argument("\(option) \(text.isEmpty ? "''" : Self.shown(text))"), "\(error)")
            default: note(node.origin, "\(name) '\(Self.shown(text))': \(error)")
            }
            return nil
        }
    }

    mutating func flag(_ node: ConfigurationNode?, _ name: String) -> Bool? {
        value(node, name) { text in
            switch text {
            case "true": true
            case "false": false
            default: throw Invalid("write true or false")
            }
        }
    }

    mutating func number(_ node: ConfigurationNode?, _ name: String, in range: ClosedRange<Int>) -> Int? {
        value(node, name) { text in
            guard let number = Int(text), range.contains(number) else {
                throw Invalid("write a whole number from \(range.lowerBound) to \(range.upperBound)")
            }
            return number
        }
    }

    mutating func duration(_ node: ConfigurationNode?, _ name: String, minimum: Duration = .milliseconds(1)) -> Duration? {
        value(node, name) { text in
            let duration = try (minimum == .zero ? TimeSpan(allowingZero: text) : TimeSpan(text)).duration
            guard duration >= minimum else { throw Invalid("the shortest is \(TimeSpan.exact(minimum))") }
            return duration
        }
    }

    /// The reason why a text is not valid.
    struct Invalid: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) { self.description = description }
    }

    /// A foreign text in a message: shortened, and without the password of a URL.
    static func shown(_ text: String) -> String {
        let text = UserInformation.withoutPassword(text)
        return text.count > 100 ? "\(text.prefix(100))…" : text
    }
}
