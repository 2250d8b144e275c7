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

            Exit code 0: --for or --count is reached. 1: the network namespace no longer exists. 128+n: ended by signal n.
            """
    )

    @OptionGroup var stream: StreamOptions

    func run() throws {
        try stream.run()
    }
}
