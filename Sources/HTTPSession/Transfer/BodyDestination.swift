/// The destination of a response's body.
enum BodyDestination: Sendable {
    case memory(maximumSize: Int)
    // Indirect: otherwise every value would be as large as this one, and be copied with it.
    indirect case file(DownloadDestination)
    case reader(ChunkBuffer)
}
