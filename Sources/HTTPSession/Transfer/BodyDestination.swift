/// Where the response's body goes.
enum BodyDestination: Sendable {
    case memory(maximumSize: Int)
    case file(DownloadDestination)
    case reader(ChunkBuffer)
}
