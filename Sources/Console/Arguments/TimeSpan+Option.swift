extension TimeSpan {
    /// Parses the duration of an option; `nil` if the option was not given.
    package static func option(_ name: String, _ text: String?) throws(Failure) -> Duration? {
        guard let text else { return nil }
        do {
            return try TimeSpan(text).duration
        } catch {
            throw .usage("\(name) \(text.isEmpty ? "''" : text)", error.description)
        }
    }
}
