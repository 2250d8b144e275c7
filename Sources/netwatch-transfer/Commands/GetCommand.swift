import ArgumentParser
import Console
import FoundationEssentials

/// `netwatch get`: downloads that go on when network, server and process are back.
struct GetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Download files, through outages and restarts.",
        discussion: """
            netwatch get https://example.com/big.iso
            netwatch get -d images --limit-rate 2M https://example.com/a.iso https://example.com/b.iso
            netwatch get -o big.iso --sha256 9f86d081… https://mirror.example.com/big.iso

            What has come lies beside the destination as NAME.netwatch-part until it is whole. However a download ends, the same \
            command continues it: where the server's version is the same one, or --sha256 says what the whole is. A file that is \
            there already is replaced only when the new one is whole; its mode and, if permitted, its owner are kept. The new file is \
            another inode: hard links go on naming the old one. A partial file of another user, or one that others can write to, is \
            neither continued nor touched. A response without content (204, 205) replaces nothing.

            A complete and unchanged file is not downloaded again. With --sha256, a file that has the digest needs no request. Without it, \
            the finished file keeps the server's strong validator (ETag, or Last-Modified) in its attribute user.netwatch.validator, beside \
            digests of the URL, its size and modification time; the next get of the same URL to the same name asks only for another \
            version. A file that was changed since, or that other users may write to, is downloaded again, as on file systems without \
            attributes. --no-continue downloads in any case.

            Without -o the file is named as the URL's path ends. Characters that harm become '_': slashes, controls, a dot, hyphen, tilde \
            or space at the beginning, and the dot of .netwatch-part.

            With --content-disposition a file is named as the final response suggests (Content-Disposition, RFC 6266), made harmless in \
            the same way, and gets its name when it is complete. A file that is there already is never replaced then, also not by a \
            second URL that suggests the same name: the download fails before its first byte. The partial file is named after the URL.

            It tries until --timeout. What trying cannot mend ends it: statuses 400 to 499 except 408 and 429, an untrusted \
            certificate, an endless or refused redirect, a wrong digest, a file that cannot be written.

            Authorities are the system's, or those of SSL_CERT_FILE and SSL_CERT_DIR if one of them is set.

            Exit code 0: all files are whole. 1: one is not. 66: SSL_CERT_FILE or SSL_CERT_DIR names no certificate. \
            73, 74: with one URL, its file cannot be made or written. \
            128+n: ended by signal n; what has come is kept.
            """
    )

    @Argument(help: ArgumentHelp("http:// or https:// addresses.", valueName: "url"))
    var urls: [String] = []

    @Option(
        name: [.customShort("o"), .customLong("output")],
        help: ArgumentHelp("The file to be (one URL); otherwise it is named as the URL's path ends.", valueName: "file"))
    var output: String?

    @Option(
        name: [.customShort("d"), .customLong("directory")],
        help: ArgumentHelp("Where the files go; made where it is missing (default: here).", valueName: "directory"))
    var directory: String?

    @Flag(
        name: .customLong("content-disposition"),
        help: "Name each file as its server suggests (Content-Disposition); no file that is there is replaced.")
    var isNamedByServer = false

    @Option(help: ArgumentHelp("What the file's SHA-256 has to be, in hexadecimal digits (one URL).", valueName: "hex"))
    var sha256: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("How many URLs are downloaded at a time, 1 to 64", valueName: "n"))
    var parallel = 3

    @Flag(
        name: .customLong("no-continue"),
        help: "Begin anew, whatever is there of an earlier download, also if the file is unchanged.")
    var beginsAnew = false

    @OptionGroup var options: TransferOptions

    func run() throws {
        let start = Clock.now
        guard (1...64).contains(parallel) else { throw Failure.usage("--parallel \(parallel)", "must be from 1 to 64") }
        var plan = try GetPlan(urls: urls, output: output, directory: directory, sha256: sha256, isNamedByServer: isNamedByServer)
        plan.beginsAnew = beginsAnew
        let setup = try options.setup("get", plan.items.map(\.url), parallel: parallel, since: start)
        try Destination.prepare(&plan, until: setup.transfers.deadline)
        try options.run(Downloads(plan: plan), setup)
    }
}
