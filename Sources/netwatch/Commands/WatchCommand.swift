import ArgumentParser

/// `netwatch watch`: the main job.
struct WatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Write what changes of the path and the targets, until stopped.",
        discussion: """
            netwatch watch
            netwatch watch --json 192.0.2.7:22 | jq .status
            netwatch watch -q --exec 'logger "network: $NETWATCH_TYPE $NETWATCH_STATUS $NETWATCH_CAUSE"'

            A hook's output goes to standard error. Beside the record on its standard input it finds NETWATCH_TYPE (path or \
            target), _STATUS, _TARGET, _ADDRESS, _INTERFACE, _INTERFACE_TYPE, _CAUSE (LAYER/CODE), _DETAIL, _SEQ, _TS and \
            _SUPERSEDED (changes that a newer one replaced while the hook before ran); empty where unknown.

            Exit code 0: --for or --count is over. 1: the network namespace is gone. 128+n: ended by signal n.
            """
    )

    @OptionGroup var stream: StreamOptions

    func run() throws {
        try stream.run()
    }
}
