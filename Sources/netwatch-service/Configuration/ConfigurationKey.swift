import Console
import Reachability

/// A key of the configuration, written once: its name, the form of its value, the property that it sets, and its texts.
///
/// All that shows or reads keys comes from the tables of them (`keys` of ``Configuration``, ``Configuration/TargetClass``,
/// ``ConfiguredTarget`` and of the maps in them): the values and their errors, the nearest of an unknown key, `config show`, `config init`,
/// the options of the command line, and the keys that need a restart. A test compares docs/service.md with them.
struct ConfigurationKey<Owner: Sendable>: Sendable {
    /// The name and the texts. Only ``entry(of:)`` knows the default value.
    private(set) var texts: ConfigurationEntry
    /// Keys of a later stage are read after those of an earlier one, because they use their values.
    private(set) var stage = 0
    /// Reads the value of a source into the owner, and notes its errors.
    let read: @Sendable (inout ConfigurationReader, ConfigurationValue, inout Owner) -> Void
    /// Whether two owners have the same value, for a key that needs a restart.
    private(set) var isUnchanged: @Sendable (Owner, Owner) -> Bool = { _, _ in true }
    private let standard: @Sendable (Owner) -> String?
    private let members: @Sendable (Owner?) -> [ConfigurationEntry]

    var name: String { texts.name }

    private init(
        _ texts: ConfigurationEntry, standard: @escaping @Sendable (Owner) -> String? = { _ in nil },
        members: @escaping @Sendable (Owner?) -> [ConfigurationEntry] = { _ in [] },
        read: @escaping @Sendable (inout ConfigurationReader, ConfigurationValue, inout Owner) -> Void
    ) {
        (self.texts, self.read, self.standard, self.members) = (texts, read, standard, members)
    }

    /// Creates a key whose value is a property. - Parameter help: what the value is, as a phrase: "the time between two probes".
    init<Value: Sendable>(
        _ name: String, _ path: any WritableKeyPath<Owner, Value> & Sendable, _ form: ConfigurationForm<Value>, _ help: String
    ) {
        self.init(ConfigurationEntry(name, help, limits: form.limits), standard: { form.text($0[keyPath: path]) }) {
            reader, value, owner in
            if let read = form.read(&reader, value.node, value.name) { owner[keyPath: path] = read }
        }
    }

    /// Creates a key whose value is a property that is `nil` without it.
    init<Value: Sendable>(
        _ name: String, optional path: any WritableKeyPath<Owner, Value?> & Sendable, _ form: ConfigurationForm<Value>,
        _ help: String
    ) {
        self.init(ConfigurationEntry(name, help, limits: form.limits), standard: { $0[keyPath: path].flatMap(form.text) }) {
            reader, value, owner in
            if let read = form.read(&reader, value.node, value.name) { owner[keyPath: path] = read }
        }
    }

    /// Creates a key whose text a setter checks. - Parameter limit: the maximum number of bytes.
    init<Part: Sendable>(
        _ name: String, of path: any WritableKeyPath<Owner, Part> & Sendable, limit: Int = 1_000, _ help: String,
        set: @escaping @Sendable (inout Part, String) throws -> Void
    ) {
        self.init(ConfigurationEntry(name, help)) { reader, value, owner in
            guard let text = reader.text(value.node, value.name, limit: limit) else { return }
            do { try set(&owner[keyPath: path], text) } catch { reader.note(value.node.origin, "\(value.name): \(error)") }
        }
    }

    /// Creates a key whose value is a map of other keys.
    init<Part: Sendable>(
        _ name: String, _ path: any WritableKeyPath<Owner, Part> & Sendable, keys: ConfigurationKeys<Part>, _ help: String
    ) {
        self.init(
            ConfigurationEntry(name, help), members: { keys.entries(of: $0.map { $0[keyPath: path] }) }
        ) { reader, value, owner in
            reader.read(value.node, value.name, keys, into: &owner[keyPath: path])
        }
    }

    /// Creates a key with a reading of its own. - Parameter keys: the keys of the maps in its value.
    init<Part: Sendable>(
        _ name: String, keys: ConfigurationKeys<Part>, _ help: String,
        read: @escaping @Sendable (inout ConfigurationReader, ConfigurationValue, inout Owner) -> Void
    ) {
        self.init(ConfigurationEntry(name, help), members: { _ in keys.entries(of: nil) }, read: read)
    }

