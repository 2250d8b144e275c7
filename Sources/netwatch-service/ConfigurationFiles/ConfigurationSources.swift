import FoundationEssentials
import Glibc
import Reachability

/// The sources of a configuration, from the lowest to the highest: system, user, environment, command line.
struct ConfigurationSources {
    /// The system's folder.
    static let systemFolder = "/etc/netwatch"
    /// The file in the folders of the system and of the user. The files of `conf.d` beside it belong to the same layer.
    static let fileName = "netwatch.yaml"
    /// The start of the names of variables that set a key: `NETWATCH_CONFIG_RETENTION__SIZE` sets `retention.size`.
    static let variablePrefix = "NETWATCH_CONFIG_"

    /// The system's folder.
    var systemFolder = Self.systemFolder
    /// A file that replaces the layers of the system and of the user; `nil` for these layers.
    var file: String?
    var environment: [String: String] = [:]
    /// The values of the options of the command line, and their keys.
    var options: [(option: String, key: String, value: String)] = []
    /// The targets of the command line, which are added.
    var targets: [String] = []

    /// A configuration with its sources.
    struct Loaded {
        var configuration: Configuration
        /// The combined tree; `nil` if nothing is set.
        var tree: ConfigurationNode?
        /// The files that were read.
        var files: [String] = []
        /// Notes to the user, which are no errors.
        var notes: [ConfigurationProblem] = []
        /// The errors, in the order of the files and of their lines; then those of the environment and of the command line.
        var problems: [ConfigurationProblem] = []
        /// The number of errors beyond ``ConfigurationReader/limit``.
        var furtherProblems = 0
        /// The settings of the targets' probes, in the order of the targets.
        var settings: [ProbeSettings] = []
        /// A number of this process that other files, or other contents of them, change.
        var fingerprint = 0
    }

    /// Reads and checks all sources, also the files that targets need.
    func load() -> Loaded {
        var loaded = Loaded(configuration: Configuration())
        var tree = ConfigurationNode(.empty, .standard)
        var problems: [ConfigurationProblem] = []
        for layer in fileLayers(&loaded, &problems) {
            guard let merged = ConfigurationLayer.merge(layer, problems: &problems) else { continue }
            tree = ConfigurationLayer.override(tree, by: merged)
        }
        for variable in environmentLayer(&problems) { tree = ConfigurationLayer.override(tree, by: variable) }
        for (option, key, value) in options {
            let scalar = ConfigurationNode(.scalar(value), .argument(option))
            tree = ConfigurationLayer.override(tree, by: ConfigurationNode(scalar, at: [key]))
        }
        let arguments = targets.map { ConfigurationNode(.scalar($0), .argument(ConfigurationOrigin.target)) }
        tree = ConfigurationLayer.add(arguments, to: "targets", of: tree)
        var reader = ConfigurationReader(problems: problems, files: loaded.files)
        loaded.configuration = Configuration(tree, &reader)
        loaded.tree = tree.content == .empty ? nil : tree
        checkTimeZone(loaded.configuration, tree, &reader)
        let retention = Self.member("retention", of: tree)?.origin ?? .standard
        loaded.notes += loaded.configuration.retention.contradictions.map { ConfigurationProblem(retention, $0) }
        var files = TargetFiles(
            credentials: environment["CREDENTIALS_DIRECTORY"], timeZone: loaded.configuration.timeZone ?? environment["TZ"])
        loaded.settings = loaded.configuration.targets.map { files.settings(of: $0, &reader) }
        (loaded.problems, loaded.furtherProblems) = (reader.problems, reader.furtherCount)
        return loaded
    }

    // MARK: Layers

