/// A fault of a download, usually after 40 % of the file.
struct Fault: Sendable {
    enum Event: Sendable {
        /// The server resets the connection, once.
        case reset
        /// The server resets the connection after each further 20 %.
        case resetAgainAndAgain
        /// The server responds twice with 503, before the first byte.
        case unwell
        /// The server sends nothing more on this connection.
        case silence
        /// The program gets SIGKILL, and the same command is run again.
        case kill
        /// The only link has no carrier for a while.
        case cable
        /// The link is lost with its address, and another one is added later.
        case uplink
    }

    /// The server's behavior after the event, if it differs from that of a good server.
    enum Server: Sendable {
        case good
        case knowsNoRanges
        /// The partial content begins at another offset than requested, and its `Content-Range` says so.
        case sendsAnotherPart
    }

    let name: String
    var event: Event
    var server = Server.good
    /// The file's size after the event, if its content changes then.
    var changesTo: Int64?
    /// True if the responses have neither an entity tag nor a date.
    var isNameless = false

    static let all: [Fault] = [
        Fault(name: "the connection is reset after 40 %", event: .reset),
        Fault(name: "it is reset after each further 20 %", event: .resetAgainAndAgain),
        Fault(name: "503 with Retry-After, twice", event: .unwell),
        Fault(name: "the server falls silent after 40 %", event: .silence),
        Fault(name: "the cable is pulled after 40 %, and put back after 15 s", event: .cable),
        Fault(name: "the uplink is lost after 40 %; after 5 s there is another", event: .uplink),
        Fault(name: "reset after 40 %; then the server supports no ranges", event: .reset, server: .knowsNoRanges),
        Fault(
            name: "reset; then the partial content begins elsewhere, as its Content-Range says", event: .reset,
            server: .sendsAnotherPart),
        Fault(name: "reset; the file changes, its size does not", event: .reset, changesTo: FaultyFile.size),
        Fault(name: "the same, without ETag and date", event: .reset, changesTo: FaultyFile.size, isNameless: true),
        Fault(name: "reset; the file changes, and is longer", event: .reset, changesTo: 1_300_000),
        Fault(name: "reset; the file changes, and is shorter than the received bytes", event: .reset, changesTo: 300_000),
        Fault(name: "the program is killed after 40 %, and started again", event: .kill),
        Fault(name: "killed; then the server supports no ranges", event: .kill, server: .knowsNoRanges),
        Fault(name: "killed; the file changes, its size does not", event: .kill, changesTo: FaultyFile.size),
        Fault(name: "the same, without ETag and date", event: .kill, changesTo: FaultyFile.size, isNameless: true),
        Fault(name: "killed; the file changes, and is longer", event: .kill, changesTo: 1_300_000),
        Fault(name: "killed; the file changes, and is shorter than the received bytes", event: .kill, changesTo: 300_000),
    ]
}
