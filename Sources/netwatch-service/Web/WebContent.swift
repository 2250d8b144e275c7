import Console
import Records

/// Everything that the server shows, and the actions that it starts. `serve` connects them with the keeper, the history and the pages.
struct WebContent: Sendable {
    var boards: BoardSource
    var events: EventFeed
    /// Renders documents and the beginnings of streams.
    var renders: RenderQueue
    /// Returns the header of a new stream.
    var header: @Sendable (Board) -> StreamHeader
    /// Loads the configuration again.
    /// - Parameter confirmed: the number of removed targets that the user expects; `nil` without one.
    var reload: @Sendable (_ confirmed: Int?) async -> ReloadOutcome
    /// Returns whether the service works.
    var isHealthy: @Sendable () -> Bool
    var pages: any PageRenderer
    /// Receives the reports of jobs.
    var heartbeats = HeartbeatDesk()
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
