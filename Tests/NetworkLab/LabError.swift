/// An error of the lab: the step that failed, and the message of the system or the program.
public struct LabError: Error, CustomStringConvertible {
    /// The step and the message.
    public let description: String

    /// An error with this description.
    public init(_ description: String) {
        self.description = description
    }

    /// A failed system call with its errno `code`.
    init(_ call: String, errno code: Int32) {
        self.init("\(call): \(errorText(code))")
    }
}
