import ArgumentParser

/// `netwatch watch`: writes changes of the path and the targets.
struct WatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Write changes of the path and the targets until stopped.",
        discussion: """
            netwatch watch
            netwatch watch --json 192.0.2.7:22 | jq .status
            netwatch watch -q --exec 'logger "network: $NETWATCH_TYPE $NETWATCH_STATUS $NETWATCH_CAUSE"'

            A hook receives the record on its standard input, and in its environment NETWATCH_TYPE (path or target), _STATUS, _TARGET, \
            _ADDRESS, _INTERFACE, _INTERFACE_TYPE, _CAUSE (LAYER/CODE), _DETAIL, _SEQ, _TS and _SUPERSEDED (the number of changes that \
            this one replaced while the previous hook ran); empty if unknown. Its output goes to standard error. Incidents run no hook: \
            the changes that they combine do.

            Exit code 0: --for or --count is reached. 1: the network namespace no longer exists. 69: no service is \
            running (--connect). 77: its socket may not be used. 128+n: ended by signal n.
            """
    )

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Show the stream of the running service instead of a monitor of its own; without a value, at its usual socket. The path has a slash.",
            valueName: "socket"))
    var connect: String?

    @OptionGroup var targets: TargetOptions
    @OptionGroup var stream: StreamOptions

    func run() throws {
        if let connect { try stream.run(targets, connectedTo: connect) } else { try stream.run(targets) }
    }
}
