extension TimeSpan {
    /// The duration that an option was given, `nil` where it was not.
    package static func option(_ name: String, _ text: String?) throws(Failure) -> Duration? {
        guard let text else { return nil }
        do {
            return try TimeSpan(text).duration
        } catch {
            throw .usage("\(name) \(text.isEmpty ? "''" : text)", error.description)
        }
    }
}
