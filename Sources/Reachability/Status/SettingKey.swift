/// A setting of a kind of probe, written once: its name, its form with its limits, and its help. The configuration, the command line and their documents
/// follow from it.
package struct SettingKey<Settings: Sendable>: Sendable {
    /// How the values of a setting are written.
    package enum Form: Sendable {
        case number(any WritableKeyPath<Settings, Int> & Sendable, ClosedRange<Int>)
        /// A number that the system chooses without the setting.
        case optionalNumber(any WritableKeyPath<Settings, Int?> & Sendable, ClosedRange<Int>)
        case duration(any WritableKeyPath<Settings, Duration> & Sendable, ClosedRange<Duration>)
        /// A duration that another one determines without the setting.
        case optionalDuration(any WritableKeyPath<Settings, Duration?> & Sendable, ClosedRange<Duration>)
        /// `true` or `false`.
        case flag(any WritableKeyPath<Settings, Bool> & Sendable)
        /// A text of at most so many bytes. The setter throws the reason why it is not valid.
        case text(limit: Int, @Sendable (inout Settings, String) throws -> Void)
        /// A list of texts, each of at most so many bytes, which the setter adds.
        case texts(limit: Int, @Sendable (inout Settings, String) throws -> Void)
        /// A list of maps with some of these keys, whose values are texts. The setter adds a map.
        case maps([String], @Sendable (inout Settings, [String: String]) throws -> Void)
    }

    /// The name: lower case, words joined by `_`.
    package let name: String
    package let form: Form
    /// What the value is, as a phrase: "the time between two requests".
    package let help: String

    init(_ name: String, _ form: Form, _ help: String) { (self.name, self.form, self.help) = (name, form, help) }
}
