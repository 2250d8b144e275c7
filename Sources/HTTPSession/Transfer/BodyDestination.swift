/// Where the response's body goes.
enum BodyDestination: Sendable {
    case memory(maximumSize: Int)
    // Indirect: it would make room for as much, to be copied, in each of the others.
    indirect case file(DownloadDestination)
    case reader(ChunkBuffer)
}
