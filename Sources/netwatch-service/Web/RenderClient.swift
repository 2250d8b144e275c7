import EventLoop
import Glibc
import NIOCore
import NIOPosix

/// The client for which a document is rendered.
final class RenderClient: Sendable {
    /// The owner of a share of the rendering thread.
    enum Share: Hashable, Sendable {
        case connection(Int)
        /// All connections of a user by the Unix socket.
        case user(UInt32)
    }

    /// The owner of a share of the history. All local programs have one, because their addresses do not distinguish their users.
    enum Peer: Hashable, Sendable {
        case user(UInt32)
        case loopback
        case address(String)
    }

    let share: Share
    let peer: Peer
    private struct State: Sendable {
        var hasEnded = false
        /// The documents of the responses that are not written completely, in order; `nil` for a response without one.
        var documents: [UnreadDocument?] = []
        /// The times at which the ends of the oldest of them were given to the channel.
        var ends: [Int64] = []
    }

    private let state = Locked(State())

    init(_ share: Share, _ peer: Peer) { (self.share, self.peer) = (share, peer) }

    /// Creates the client of a connection.
    convenience init(connection: Int, _ client: ConnectionTable.Client, user: UInt32?) {
        switch client {
        // A user that the kernel does not name shares with all others of that kind.
        case .socket: self.init(.user(user ?? .max), .user(user ?? .max))
        case .loopback: self.init(.connection(connection), .loopback)
        case .address(let text): self.init(.connection(connection), .address(text))
        }
    }

    /// Whether the connection is open. Nothing is rendered for one that is not.
    var isOpen: Bool { !state.withLock { $0.hasEnded } }

    /// Whether the client has not read all of a document.
    var hasUnreadDocuments: Bool { state.withLock { $0.documents.contains { $0 != nil } } }

    /// Notes that the connection is closed.
    func end() {
        let documents = state.withLock { state in
            defer { state = State(hasEnded: true) }
            return state.documents
        }
        // They are released outside of the lock, because that may start the rendering of others.
        withExtendedLifetime(documents) {}
    }

    /// Keeps the document of a response until ``wroteResponse()``.
    func begin(_ document: UnreadDocument?) { state.withLock { if !$0.hasEnded { $0.documents.append(document) } } }

    /// Notes that the end of a response is given to the channel, which may not be able to write it.
    func endResponse(at now: Int64) { state.withLock { if !$0.hasEnded { $0.ends.append(now) } } }

    /// The time since which the channel has a complete response that the kernel does not take, because the client does not read; `nil` for none.
    var unreadSince: Int64? { state.withLock { $0.ends.first } }

    /// Releases the document of the oldest response, which the kernel has completely.
    func wroteResponse() {
        let document = state.withLock { state in
            if !state.ends.isEmpty { state.ends.removeFirst() }
            return state.documents.isEmpty ? nil : state.documents.removeFirst()
        }
        withExtendedLifetime(document) {}
    }
}

/// The credentials of the process at the other end of a Unix socket (unix(7), `SO_PEERCRED`), as the kernel writes them.
struct PeerCredentials: Sendable {
    var process: Int32 = 0
    var user: UInt32 = .max
    var group: UInt32 = .max

    /// Returns the user at the other end of a channel; `nil` if it is no Unix socket. Call it on the channel's event loop.
    static func user(of channel: any Channel) -> UInt32? {
        guard let provider = channel as? any SocketOptionProvider else { return nil }
        let level = NIOBSDSocket.OptionLevel.socket
        let result: EventLoopFuture<PeerCredentials> = provider.unsafeGetSocketOption(
            level: level, name: NIOBSDSocket.Option(rawValue: SO_PEERCRED))
        var user: UInt32?
        // On the event loop of the channel, the future is complete when it is returned.
        result.assumeIsolated().whenSuccess { user = $0.user }
        return user
    }
}
