/// What went wrong in the lab: which step, and the system's or the program's own words.
public struct LabError: Error, CustomStringConvertible {
    /// The step and the words.
    public let description: String

    /// An error in words.
    public init(_ description: String) {
        self.description = description
    }

    /// A system call that failed with `code` (an errno).
    init(_ call: String, errno code: Int32) {
        self.init("\(call): \(errorText(code))")
    }
}
