import ArgumentParser
import Console
import FoundationEssentials

/// `netwatch put`: an upload that goes on when network and server are back.
struct PutCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "put",
        abstract: "Upload a file, through outages.",
        discussion: """
            netwatch put film.mkv https://tus.example.com/files/
            netwatch put --protocol put backup.tar https://dav.example.com/backups/

            After an outage it asks the server how much of the file is there, and sends the rest, where the server speaks tus 1.0.0 or \
            the IETF's draft of resumable uploads (interoperability version 8). To other servers it sends the file again from its \
            beginning. A URL that ends with a slash gets the file's name, but for tus, whose URL is that which makes uploads.

            --protocol auto asks by OPTIONS whether the server speaks tus (Tus-Version), and uses the draft otherwise: a PUT with \
            fields that a server without it leaves alone. tus and draft do not ask; put is a PUT without these fields.

            The file is a regular one, and stays as it is until it is there: one that changes meanwhile ends it. It tries until \
            --timeout. What trying cannot mend ends it: statuses 400 to 499 except 408 and 429, an untrusted certificate, an endless or \
            refused redirect.

            Where the program ends before the upload does, by a signal too, the same command goes on: with tus and the draft it is \
            written down in $XDG_STATE_HOME/netwatch/uploads (~/.local/state) where the upload is, for 30 days. A file that has \
            changed meanwhile is sent from its beginning, also if its size and modification time are the same. A note that belongs to \
            another user, that others can write to, or that has several hard links is neither used nor touched; a line says so.

            With tus and the draft, the server is asked for the digest of the complete upload (Want-Repr-Digest, RFC 9530). If it sends \
            one that is not the file's, the upload fails, and the same command begins anew.

            Exit code 0: the server has all of it. 1: it has not. 66: there is no such file, or SSL_CERT_FILE or SSL_CERT_DIR names no certificate. 77: it may not be read. 74: reading it \
            failed. 128+n: ended by signal n.
            """
    )

    @Argument(help: ArgumentHelp("The file to send.", valueName: "file"))
    var file: String?

    @Argument(help: ArgumentHelp("The http:// or https:// address that it goes to.", valueName: "url"))
    var url: String?

    @Option(name: .customLong("protocol"), help: ArgumentHelp("How the server is spoken to", valueName: "how"))
    var dialect = PutPlan.Dialect.auto

    @Flag(name: .customLong("no-continue"), help: "Begin anew, whatever an earlier run has begun.")
    var beginsAnew = false

    @OptionGroup var options: TransferOptions

    func run() throws {
        let start = Clock.now
        guard let file else { throw Failure.usage("put", "the file and the URL are missing; see 'netwatch put --help'") }
        guard let url else { throw Failure.usage("put", "the URL is missing; write: netwatch put FILE URL") }
        var plan = try PutPlan(file: file, url: url, dialect: dialect)
        plan.beginsAnew = beginsAnew
        let setup = try options.setup("put", [plan.url], since: start)
        try Source.check(plan.file)
        let note = try UploadNote(plan, environment: ProcessInfo.processInfo.environment)
        try options.run(Upload(plan: plan, note: note), setup)
    }
}
