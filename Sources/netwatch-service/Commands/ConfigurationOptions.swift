import ArgumentParser
import Console
import FoundationEssentials

/// The options of the commands that read a configuration: its file, the values that replace those of the files, and further targets.
struct ConfigurationOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Read this file instead of those of the system and of the user.", valueName: "file"))
    var config: String?

    @OptionGroup var keys: KeyOptions

    @Argument(help: ArgumentHelp("Also probe these targets.", valueName: "target"))
    var targets: [String] = []

    /// Returns the sources of the configuration: files, environment and these options.
    ///
    /// - Throws: ``Failure`` with code 64 if `--config` names no file, `--state` no directory, or `--socket` no socket.
    func sources() throws(Failure) -> ConfigurationSources {
        var sources = ConfigurationSources()
        guard config != "" else { throw .usage("--config ''", "names no file") }
        sources.file = config
        sources.environment = ProcessInfo.processInfo.environment
        sources.options = try keys.values()
        sources.targets = TargetArguments.split(targets)
        return sources
    }
}

/// The options that set keys of the configuration: one for each key of the table that has one.
///
/// The parser finds the options of a command in its mirror, and decodes each by its label there.
struct KeyOptions: ParsableArguments, CustomReflectable {
    private let options: [(entry: ConfigurationEntry, value: Option<String?>)]

    private static let entries = Configuration.entries.filter { $0.option != nil }

    init() {
        options = Self.entries.map { entry in
            let help = ArgumentHelp("\(entry.sentence)", valueName: entry.option?.valueName)
            return (entry, Option(name: .customLong(entry.optionName), parsing: .unconditional, help: help))
        }
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Label.self)
        options = try Self.entries.map { ($0, try container.decode(Option<String?>.self, forKey: Label(stringValue: $0.name))) }
    }

    var customMirror: Mirror { Mirror(self, children: options.map { (label: $0.entry.name, value: $0.value as Any) }) }

    /// The name of a key.
    private struct Label: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }

        init?(intValue: Int) { nil }
    }

    /// Returns the values that are set, and their keys. A relative path is relative to the current directory.
    func values() throws(Failure) -> [(option: String, key: String, value: String)] {
        var values: [(option: String, key: String, value: String)] = []
        for (entry, option) in options {
            guard var value = option.wrappedValue else { continue }
            let name = "--\(entry.optionName)"
            if let noun = entry.option?.path {
                guard !value.isEmpty else { throw .usage("\(name) ''", "names no \(noun)") }
                if !value.hasPrefix("/") { value = "\(FileManager.default.currentDirectoryPath)/\(value)" }
            }
            values.append((name, entry.name, value))
        }
        return values
    }
}