    /// Creates a key with a reading of its own.
    init(
        _ name: String, _ help: String,
        read: @escaping @Sendable (inout ConfigurationReader, ConfigurationValue, inout Owner) -> Void
    ) {
        self.init(ConfigurationEntry(name, help), read: read)
    }

    /// Creates the key of a setting of a kind of probe.
    init(_ key: SettingKey<Owner>) {
        switch key.form {
        case .number(let path, let range): self.init(key.name, path, .number(in: range), key.help)
        case .optionalNumber(let path, let range): self.init(key.name, optional: path, .number(in: range), key.help)
        case .duration(let path, let range): self.init(key.name, path, .duration(in: range), key.help)
        case .optionalDuration(let path, let range): self.init(key.name, optional: path, .duration(in: range), key.help)
        case .flag(let path): self.init(key.name, path, .flag, key.help)
        case .text(let limit, let set): self.init(key.name, of: \.self, limit: limit, key.help, set: set)
        case .texts(let limit, let add):
            self.init(key.name, key.help) { reader, value, owner in
                for element in value.node.elements {
                    guard let text = reader.text(element, value.name, limit: limit) else { continue }
                    do { try add(&owner, text) } catch { reader.note(element.origin, "\(value.name): \(error)") }
                }
            }
        case .maps(let names, let add):
            let keys = ConfigurationKeys<[String: String]>(
                names.map { name in
                    ConfigurationKey<[String: String]>(name, of: \.self, limit: 8_192, "") { map, text in map[name] = text }
                })
            self.init(key.name, key.help) { reader, value, owner in
                for element in value.node.elements {
                    var map: [String: String] = [:]
                    let known = reader.problems.count
                    let members = reader.read(element, value.name, keys, into: &map)
                    // A text that begins with # is a comment of YAML.
                    if let empty = names.first(where: { members[$0]?.content == .empty }) {
                        reader.note(element.origin, "'\(value.name).\(empty)' has no value; write quotes around a text")
                        continue
                    }
                    guard reader.problems.count == known else { continue }
                    do { try add(&owner, map) } catch { reader.note(element.origin, "\(value.name): \(error)") }
                }
            }
        }
    }

    /// Creates the keys of the settings of a kind of probe that need nothing but a text.
    static func ofKind() -> [ConfigurationKey<Owner>] where Owner: KindSettings { Owner.keys.map { ConfigurationKey($0) } }

    /// Returns the same key of a value that contains the owner.
    func lifted<Outer: Sendable>(to path: any WritableKeyPath<Outer, Owner> & Sendable) -> ConfigurationKey<Outer> {
        let (read, standard, members) = (read, standard, members)
        var lifted = ConfigurationKey<Outer>(
            texts, standard: { standard($0[keyPath: path]) }, members: { members($0.map { $0[keyPath: path] }) }
        ) { reader, value, owner in
            read(&reader, value, &owner[keyPath: path])
        }
        lifted.stage = stage
        return lifted
    }

    /// The texts of the key, with the default values that an owner has.
    func entry(of owner: Owner?) -> ConfigurationEntry {
        var entry = texts
        (entry.standard, entry.members) = (owner.flatMap(standard), members(owner))
        return entry
    }

    // MARK: Further texts

    /// Adds what documents say beyond the help, with its punctuation, and what holds without the key if that is no value.
    func documented(_ details: String, standard: String? = nil) -> Self {
        changed { ($0.texts.details, $0.texts.documentedStandard) = (details, standard) }
    }

    /// Adds the value that the example of the configuration has as a comment. Without it, that is the default.
    func example(_ value: String) -> Self { changed { $0.texts.example = .value(value) } }

    /// Adds the lines that the example has below the key. - Parameter set: the value that it sets; otherwise the key is a comment, too.
    func example(lines: String, set: String? = nil) -> Self { changed { $0.texts.example = .lines(lines, set: set) } }

    /// Gives the key an option of the command line. - Parameter path: what a path names that is the value.
    func option(_ valueName: String, path: String? = nil) -> Self {
        changed { $0.texts.option = ConfigurationEntry.Option(valueName: valueName, path: path) }
    }

    /// Reads the key after those of earlier stages.
    func stage(_ stage: Int) -> Self { changed { $0.stage = stage } }

