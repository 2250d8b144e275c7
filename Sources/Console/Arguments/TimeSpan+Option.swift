extension TimeSpan {
    /// Parses the duration of an option; `nil` if the option was not given. - Parameter allowsZero: whether 0 is a valid duration.
    package static func option(_ name: String, _ text: String?, allowsZero: Bool = false) throws(Failure) -> Duration? {
        guard let text else { return nil }
        do {
            return try (allowsZero ? TimeSpan(allowingZero: text) : TimeSpan(text)).duration
        } catch {
            throw .usage("\(name) \(text.isEmpty ? "''" : text)", error.description)
        }
    }
}
