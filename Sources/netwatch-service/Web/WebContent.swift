import Console
import EventLoop
import Records

/// Everything that the server shows, and the actions that it starts. `serve` connects them with the keeper, the history and the pages.
struct WebContent: Sendable {
    var boards: BoardSource
    var events: EventFeed
    /// Renders documents and the beginnings of streams.
    var renders: RenderQueue
    /// Returns the header of a new stream.
    var header: @Sendable (Board) -> StreamHeader
    /// Returns the document of a history query. The text is the query of the URL. It throws a ``WebProblem`` for the client.
    var history: @Sendable (_ query: String) throws -> PageDocument
    /// Loads the configuration again.
    /// - Parameter confirmed: the number of removed targets that the user expects; `nil` without one.
    var reload: @Sendable (_ confirmed: Int?) async -> ReloadOutcome
    /// Returns whether the service works.
    var isHealthy: @Sendable () -> Bool
    /// Returns whether the first results are there.
    var isReady: @Sendable () -> Bool
    var pages: PageRenderer
}

/// The result of loading the configuration again.
enum ReloadOutcome: Hashable, Sendable {
    /// The configuration is used. The keys need a restart.
    case loaded(ReloadCounts, restartKeys: [String])
    /// The previous configuration is kept, because the new one has an error.
    case refused(Failure)
    /// The previous configuration is kept, because the new one removes many targets.
    case unconfirmed(ReloadGuard.Refusal)

    /// The line for standard error and the service manager, and the body of a successful response.
    var sentence: String {
        switch self {
        case .loaded(let counts, let keys):
            let restart = keys.isEmpty ? "" : "; a restart is needed for \(keys.joined(separator: ", "))"
            return "the configuration was loaded: \(counts)\(restart)"
        case .refused(let failure): return failure.message
        case .unconfirmed(let refusal): return "keeping the previous configuration: \(refusal.sentence)"
        }
    }
}

/// The pages, as functions of the board. Queries are the text after the question mark, and paths are percent-encoded.
struct PageRenderer: Sendable {
    /// Returns `GET /`.
    var status: @Sendable (_ query: String) -> PageDocument
    /// Returns `GET /target/KEY`; `nil` if no target has the key. It throws a ``WebProblem`` for the client.
    var target: @Sendable (_ board: Board, _ path: String, _ query: String) throws -> PageDocument?
    /// Returns `GET /badge/NAME.svg`, with the status 404 if neither a target nor a group has the name.
    var badge: @Sendable (_ board: Board, _ name: String) -> PageDocument?
    /// Returns `GET /favicon.svg`.
    var favicon: @Sendable (_ query: String) -> PageContent
    /// The scripts and style sheets, by their paths.
    var assets: [String: PageContent] = [:]
    /// Returns an error for people; `nil` if it has only its document.
    var problem: @Sendable (_ status: Int, _ detail: String) -> PageDocument? = { _, _ in nil }
}

/// A page, a document or an image that is rendered for each request, on the thread of ``RenderQueue``. Requests with HEAD do not render it.
struct PageDocument: Sendable {
    /// The media type.
    let type: String
    let status: Int
    /// Reads what the document needs, such as its part of the history. It throws a ``WebProblem`` for the client.
    let prepare: @Sendable (RenderClient) async throws -> any PiecewiseDocument

    init(type: String, status: Int = 200, prepare: @escaping @Sendable (RenderClient) async throws -> any PiecewiseDocument) {
        (self.type, self.status, self.prepare) = (type, status, prepare)
    }

    /// Creates a document of the board at the time when it is rendered.
    init(type: String, of boards: BoardSource, _ document: @escaping @Sendable (Board) -> any PiecewiseDocument) {
        self.init(type: type) { _ in
            DeferredDocument { boards.current().map(document) ?? WholeDocument { [] } }
        }
    }

    /// Creates a document that is rendered at once.
    init(type: String, status: Int = 200, render: @escaping @Sendable () -> [UInt8]) {
        self.init(type: type, status: status) { _ in WholeDocument(render: render) }
    }
}

/// The content of an image or an asset that is there already.
struct PageContent: Hashable, Sendable {
    /// The media type.
    var type: String
    var bytes: [UInt8]
    /// The tag of this version of an asset; `nil` for a document.
    var tag: String?
    var status = 200
}

/// The latest board. The keeper publishes it, and pages and documents read it.
final class BoardSource: Sendable {
    private let board = Locked<Board?>(nil)

    /// Replaces the board.
    func publish(_ board: Board) {
        // The former board is released after the lock, because it may have 10,000 targets.
        let former = self.board.withLock { present in
            let former = present
            present = board
            return former
        }
        withExtendedLifetime(former) {}
    }

    /// Returns the latest board; `nil` before the first one.
    func current() -> Board? { board.withLock { $0 } }
}
