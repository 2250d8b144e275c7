/// The options that some commands have and others do not, with the reason. The parser alone would suggest an option with a similar name.
enum ForeignOption {
    private static let transfers: Set<String> = ["get", "put"]

    private static let reasons: [(commands: Set<String>, options: Set<String>, reason: String)] = [
        (
            ["serve"], ["--cert", "--key", "--proxy", "--noproxy"],
            "its targets are those of the configuration, which has neither client certificates nor proxies"
        ),
        (transfers, ["--insecure"], "only probes have it; get and put trust another authority with --cafile"),
        (
            transfers,
            [
                "--crlfile", "--expect-status", "--expect-body", "--certificate-days", "--source-address", "--mark", "--resolver",
            ],
            "only probes have it: those of watch, status, wait, why and probe"
        ),
    ]

    /// Returns the failure for the parser's message about an unknown option; `nil` if no other command has that option.
    static func failure(_ message: String, command: String?) -> Failure? {
        guard let command, message.lowercased().hasPrefix("unknown option '") else { return nil }
        let option = String(message.drop { $0 != "'" }.dropFirst().prefix { $0 != "'" && $0 != "=" })
        return reasons.first { $0.commands.contains(command) && $0.options.contains(option) }
            .map { .usage("\(command) \(option)", $0.reason) }
    }
}
