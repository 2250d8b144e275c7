package import ArgumentParser

/// The header fields and the user of http requests, for commands that send requests or probes.
package struct RequestOptions: ParsableArguments {
    @Option(
        name: [.customShort("H"), .customLong("header")], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A header field of http requests, 'Name: value'; @FILE reads one from each line. May be repeated.", valueName: "field"
        ))
    package var headers: [String] = []

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The user's name; the password is asked for on the terminal. @FILE reads NAME:PASSWORD from the first line.",
            valueName: "name"))
    package var user: String?

    package init() {}

    /// The header fields. - Throws: ``Failure``, see ``FieldArgument/all(in:)``.
    package func fields() throws(Failure) -> [FieldArgument] { try FieldArgument.all(in: headers) }

    /// The user and the password; `nil` if there is no user. - Throws: ``Failure``, see ``UserArgument/read(_:)``.
    package func credential() throws(Failure) -> (name: String, password: String)? {
        guard let user else { return nil }
        return try UserArgument.read(user)
    }
}
