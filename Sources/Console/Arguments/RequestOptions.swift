package import ArgumentParser
import ByteComparison
import FoundationEssentials
import Reachability

/// The header fields, the user and the exceptions of the proxy of http requests, for commands that send requests or probes.
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

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The hosts that need no proxy, or * for all (default: no_proxy).", valueName: "list"))
    package var noproxy: String?

    package init() {}

    /// The hosts that need no proxy: those of the option, else those of the environment.
    package var proxyExceptions: String {
        let environment = ProcessInfo.processInfo.environment
        return noproxy ?? ["no_proxy", "NO_PROXY"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty } ?? ""
    }

    /// The header fields. - Throws: ``Failure`` with code 64 for one of the proxy, and for one that may occur only once; see also
    /// ``FieldArgument/all(in:)``.
    package func fields() throws(Failure) -> [FieldArgument] {
        let fields = try FieldArgument.all(in: headers)
        var names: Set<String> = []
        for field in fields {
            let name = field.name.lowercased()
            guard name != "proxy-authorization" else {
                throw .usage(field.place, "the server would receive it too; write --proxy with NAME:PASSWORD@ before the host")
            }
            guard names.insert(name).inserted || !HTTPProbeSettings.singleFields.contains(ExactString(name)) else {
                throw .usage(field.place, "this field may occur only once")
            }
        }
        return fields
    }

    /// The user and the password; `nil` if there is no user. - Throws: ``Failure``, see ``UserArgument/read(_:)``.
    package func credential() throws(Failure) -> (name: String, password: String)? {
        guard let user else { return nil }
        return try UserArgument.read(user)
    }
}