    /// A new value needs a restart of the service. - Parameter path: the property of the value.
    func needingRestart<Value: Equatable & Sendable>(_ path: any KeyPath<Owner, Value> & Sendable) -> Self {
        changed { (key: inout Self) in
            key.texts.needsRestart = true
            key.isUnchanged = { (one: Owner, other: Owner) in one[keyPath: path] == other[keyPath: path] }
        }
    }

    /// The values are not shown.
    func secret() -> Self { changed { $0.texts.isSecret = true } }

    /// The key means the same as a general one, to which documents refer.
    func shared() -> Self { changed { $0.texts.isShared = true } }

    private func changed(_ change: (inout Self) -> Void) -> Self {
        var key = self
        change(&key)
        return key
    }
}

/// The keys of a map, in the order in which messages, `config show` and documents have them.
struct ConfigurationKeys<Owner: Sendable>: Sendable {
    let names: [String]
    private let keys: [ConfigurationKey<Owner>]
    /// The keys in the order in which they are read.
    fileprivate let stages: [ConfigurationKey<Owner>]

    init(_ keys: [ConfigurationKey<Owner>]) {
        self.keys = keys
        names = keys.map(\.name)
        stages = Set(keys.map(\.stage)).sorted().flatMap { stage in keys.filter { $0.stage == stage } }
    }

    func entries(of owner: Owner?) -> [ConfigurationEntry] { keys.map { $0.entry(of: owner) } }

    /// The names of the keys that need a restart, and whose values differ.
    func restarts(from owner: Owner, to next: Owner) -> [String] {
        keys.filter { $0.texts.needsRestart && !$0.isUnchanged(owner, next) }.map(\.name)
    }
}

/// The name and the texts of a key, whatever its owner.
struct ConfigurationEntry: Hashable, Sendable {
    let name: String
    /// What the value is, as a phrase: "the time between two probes".
    let help: String
    /// The smallest and the largest valid value, in words; `nil` without limits.
    let limits: String?
    /// What documents say beyond ``help`` and ``limits``, with its punctuation.
    fileprivate(set) var details = ""
    /// The default value as it is written; `nil` without one.
    fileprivate(set) var standard: String?
    /// What holds without the key, in documents; `nil` for ``standard``.
    fileprivate(set) var documentedStandard: String?
    fileprivate(set) var example: Example?
    fileprivate(set) var option: Option?
    fileprivate(set) var needsRestart = false
    fileprivate(set) var isSecret = false
    fileprivate(set) var isShared = false
    /// The keys of the maps in the value.
    fileprivate(set) var members: [ConfigurationEntry] = []

    /// What the example of the configuration has for the key.
    enum Example: Hashable, Sendable {
        case value(String)
        case lines(String, set: String?)
    }

    /// The option of the command line that sets the key.
    struct Option: Hashable, Sendable {
        let valueName: String
        /// What the path names that is the value; `nil` if the value is no path.
        let path: String?
    }

    fileprivate init(_ name: String, _ help: String, limits: String? = nil) {
        (self.name, self.help, self.limits) = (name, help, limits)
    }

    /// The name of the option of the command line, without its dashes.
    var optionName: String { name.replacing("_", with: "-") }

    /// The help as a sentence.
    var sentence: String { "\(help.prefix(1).uppercased())\(help.dropFirst())\(help.last == "…" ? "" : ".")" }
}

/// The value of a key in a source.
struct ConfigurationValue {
    let node: ConfigurationNode
    /// The name of the key in messages: `retention.size`.
    let name: String
    /// All values of the map, by their keys.
    let siblings: ConfigurationReader.Members
}

/// How the values of a key are written.
struct ConfigurationForm<Value: Sendable>: Sendable {
    /// Returns the value of a node; `nil` for one that sets nothing, or that is not valid, whose error is noted.
    let read: @Sendable (inout ConfigurationReader, ConfigurationNode, _ name: String) -> Value?
    /// Returns the text from which a value is read; `nil` if no default value is shown.
    let text: @Sendable (Value) -> String?
    /// The smallest and the largest valid value, in words; `nil` without limits.
    let limits: String?

    init(
        limits: String? = nil, text: @escaping @Sendable (Value) -> String? = { _ in nil },
        read: @escaping @Sendable (inout ConfigurationReader, ConfigurationNode, _ name: String) -> Value?
    ) {
        (self.read, self.text, self.limits) = (read, text, limits)
    }

