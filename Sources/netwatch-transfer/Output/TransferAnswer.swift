/// The parts of a server's response that matter to the program.
struct TransferAnswer: Hashable, Sendable {
    var status: Int
    var phrase: String
    /// The value of `Tus-Version`: the versions of tus that the server supports.
    var tusVersions: String?
}
