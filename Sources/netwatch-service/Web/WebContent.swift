import Console
import Records

/// Everything that the server shows, and the actions that it starts. `serve` connects them with the keeper, the history and the pages.
struct WebContent: Sendable {
    var boards: BoardSource
    var events: EventFeed
    /// Returns the header of a new stream.
    var header: @Sendable (Board) -> StreamHeader
    /// Returns the document of a history query. The text is the query of the URL. It throws a ``WebProblem`` for the client.
    var history: @Sendable (_ query: String) async throws -> PageContent
    /// Loads the configuration again. Returns the reason if the former one stays.
    var reload: @Sendable () async -> String?
    /// Returns whether the service works.
    var isHealthy: @Sendable () -> Bool
    /// Returns whether the first results are there.
    var isReady: @Sendable () -> Bool
    var pages: PageRenderer
}

/// The pages, as functions of the board. Queries are the text after the question mark, and paths are percent-encoded.
struct PageRenderer: Sendable {
    /// Returns `GET /`.
    var status: @Sendable (_ board: Board, _ query: String) async -> PageContent
    /// Returns `GET /target/KEY`; `nil` if no target has the key.
    var target: @Sendable (_ board: Board, _ path: String, _ query: String) async -> PageContent?
    /// Returns `GET /badge/NAME.svg`; `nil` if neither a target nor a group has the name.
    var badge: @Sendable (_ board: Board, _ name: String) -> PageContent?
    /// Returns `GET /favicon.svg`.
    var favicon: @Sendable (_ query: String) -> PageContent
    /// The scripts and style sheets, by their paths.
    var assets: [String: PageContent] = [:]
    /// Returns an error for people; `nil` if it has only its document.
    var problem: @Sendable (_ status: Int, _ detail: String) -> PageContent? = { _, _ in nil }
}

/// The content of a page, an image or an asset.
struct PageContent: Hashable, Sendable {
    /// The media type.
    var type: String
    var bytes: [UInt8]
    /// The tag of this version of an asset; `nil` for a document.
    var tag: String?
    var status = 200
}