    /// A text that `parse` understands, or refuses with a reason.
    static func parsed(
        limits: String? = nil, text: @escaping @Sendable (Value) -> String? = { _ in nil },
        _ parse: @escaping @Sendable (String) throws -> Value
    ) -> Self {
        Self(limits: limits, text: text) { reader, node, name in reader.value(node, name, parse) }
    }

    /// A value, or `none` for no limit.
    static func orNone<Limit: Sendable>(_ form: ConfigurationForm<Limit>) -> Self where Value == Limit? {
        Self(limits: form.limits, text: { $0.map(form.text) ?? "none" }) { reader, node, name in
            node.content == .scalar("none") ? .some(nil) : form.read(&reader, node, name).map { .some($0) }
        }
    }

    /// A list, or a single value for a list of one.
    static func list<Element: Sendable>(of form: ConfigurationForm<Element>) -> Self where Value == [Element] {
        Self { reader, node, name in node.elements.compactMap { form.read(&reader, $0, name) } }
    }
}

extension ConfigurationForm<Duration> {
    static func duration(minimum: Duration = .milliseconds(1)) -> Self {
        let limits = minimum > .milliseconds(1) ? "at least `\(TimeSpan.exact(minimum))`" : nil
        return Self(limits: limits, text: { $0 == .zero ? "0s" : TimeSpan.exact($0) }) { reader, node, name in
            reader.duration(node, name, minimum: minimum)
        }
    }
}

extension ConfigurationForm<Duration> {
    /// A duration within a range.
    static func duration(in range: ClosedRange<Duration>) -> Self {
        func text(_ duration: Duration) -> String { duration == .zero ? "0s" : TimeSpan.exact(duration) }
        let limits = "`\(text(range.lowerBound))` to `\(TimeSpan.exact(range.upperBound))`"
        return Self(limits: limits, text: { $0 == .zero ? "0s" : TimeSpan.exact($0) }) { reader, node, name in
            reader.value(node, name) { text in
                let duration = try (range.contains(.zero) ? TimeSpan(allowingZero: text) : TimeSpan(text)).duration
                guard range.contains(duration) else {
                    throw ConfigurationReader.Invalid(
                        "the shortest is \(TimeSpan.exact(range.lowerBound)), the longest \(TimeSpan.exact(range.upperBound))")
                }
                return duration
            }
        }
    }
}

extension ConfigurationForm<Int> {
    static func number(in range: ClosedRange<Int>) -> Self {
        let limits = range.upperBound < .max ? "\(range.lowerBound) to \(range.upperBound)" : "at least \(range.lowerBound)"
        return Self(limits: limits, text: { "\($0)" }) { reader, node, name in reader.number(node, name, in: range) }
    }
}

extension ConfigurationForm<Bool> {
    static var flag: Self { Self(text: { "\($0)" }) { reader, node, name in reader.flag(node, name) } }
}

extension ConfigurationForm<String> {
    /// A text of at most `limit` bytes.
    static func text(limit: Int = 1_000) -> Self { Self { reader, node, name in reader.text(node, name, limit: limit) } }

    /// A text of one line without control characters.
    static var name: Self { Self { reader, node, name in reader.name(node, name) } }
}

extension ConfigurationReader {
    /// Reads the keys of a map into their owner, and notes those that are not known.
    ///
    /// - Parameters:
    ///   - node: the map.
    ///   - name: its name in messages.
    ///   - keys: its keys.
    ///   - prefix: what precedes the names of its keys in messages; `nil` for `name` and a dot.
    ///   - owner: receives the values.
    /// - Returns: The values, by their keys.
    @discardableResult
    mutating func read<Owner: Sendable>(
        _ node: ConfigurationNode?, _ name: String, _ keys: ConfigurationKeys<Owner>, prefix: String? = nil,
        into owner: inout Owner
    ) -> Members {
        let members = members(node, name, keys: keys.names)
        guard !members.isEmpty else { return members }
        let prefix = prefix ?? (name.isEmpty ? "" : "\(name).")
        for key in keys.stages {
            guard let node = members[key.name] else { continue }
            key.read(&self, ConfigurationValue(node: node, name: prefix + key.name, siblings: members), &owner)
        }
        return members
    }
}
