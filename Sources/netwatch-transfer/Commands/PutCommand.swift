import ArgumentParser
import Console
import FoundationEssentials
import Reachability

/// `netwatch put`: uploads a file, and continues after outages of the network or the server.
struct PutCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "put",
        abstract: "Upload a file, and continue it after outages.",
        discussion: """
            netwatch put film.mkv https://tus.example.com/files/
            netwatch put --protocol put backup.tar https://dav.example.com/backups/

            After an outage, put asks the server how much of the file it has, and sends the remaining bytes, if the server supports tus \
            1.0.0 or the IETF's draft of resumable uploads (interoperability version 8). To other servers it sends the file again from the \
            beginning. If the URL ends with a slash, the file's name is appended, except for tus, whose URL is that for creating uploads.

            --protocol auto uses OPTIONS to find out whether the server supports tus (Tus-Version), and otherwise uses the draft: a PUT \
            with fields that other servers ignore. tus and draft skip this request; put is a PUT without these fields.

            The file must be a regular file, and must not change during the upload: if it changes, the upload fails. put retries until \
            --timeout. It does not retry permanent errors: statuses 400 to 499 except 408 and 429, an untrusted certificate, an endless or \
            refused redirect.

            If the program ends before the upload does, also by a signal, the same command continues it: with tus and the draft, the \
            upload's URL is kept for 30 days in a note in $XDG_STATE_HOME/netwatch/uploads (~/.local/state). A file that has changed \
            meanwhile is sent from the beginning, even if its size and modification time are the same. A note that belongs to another user, \
            that others can write to, or that has several hard links is neither used nor modified, and put reports that.

            With tus and the draft, put requests the digest of the complete upload (Want-Repr-Digest, RFC 9530). If it differs from the \
            file's digest, the upload fails, and the same command restarts it.

            Exit code 0: the server has the complete file. 1: it does not. 66: the file does not exist, or SSL_CERT_FILE or SSL_CERT_DIR \
            names no certificate. 77: no permission to read the file. 74: reading it failed. 128+n: ended by signal n.
            """
    )

    @Argument(help: ArgumentHelp("The file to send.", valueName: "file"))
    var file: String?

    @Argument(help: ArgumentHelp("The http:// or https:// URL to which it is sent.", valueName: "url"))
    var url: String?

    @Option(name: .customLong("protocol"), help: ArgumentHelp("The upload protocol", valueName: "how"))
    var dialect = PutPlan.Dialect.auto

    @Flag(name: .customLong("no-continue"), help: "Restart from the beginning, even if an earlier run has started the upload.")
    var restarts = false

    @OptionGroup var options: TransferOptions

    func run() throws {
        let start = Moment.now
        guard let file else { throw Failure.usage("put", "the file and the URL are missing; see 'netwatch put --help'") }
        guard let url else { throw Failure.usage("put", "the URL is missing; write: netwatch put FILE URL") }
        var plan = try PutPlan(file: file, url: url, dialect: dialect)
        plan.restarts = restarts
        let setup = try options.setup("put", [plan.url], since: start)
        try Source.check(plan.file)
        let note = try UploadNote(plan, environment: ProcessInfo.processInfo.environment)
        try options.run(Upload(plan: plan, note: note), setup)
    }
}
