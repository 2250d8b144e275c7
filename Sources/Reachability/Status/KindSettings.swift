/// The settings of one kind of probe, beside those of all targets. Its folder in Probes/ declares it.
package protocol KindSettings: Hashable, Sendable {
    /// The part that recordings have: what a verdict needs, without credentials and without what is sent.
    associatedtype Recorded: Codable

    /// The name in recordings, in the configuration and on the command line.
    static var name: String { get }
    /// What the settings are, as a phrase: "the echo requests".
    static var help: String { get }
    /// The keys that need nothing but a text.
    static var keys: [SettingKey<Self>] { get }
    /// Whether a part of them comes from files or texts that need a reading of their own, as the configuration and the command line have it.
    static var hasOwnReading: Bool { get }
    /// The keys that a text and a list set in the configuration, in place of a map; `nil` if only a map is accepted.
    static var shortForms: (text: String, list: String)? { get }
    /// Why settings that somebody has written have no effect, as the end of a sentence about the target; `nil` if they have one.
    var lack: String? { get }
    var recorded: Recorded { get }

    /// Creates the default settings.
    init()
    init(_ recorded: Recorded)
}

extension KindSettings {
    package static var hasOwnReading: Bool { false }
    package static var shortForms: (text: String, list: String)? { nil }
    package var lack: String? { nil }
}

/// The settings of the kinds of probes that differ from their defaults. Most targets have none.
struct SettingsOfKinds: Hashable, Sendable {
    // In the order of their names.
    private(set) var values: [any KindSettings] = []

    subscript<Settings: KindSettings>(_: Settings.Type) -> Settings {
        get {
            for case let settings as Settings in values { return settings }
            return Settings()
        }
        set {
            values.removeAll { $0 is Settings }
            guard newValue != Settings() else { return }
            values.insert(newValue, at: values.firstIndex { Settings.name < type(of: $0).name } ?? values.endIndex)
        }
    }

    static func == (one: SettingsOfKinds, other: SettingsOfKinds) -> Bool {
        func isIn<Settings: KindSettings>(_ settings: Settings) -> Bool {
            other.values.contains { ($0 as? Settings) == settings }
        }
        return one.values.count == other.values.count && one.values.allSatisfy { isIn($0) }
    }

    func hash(into hasher: inout Hasher) {
        for settings in values { settings.hash(into: &hasher) }
    }
}