    /// Returns the layers of files: the system's and the user's, or the one file.
    private func fileLayers(_ loaded: inout Loaded, _ problems: inout [ConfigurationProblem]) -> [[ConfigurationNode]] {
        if let file { return [[read(file, &loaded, &problems)].compactMap { $0 }] }
        return ([systemFolder] + [Self.userFolder(environment)].compactMap { $0 }).map { folder in
            var paths: [String] = []
            let main = "\(folder)/\(Self.fileName)"
            if access(main, F_OK) == 0 || errno != ENOENT { paths.append(main) }
            do throws(ConfigurationProblem) {
                for name in try ConfigurationFile.names(in: "\(folder)/conf.d") ?? [] {
                    let path = "\(folder)/conf.d/\(name)"
                    if name.hasSuffix(".yaml") {
                        paths.append(path)
                    } else {
                        loaded.notes.append(
                            ConfigurationProblem(.path(path), "is not read, because its name does not end with .yaml"))
                    }
                }
            } catch { problems.append(error) }
            return paths.compactMap { read($0, &loaded, &problems) }
        }
    }

    /// The user's folder (XDG Base Directory Specification); `nil` without a home directory.
    static func userFolder(_ environment: [String: String]) -> String? {
        // The specification ignores relative paths.
        if let folder = environment["XDG_CONFIG_HOME"], folder.hasPrefix("/") { return "\(folder)/netwatch" }
        guard let home = environment["HOME"], home.hasPrefix("/") else { return nil }
        return "\(home)/.config/netwatch"
    }

    private func read(_ path: String, _ loaded: inout Loaded, _ problems: inout [ConfigurationProblem]) -> ConfigurationNode? {
        do throws(ConfigurationProblem) {
            let text = try ConfigurationFile.text(path)
            loaded.files.append(path)
            loaded.fingerprint = [loaded.fingerprint, path.hashValue, text.hashValue].hashValue
            return try YAMLDocument.parse(text, &problems) { .file(path, line: $0, column: $1) }
        } catch {
            problems.append(error)
            return nil
        }
    }

    /// Returns a tree for each variable, in the order of their names. A value is YAML, so it may be a list.
    private func environmentLayer(_ problems: inout [ConfigurationProblem]) -> [ConfigurationNode] {
        environment.keys.filter { $0.hasPrefix(Self.variablePrefix) }.sorted().compactMap { name in
            let keys = name.dropFirst(Self.variablePrefix.count).lowercased().split(
                separator: "__", omittingEmptySubsequences: false)
            let origin = ConfigurationOrigin.environment(name)
            guard keys.allSatisfy({ !$0.isEmpty }) else {
                problems.append(
                    ConfigurationProblem(origin, "the name has an empty key; write \(Self.variablePrefix)KEY__SUBKEY"))
                return nil
            }
            do throws(ConfigurationProblem) {
                let value = try YAMLDocument.parse(environment[name] ?? "", &problems) { _, _ in origin }
                return ConfigurationNode(value, at: keys.map(String.init))
            } catch {
                problems.append(error)
                return nil
            }
        }
    }

    private func checkTimeZone(_ configuration: Configuration, _ tree: ConfigurationNode, _ reader: inout ConfigurationReader) {
        guard let zone = configuration.timeZone, let node = Self.member("time_zone", of: tree) else { return }
        if !Self.isZoneFile("/usr/share/zoneinfo/\(zone)") {
            reader.note(node.origin, "the time zone '\(zone)' is not in /usr/share/zoneinfo")
        } else if TimeZone(identifier: zone) == nil {
            reader.note(node.origin, "'\(zone)' is not the name of a time zone; write one such as Europe/Berlin or UTC")
        }
    }

    /// Whether a path, behind symbolic links, is that of a file of the tz database (RFC 9636 section 3.1). The database also has folders,
    /// and files of other content.
    private static func isZoneFile(_ path: String) -> Bool {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var magic = [UInt8](repeating: 0, count: 4)
        return pread(descriptor, &magic, magic.count, 0) == magic.count && magic == Array("TZif".utf8)
    }

    private static func member(_ key: String, of tree: ConfigurationNode) -> ConfigurationNode? {
        guard case .map(let members) = tree.content else { return nil }
        return members.first { $0.key == key }?.value
    }
}
