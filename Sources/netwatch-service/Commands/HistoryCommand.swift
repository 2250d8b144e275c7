import ArgumentParser
import Reachability
import Records

/// `netwatch history`: the incidents and gaps of a period.
struct HistoryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history",
        abstract: "Show outages with their causes, and the times without a history.",
        discussion: """
            netwatch history --since 7d
            netwatch history --since '2026-12-01 00:00' --until '2026-12-02 00:00' --json
            netwatch history --target db.example:5432 --csv

            Exit code 66: there is no history, or it has no such target.
            """)

    @OptionGroup var options: HistoryOptions
    @OptionGroup var time: TimeOptions

    func run() throws {
        try options.run("history", time: try time.text(isJSON: options.json || options.csv)) { answers, question, reader, now in
            try answers.history(question, reader, at: now)
        }
    }
}

/// `netwatch report`: the availability of targets in a period.
struct ReportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Show the availability of targets in a period, with and without faults of this machine.",
        discussion: """
            netwatch report --since 30d
            netwatch report --since 2026-11-01 --until 2026-12-01 --csv > november.csv

            The availability is the part of the observed time in which the server was reachable. Faults of this machine and of the \
            network before the server do not count against it.

            Exit code 66: there is no history, or it has no such target.
            """)

    @OptionGroup var options: HistoryOptions

    func run() throws {
        try options.run("report") { answers, question, reader, now in
            try answers.report(question, reader, at: now)
        }
    }
}
