/// What a server has answered, as far as it matters here.
struct TransferAnswer: Hashable, Sendable {
    var status: Int
    var phrase: String
    /// The versions of tus that the server speaks (`Tus-Version`), as it says it.
    var tusVersions: String?
}
