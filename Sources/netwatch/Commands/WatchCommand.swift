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
            """
    )

    @OptionGroup var stream: StreamOptions

    func run() throws {
        try stream.run()
    }
}
