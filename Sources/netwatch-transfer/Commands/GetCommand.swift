import ArgumentParser
import Console
import FoundationEssentials
import Reachability

/// `netwatch get`: downloads files, and continues them after outages of the network, the server or the process.
struct GetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Download files, and continue them after outages and restarts.",
        discussion: """
            netwatch get https://example.com/big.iso
            netwatch get -d images --limit-rate 2M https://example.com/a.iso https://example.com/b.iso
            netwatch get -o big.iso --sha256 9f86d081… https://mirror.example.com/big.iso

            Received bytes are stored beside the destination in NAME.netwatch-part until the file is complete. If a download ends early, \
            the same command continues it, provided that the server still has the same version or --sha256 is given. An existing file is \
            replaced only when the new one is complete; its mode and, if permitted, its owner are kept. The new file has another inode: \
            hard links still refer to the old one. A partial file that belongs to another user, or that others can write to, is neither \
            continued nor modified. A response without content (204, 205) replaces nothing.

            A complete and unchanged file is not downloaded again. With --sha256, a file with this digest needs no request. Without it, the \
            finished file keeps the server's strong validator (ETag, or Last-Modified) in its attribute user.netwatch.validator, with a \
            digest of the URL, its size and its modification time; the next get of the same URL to the same name requests the file only if \
            the server has another version. A file that has changed since, or that other users may write to, is downloaded again, as on \
            file systems without attributes. --no-continue always downloads.

            Without -o the file is named after the last component of the URL's path. Unsafe characters become '_': slashes, control \
            characters, a dot, hyphen, tilde or space at the beginning, and the dot of .netwatch-part.

            With --content-disposition a file is named as the final response suggests (Content-Disposition, RFC 6266), with the same \
            replacements, and gets its name when it is complete. An existing file is never replaced then, not even by a second URL that \
            suggests the same name: the download fails before its first byte. The partial file is named after the URL.

            get retries until --timeout. It does not retry permanent errors: statuses 400 to 499 except 408 and 429, an untrusted \
            certificate, an endless or refused redirect, a wrong digest, a file that cannot be written.

            The trusted authorities are those of --cafile, or of SSL_CERT_FILE and SSL_CERT_DIR if one of them is set, or the system's. The proxy is \
            that of --proxy, or of http_proxy, https_proxy and all_proxy; --noproxy and no_proxy name the hosts that need none.

            Exit code 0: all files are complete. 1: at least one is not. 66: SSL_CERT_FILE or SSL_CERT_DIR names no certificate. \
            73, 74: with one URL, its file cannot be created or written. 128+n: ended by signal n; received bytes are kept.
            """
    )

    @Argument(help: ArgumentHelp("http:// or https:// addresses.", valueName: "url"))
    var urls: [String] = []

    @Option(
        name: [.customShort("o"), .customLong("output")],
        help: ArgumentHelp("The name of the file (one URL); default: the last component of the URL's path.", valueName: "file"))
    var output: String?

    @Option(
        name: [.customShort("d"), .customLong("directory")],
        help: ArgumentHelp(
            "The directory for the files; created if it is missing (default: the current directory).", valueName: "directory"))
    var directory: String?

    @Flag(
        name: .customLong("content-disposition"),
        help: "Name each file as its server suggests (Content-Disposition); existing files are never replaced.")
    var isNamedByServer = false

    @Option(help: ArgumentHelp("The expected SHA-256 of the file in hexadecimal digits (one URL).", valueName: "hex"))
    var sha256: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The number of URLs that are downloaded at a time, 1 to 64", valueName: "n"))
    var parallel = 3

    @Flag(
        name: .customLong("no-continue"),
        help: "Restart from the beginning, even if a partial file exists or the file is unchanged.")
    var restarts = false

    @OptionGroup var options: TransferOptions

    func run() throws {
        let start = Moment.now
        guard (1...64).contains(parallel) else { throw Failure.usage("--parallel \(parallel)", "must be from 1 to 64") }
        var plan = try GetPlan(urls: urls, output: output, directory: directory, sha256: sha256, isNamedByServer: isNamedByServer)
        plan.restarts = restarts
        let setup = try options.setup("get", plan.items.map(\.url), parallel: parallel, since: start)
        try Destination.prepare(&plan, until: setup.transfers.deadline)
        try options.run(Downloads(plan: plan), setup)
    }
}
